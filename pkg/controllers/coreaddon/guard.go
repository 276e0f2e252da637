package coreaddon

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// guard removals, where some came or went. The mutex is held.
func (r *Reconciler) guard(f *setFacts) {
	run, now := f.run, r.Clock.Now()
	looked, held := run.guard.Judge(run.shown.Removal, f.set.Annotations[v1.AnnotationRemovalApproved])
	for _, namespace := range held {
		one := run.clusters[namespace]
		one.Hold(run.guard.Waiting, now)
		run.tally.Put(one.name, one.Standing.Standing)
		r.staging.touched[namespace] = true // a new cluster may move by now
		r.staging.wakeSet()
	}
	for _, namespace := range looked {
		if run.clusters[namespace].IsGranted() {
			r.staging.wake(namespace)
		}
	}
}
