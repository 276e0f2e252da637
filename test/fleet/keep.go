package fleet

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// keepPause is the time between the end of a process and its next start; it doubles up to keepMost while the process
// ends at once again.
const (
	keepPause = time.Second
	keepMost  = 30 * time.Second
)

// keeping has the data to keep control planes running.
type keeping struct {
	on    atomic.Bool
	group sync.WaitGroup
}

// keep restarts every present process, and every control-plane program that is started later, when it ends on its
// own. One that its owner killed is not restarted.
func (f *Fleet) keep() {
	f.keeping.on.Store(true)
	for _, process := range f.Processes() {
		f.watch(process)
	}
}

func (f *Fleet) watch(process *Process) {
	f.keeping.group.Go(func() {
		for pause := keepPause; process != nil; {
			began := time.Now()
			<-process.Done()
			if time.Since(began) > keepMost {
				pause = keepPause
			}
			process, pause = f.again(process, pause), min(2*pause, keepMost)
		}
	})
}

// again starts a process that ended, after a pause; nil: it is not to run any longer.
func (f *Fleet) again(ended *Process, pause time.Duration) *Process {
	for !ended.killed.Load() && !f.starter.isStopped() {
		f.progress.Printf("%s ended (%v); starting it again", ended.Name(), ended.Ended())
		if !f.starter.sleep(pause) || ended.killed.Load() {
			return nil
		}
		process, err := f.starter.start(ended.how)
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			f.progress.Printf("%s does not start again: %v", ended.Name(), err)
			continue
		}
		for _, cluster := range f.clusters {
			cluster.replace(ended, process)
		}
		return process
	}
	return nil
}

// replace makes StopServer end the process that runs now. If StopServer ended the previous one meanwhile, the new one
// ends too.
func (c *Cluster) replace(ended, now *Process) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.server != ended {
		return
	}
	if c.server = now; ended.killed.Load() {
		now.Kill()
	}
}

func (c *Cluster) serve(process *Process) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server = process
}
