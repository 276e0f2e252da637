package cluster

import (
	"context"
	"errors"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// forgivenAfter is how many of the longest rests must pass without an offence before the count
// starts again.
const forgivenAfter = 4

// offences are answers that no API server gives. As probes would succeed all the same, each offence
// starts a rest without calls. Nothing shortens it: a tenant can change the kubeconfig at any time.
type offences struct {
	count int
	last  time.Time
	over  time.Time
}

// recordOffence needs the mutex, and a problem that is set.
func (k *connector) recordOffence(err error) {
	now := time.Now()
	if now.Sub(k.offences.last) > forgivenAfter*k.pace.most {
		k.offences.count = 0
	}
	k.offences.count++
	k.offences.last, k.offences.over = now, now.Add(k.pace.doubled(k.pace.rest, k.offences.count))
	var misbehaves *remote.MisbehavesError
	if errors.As(err, &misbehaves) {
		k.problem = k.trouble(v1.ReasonClusterMisbehaves, misbehaves.Error())
	}
}

// restingProblem is the problem of a cluster during its rest, else nil.
func (k *connector) restingProblem() *NotConnectedError {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if time.Now().Before(k.offences.over) {
		return k.problem
	}
	return nil
}

// await waits for the next visit: for the pace or a nudge, and for the end of a rest. It returns
// false when the context ends.
func (k *connector) await(ctx context.Context, failures int) bool {
	timer := time.NewTimer(k.pace.after(failures))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-k.nudges:
	}
	for {
		k.mutex.Lock()
		left := time.Until(k.offences.over)
		k.mutex.Unlock()
		if left <= 0 {
			return true
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
	}
}
