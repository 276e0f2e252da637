package cluster

import (
	"context"
	"errors"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// forgivenAfter is how many of the longest rests have to pass without an offence until the next one counts as the first.
const forgivenAfter = 4

// offences are what a cluster did that no API server does. A probe would get good answers all the same, so each offence
// means a rest, in which nobody calls and nothing shortens it: a tenant can change the kubeconfig as often as he likes.
type offences struct {
	count int
	last  time.Time
	// over is when the rest is.
	over time.Time
}

// offend needs the mutex, and a problem that stands.
func (k *keeper) offend(err error) {
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

// standing is the problem of a cluster that rests; nil: it does not.
func (k *keeper) standing() *NotConnectedError {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if time.Now().Before(k.offences.over) {
		return k.problem
	}
	return nil
}

// await waits for the next visit: by the pace or a nudge, and in any case for the end of a rest. False: the context ended.
func (k *keeper) await(ctx context.Context, failures int) bool {
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
