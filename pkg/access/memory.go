package access

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Memory is what a caller keeps of one installation between passes. The zero value knows nothing; it never has a secret.
type Memory struct {
	// holder tells another Cluster, or installation, of the name.
	holder      string
	credentials map[string]*remembered
}

// remembered is what is known of one credential.
type remembered struct {
	kept kept
	// account is the UID of the ServiceAccount; empty for certificates.
	account types.UID
	// made are kinds that were seen or made, past the cache, which may not show them yet.
	made map[string]bool
	// retired is the UID of the Secret that was removed last, which the cache may still show.
	retired types.UID
	// tries in a row without the next credential; the next is made at retry, or when reconcile-at is another than it was.
	tries       int
	retry       time.Time
	reconcileAt string
	// waiting is why there is none yet, request what is waited for.
	waiting *Problem
	request string
}

// kept is what is known of the Secret on the seed.
type kept struct {
	uid types.UID
	// version is the Secret's as it was read or written; seen is the one that the cache had then.
	version, seen string
	record        record
	isWhole       bool
}

// mostRemembered names are more than two versions have.
const mostRemembered = 32

// turnTo forgets what is about another holder. A pass may ask for the credentials of two versions in turn, so that others stay.
func (m *Memory) turnTo(holder Holder) {
	who := string(holder.ClusterOwner.UID) + "/" + holder.Owner.LongID()
	if m.holder != who || m.credentials == nil || len(m.credentials) > mostRemembered {
		*m = Memory{holder: who, credentials: map[string]*remembered{}}
	}
}

func (m *Memory) of(name string) *remembered {
	if m.credentials[name] == nil {
		m.credentials[name] = &remembered{made: map[string]bool{}}
	}
	return m.credentials[name]
}

// rest forgets what was tried.
func (r *remembered) rest() {
	r.tries, r.retry, r.waiting, r.request = 0, time.Time{}, nil, ""
}

// wait notes why there is no next credential yet, and when to try again.
func (r *remembered) wait(problem *Problem, retry time.Time, reconcileAt string) {
	r.waiting, r.retry, r.reconcileAt = problem, retry, reconcileAt
}

// isWaiting says whether it is too early for the next try. A time that is further away than any pause is of a clock that was set back.
func (r *remembered) isWaiting(now time.Time, reconcileAt string) bool {
	pause := r.retry.Sub(now)
	return r.waiting != nil && pause > 0 && pause <= mostWait && r.reconcileAt == reconcileAt
}

// counts says whether there is a credential. The API server knows no tokens of an account that is gone.
func (r *remembered) counts() bool { return r.kept.isWhole && r.kept.record.Account == r.account }
