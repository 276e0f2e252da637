package fence

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock is the lock of a leader election. It informs the fence how long the lease holds.
func (f *Fence) Lock(lock resourcelock.Interface) resourcelock.Interface {
	return &watchedLock{Interface: lock, fence: f}
}

type watchedLock struct {
	resourcelock.Interface
	fence *Fence
}

func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface. A record without a holder releases the lease.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *watchedLock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	if err := l.fence.Holds(); err != nil {
		return fmt.Errorf("renewing %s: %w", l.Describe(), err)
	}
	if record.HolderIdentity != l.Identity() {
		l.fence.giveUp()
		return send(ctx, record)
	}
	if ahead := l.fence.aheadOfServer(); ahead > mostAhead {
		return fmt.Errorf("renewing %s: the clock here is %s ahead of the API server's, so soak times and deadlines would end early: correct "+
			"the clock of the node", l.Describe(), ahead.Round(time.Second))
	}
	sent := l.fence.now()
	if err := send(ctx, record); err != nil {
		return err
	}
	l.fence.renew(sent, time.Duration(record.LeaseDurationSeconds)*time.Second)
	return nil
}
