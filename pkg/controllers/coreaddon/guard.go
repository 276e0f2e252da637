package coreaddon

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// guard updates the removals that need approval. The caller holds the mutex.
func (r *Reconciler) guard(f *setFacts) {
	run, now := f.run, r.Clock.Now()
	looked, held := run.guard.Evaluate(run.shown.Removal, f.set.Annotations[v1.AnnotationRemovalApproved])
	for _, name := range held {
		one := run.clusters[run.keys[name]]
		one.Hold(run.guard.Waiting, now)
		run.tally.Put(name, one.ClusterStatus.ClusterStatus)
		r.staging.touched[run.keys[name]] = true // a new cluster may be allowed to move now
		r.staging.wakeSet()
	}
	for _, name := range looked {
		if of := run.keys[name]; run.clusters[of].IsGranted() {
			r.staging.wake(of)
		}
	}
}
