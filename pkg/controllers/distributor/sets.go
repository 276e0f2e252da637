package distributor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// setReadings remembers sets by UID: validating one takes more time than the rest of a reconciliation.
type setReadings map[types.UID]setReading

type setReading struct {
	generation int64
	// refusal is why it is not copied, reason the one for status, if not Invalid.
	refusal error
	reason  string
	digest  string
	// depends has the set's digest and those of the catalogues that it depends on. pass numbers the reconciliation that
	// last changed it.
	depends string
	run     int64
}

// secondCoreError: another set of type Core comes first.
type secondCoreError struct{ first string }

func (e *secondCoreError) Error() string {
	return fmt.Sprintf("AddonSet %q is of type Core too and comes first, by priority, age or name: only one can be of this type", e.first)
}

// tooManyError: the platform already has as many older sets as allowed.
type tooManyError struct{}

func (e *tooManyError) Error() string {
	return fmt.Sprintf("there are more than %d AddonSets, and only the oldest ones are used: delete some", addonset.MaxSets)
}

// readSets decides which AddonSets are copied, and collects the problems of the others.
func (r *Reconciler) readSets(_ context.Context, f *facts) *loop.Outcome {
	r.runs++
	fresh, core := setReadings{}, firstCore(f.allSets, r.options.Namespace)
	beyond := youngest(f.allSets, r.options.Namespace)
	digests := digestsOf(f.merged)
	f.sets, f.setFindings = map[string]*copies.Set{}, map[types.UID]fleet.Finding{}
	for i := range f.allSets {
		object := &f.allSets[i]
		found := fleet.Finding{Name: client.ObjectKeyFromObject(object), Generation: object.Generation}
		if object.Namespace != r.options.Namespace {
			found.Reason = v1.ReasonWrongNamespace
			found.Refusal = fmt.Sprintf("sets are read in namespace %q only: create it there", r.options.Namespace)
			f.setFindings[object.UID] = found
			continue
		}
		reading := r.readSet(object, digests)
		if reading.reason == v1.ReasonTooLarge {
			f.recheckIn(spaceRecheck)
		}
		fresh[object.UID] = reading
		refusal := reading.refusal
		if refusal == nil && object.Spec.Type == v1.AddonSetCore && core.UID != object.UID {
			refusal = &secondCoreError{core.Name}
		}
		if refusal == nil && beyond[object.UID] {
			refusal = &tooManyError{}
		}
		if refusal != nil {
			found.Reason, found.Refusal = cmp.Or(reading.reason, v1.ReasonInvalid), refusal.Error()
		} else if refused := f.notAllowed[object.UID]; len(refused) > 0 {
			refusal = errors.New(strings.Join(refused, "; "))
			found.Reason, found.Refusal = v1.ReasonSecretNotAllowed, refusal.Error()
		}
		found.SecretWarnings = f.warnings[object.UID]
		found.Run, found.Catalogues = reading.run, catalogue.DependencyDigest(dependencies(&object.Spec, digests))
		f.setFindings[object.UID] = found
		if !slices.Contains(object.Finalizers, v1.FinalizerCleanupSet) {
			continue // nothing is copied before package fleet protects it
		}
		wanted := &copies.Set{UID: object.UID, Generation: object.Generation, Created: object.CreationTimestamp, Run: reading.run}
		if refusal == nil {
			wanted.Spec, wanted.Digest = &object.Spec, reading.digest
		}
		f.sets[object.Name] = wanted
	}
	r.setReadings = fresh
	return nil
}

func (r *Reconciler) readSet(object *v1.AddonSet, digests map[string]string) setReading {
	reading, known := r.setReadings[object.UID]
	if budget.IsStub(object) {
		reading.generation, reading.reason = 0, v1.ReasonTooLarge // it is read once it is whole
		reading.refusal = r.master.HeldSets.Refusal("AddonSet", object)
		return reading
	}
	if !known || reading.generation != object.Generation {
		run, depends := reading.run, reading.depends
		reading = setReading{generation: object.Generation, run: run, depends: depends, refusal: addonset.Validate(object)}
		digest, err := catalogue.SetDigest(&object.Spec)
		if err != nil && reading.refusal == nil {
			reading.refusal = err
		}
		reading.digest = digest
	}
	depends := reading.digest + catalogue.DependencyDigest(dependencies(&object.Spec, digests))
	if depends != reading.depends {
		reading.depends, reading.run = depends, r.runs
	}
	return reading
}

func digestsOf(merged catalogue.Merged) map[string]string {
	digests := make(map[string]string, len(merged.Addons))
	for name, addon := range merged.Addons {
		digests[name] = addon.Digest
	}
	return digests
}

func dependencies(spec *v1.AddonSetSpec, digests map[string]string) map[string]string {
	named := map[string]string{}
	for _, name := range catalogue.Dependencies(spec, digests) {
		named[name] = digests[name]
	}
	return named
}

// youngest are the sets beyond the number that a platform may have. The webhook refuses them at that number.
func youngest(all []v1.AddonSet, namespace string) map[types.UID]bool {
	var ours []*v1.AddonSet
	for i := range all {
		if all[i].Namespace == namespace {
			ours = append(ours, &all[i])
		}
	}
	if len(ours) <= addonset.MaxSets {
		return nil
	}
	slices.SortFunc(ours, func(a, b *v1.AddonSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	beyond := map[types.UID]bool{}
	for _, one := range ours[addonset.MaxSets:] {
		beyond[one.UID] = true
	}
	return beyond
}

// firstCore is the set of type Core that counts.
func firstCore(all []v1.AddonSet, namespace string) *v1.AddonSet {
	first := &v1.AddonSet{}
	for i := range all {
		set := &all[i]
		if set.Namespace == namespace && set.Spec.Type == v1.AddonSetCore && (first.UID == "" || addonset.Compare(set, first) < 0) {
			first = set
		}
	}
	return first
}

// reportSets records the findings about each set, and which seeds exist.
func (r *Reconciler) reportSets(f *facts) {
	seeds := make([]string, 0, len(f.targets))
	for _, to := range f.targets {
		seeds = append(seeds, to.Name)
	}
	for uid, found := range f.setFindings {
		for _, name := range slices.Sorted(maps.Keys(f.valuesProblems)) {
			if f.valuesSets[name][uid] {
				found.SecretProblems = append(found.SecretProblems, fmt.Sprintf("Secret %q: %s", name, f.valuesProblems[name]))
			}
		}
		f.setFindings[uid] = found
	}
	r.fleet.Passed(f.setFindings, seeds)
}
