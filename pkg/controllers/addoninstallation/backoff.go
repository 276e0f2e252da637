package addoninstallation

import (
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// retries are attempts in a row that failed, and when the next one begins; zero where none did.
type retries struct {
	count int32
	next  time.Time
}

// backOff gives a failure without a wait of its own the wait that its number in a row earns.
// Waiting for something is no failure.
func (f *facts) backOff(outcome loop.Outcome) loop.Outcome {
	retry, failed := outcome.(loop.RetryAt)
	if !failed || retry.After > 0 {
		f.memory.failures, f.retries = 0, retries{f.HookAttempts, f.HookRetry}
		if f.retries.count == 0 {
			f.refused(outcome)
		}
		return outcome
	}
	f.memory.failures++
	retry.After = backoff.After(f.memory.failures, time.Second, installer.SlowestRetry)
	f.retries = retries{f.memory.failures, time.Now().Add(retry.After)}
	return retry
}

// refused tells, of what can't go on before somebody does something, how often that was found and when all of it is tried
// again at the latest. Each of these is in the status once an attempt, and attempts are minutes apart.
func (f *facts) refused(outcome loop.Outcome) {
	said, wait := judge(outcome), loop.ComeBack(outcome)
	if !triedAgain[said.reason] || wait < installer.RefusedRecheck {
		f.memory.refusals = 0
		return
	}
	f.memory.refusals++
	f.retries = retries{f.memory.refusals, time.Now().Add(wait)}
}

// triedAgain are reasons of what is tried again although nothing is known to have changed.
var triedAgain = map[string]bool{
	kubermaticv1.ReasonFetchFailed: true, kubermaticv1.ReasonArtifactNotFound: true, kubermaticv1.ReasonArtifactRefused: true,
	kubermaticv1.ReasonLimitExceeded: true, kubermaticv1.ReasonNamespaceMissing: true, kubermaticv1.ReasonKindNotServed: true,
	kubermaticv1.ReasonObjectExists: true, kubermaticv1.ReasonConflict: true, kubermaticv1.ReasonImmutableField: true,
	kubermaticv1.ReasonObjectInvalid: true, kubermaticv1.ReasonReleaseNameTaken: true,
}
