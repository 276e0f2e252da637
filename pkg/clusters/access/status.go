package access

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Status is the state of a credential after a reconciliation.
type Status struct {
	// Name is the credential's name; Secret is its Secret's name in the user cluster.
	Name, Secret string
	Type         v1.AccessType
	// Subject is the user: the one that the API server sees, or the one in another signer's certificate.
	Subject string
	// Signer and Groups are those of a certificate.
	Signer string
	Groups []string
	// Request is the pending CertificateSigningRequest.
	Request string
	// Expires is when the credential ends; zero: there is none, or it is unknown.
	Expires time.Time
	// Problem is nil if everything is right.
	Problem *Problem
	// Usable says that there is a credential that has not expired, with its rights.
	Usable bool
	// Next is when to check again; zero: when something changes.
	Next time.Time
	// Digest identifies the intended content of the agent's Secret. It is made of nothing secret.
	Digest string
}

// Problem is why a credential is not right.
type Problem struct {
	// Reason is one of condition AccessReady.
	Reason, Message string
	// IsLasting says that only an edit solves it.
	IsLasting bool
}

// problemError is a Problem that a step ends with.
type problemError struct {
	*Problem
	// endsRights says that the agent loses its current rights: its binding is removed.
	endsRights bool
	// again is the time until a lasting problem is checked again; 0: until something changes.
	again time.Duration
}

func (e *problemError) Error() string { return e.Message }

// lasting is a Problem that only an edit solves.
func lasting(reason, format string, about ...any) *problemError {
	return &problemError{Problem: &Problem{Reason: reason, Message: fmt.Sprintf(format, about...), IsLasting: true}}
}

// passing is a Problem that may have ended at the next check.
func passing(reason, format string, about ...any) *problemError {
	return &problemError{Problem: &Problem{Reason: reason, Message: fmt.Sprintf(format, about...)}}
}

// facts decide a Status.
type facts struct {
	now time.Time
	// has says that there is a credential; the times are its own.
	has              bool
	expires, renewAt time.Time
	// isBlocked says that the problem is about rights or names, so that the credential is useless. Otherwise the problem is about the
	// next credential.
	isBlocked bool
	problem   *Problem
	// next is when to try again; zero: when something changes.
	next time.Time
}

// complete is a Status with the results of the facts.
func (f facts) complete(s Status) Status {
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
			"credential %q is valid until %s, and is not renewed yet: %s", s.Name, stamp(f.expires), f.problem.Message)}
		s.Next = sooner(f.next, f.expires)
	case f.has:
		s.Problem = &Problem{Reason: v1.ReasonExpired, IsLasting: f.problem != nil && f.problem.IsLasting,
			Message: fmt.Sprintf("credential %q expired at %s%s", s.Name, stamp(f.expires), because(f.problem))}
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
