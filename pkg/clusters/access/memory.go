package access

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Memory has a caller's state of one installation between reconciliations. The zero value knows nothing; it never has a
// secret.
type Memory struct {
	// holder identifies Cluster and installation: another one of the same name has another holder.
	holder      string
	credentials map[string]*remembered
}

// remembered has the known state of one credential.
type remembered struct {
	kept kept
	// account is the UID of the ServiceAccount; empty for certificates.
	account types.UID
	// made are kinds that were seen or created, past the cache, which may not show them yet.
	made map[string]bool
	// retired is the UID of the Secret that was removed last, which the cache may still show.
	retired types.UID
	// tries counts failures in a row to get the next credential; the next try is at retry, or when reconcile-at changes.
	tries       int
	retry       time.Time
	reconcileAt string
	// waiting is why there is no credential yet, request the pending request.
	waiting *Problem
	request string
}

// kept is the known state of the Secret on the seed.
type kept struct {
	uid types.UID
	// version is the Secret's version as read or written; seen is the cache's version at that time.
	version, seen string
	record        record
	isWhole       bool
}

// mostRemembered is more names than two versions have.
const mostRemembered = 32

// turnTo forgets another holder's state. A caller may request the credentials of two versions in turn, so names that are not
// requested stay.
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

// rest resets the tries.
func (r *remembered) rest() {
	r.tries, r.retry, r.waiting, r.request = 0, time.Time{}, nil, ""
}

// wait records why there is no next credential yet, and when to try again.
func (r *remembered) wait(problem *Problem, retry time.Time, reconcileAt string) {
	r.waiting, r.retry, r.reconcileAt = problem, retry, reconcileAt
}

// isWaiting says whether it is too early for the next try. A time further away than any pause comes from a clock that was set back.
func (r *remembered) isWaiting(now time.Time, reconcileAt string) bool {
	pause := r.retry.Sub(now)
	return r.waiting != nil && pause > 0 && pause <= mostWait && r.reconcileAt == reconcileAt
}

// counts says whether there is a valid credential. The API server accepts no tokens of a deleted account.
func (r *remembered) counts() bool { return r.kept.isWhole && r.kept.record.Account == r.account }
