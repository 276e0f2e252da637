package access

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Standing is how a credential stands after a pass.
type Standing struct {
	// Name of the credential; Secret is its name in the user cluster.
	Name, Secret string
	Type         v1.AccessType
	// Subject is the user that the API server knows its bearer by; empty for another signer's.
	Subject string
	// Request is the CertificateSigningRequest that is waited for.
	Request string
	// Expires is when the credential ends; zero: there is none, or it is not known.
	Expires time.Time
	// Problem is nil where it is as it should be.
	Problem *Problem
	// Usable says that there is a credential which has not ended, with its rights.
	Usable bool
	// Next is when to look again; zero: when something changes.
	Next time.Time
	// Digest is of what the agent's Secret is to have. It is made of nothing secret.
	Digest string
}

// Problem is why a credential is not as it should be.
type Problem struct {
	// Reason is one of condition AccessReady.
	Reason, Message string
	// IsLasting says that only an edit helps.
	IsLasting bool
}

// problemError is a Problem that a step ends with.
type problemError struct {
	*Problem
	// endsRights says that the agent loses the rights that it has: its binding is removed.
	endsRights bool
	// again is how long it takes until a lasting problem is looked at again; 0: until something changes.
	again time.Duration
}

func (e *problemError) Error() string { return e.Message }

// lasting is a Problem that only an edit helps with.
func lasting(reason, format string, about ...any) *problemError {
	return &problemError{Problem: &Problem{Reason: reason, Message: fmt.Sprintf(format, about...), IsLasting: true}}
}

// passing is a Problem that may be over when it is looked at again.
func passing(reason, format string, about ...any) *problemError {
	return &problemError{Problem: &Problem{Reason: reason, Message: fmt.Sprintf(format, about...)}}
}

// facts are what a Standing is decided by.
type facts struct {
	now time.Time
	// has says that there is a credential; the times are its own.
	has              bool
	expires, renewAt time.Time
	// isBlocked says that the problem is about rights or names, so that the credential is of no use; else it is about getting the next.
	isBlocked bool
	problem   *Problem
	// next is when to try again what the problem is about; zero: when something changes.
	next time.Time
}

// complete is a Standing with what follows from the facts.
func (f facts) complete(s Standing) Standing {
	if f.has {
		s.Expires = f.expires
	}
	isLive := f.has && f.now.Before(f.expires)
	s.Problem, s.Next = f.problem, f.next
	if f.isBlocked {
		return s
	}
	s.Usable = isLive
	switch {
	case f.problem == nil && isLive:
		s.Next = f.renewAt
	case f.problem != nil && isLive:
		s.Problem = &Problem{Reason: v1.ReasonRenewalPending, Message: fmt.Sprintf(
			"credential %q counts until %s, and is not renewed yet: %s", s.Name, stamp(f.expires), f.problem.Message)}
		s.Next = sooner(f.next, f.expires)
	case f.has:
		s.Problem = &Problem{Reason: v1.ReasonExpired, IsLasting: f.problem != nil && f.problem.IsLasting,
			Message: fmt.Sprintf("credential %q ended at %s%s", s.Name, stamp(f.expires), because(f.problem))}
	}
	return s
}

func because(problem *Problem) string {
	if problem == nil {
		return ""
	}
	return ": " + problem.Message
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// sooner is the earlier of two times, where zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
