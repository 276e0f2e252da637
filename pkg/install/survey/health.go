package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Health counts the objects of an installation by their health.
type Health struct {
	// Total, Healthy and Failing count objects; the others are in progress.
	Total, Healthy, Failing int
	// Unhealthy has the first twenty that are not healthy, failed ones first.
	Unhealthy []calls.Note
	// InProgress says that some object may still become healthy.
	InProgress bool
	// Unjudged counts objects on which a rule can't be evaluated.
	Unjudged int
	// Finished are completed Jobs and Pods; give them to Inventory.Finish.
	Finished []ownership.Key
	// unhealthy has all of them; running has the Jobs and Pods that have not ended and are healthy by a rule, or do not
	// count. Reassess needs both. podOwner has the input of Explain.
	unhealthy, running []ownership.Key
	podOwner           map[ownership.Key]podOwner
}

const (
	// maxUnhealthy is also the limit of status.unhealthy.
	maxUnhealthy = 20
	// listFrom is the number of objects in a namespace from which one list costs less than reads.
	listFrom = 3
)

var changingKinds = map[schema.GroupKind]bool{
	calls.PodGK: true, calls.JobGK: true, calls.ClaimGK: true, ownership.DefinitionGK: true, calls.APIServiceGK: true,
}

type batch []ownership.Entry

// grouped joins entries of the same group, in the order of their first ones.
func grouped[G comparable](inventory ownership.Inventory, groupOf func(ownership.Entry) (group G, counts bool)) (all []batch) {
	at := map[G]int{}
	for _, entry := range inventory {
		group, counts := groupOf(entry)
		if !counts {
			continue
		}
		if _, found := at[group]; !found {
			at[group] = len(all)
			all = append(all, nil)
		}
		all[at[group]] = append(all[at[group]], entry)
	}
	return all
}

// batches are the entries whose health can change, by kind and namespace, those with rules apart.
func (a *assessor) batches(inventory ownership.Inventory) []batch {
	type place struct {
		group, kind, version, namespace string
		isRuled                         bool
	}
	return grouped(inventory, func(entry ownership.Entry) (place, bool) {
		version, changes := a.changes(entry)
		return place{entry.Group, entry.Kind, version, entry.Namespace, a.isRuled(entry.Key)}, changes
	})
}

// IsRunning says that Jobs or Pods may still end whose end the health does not wait for: Finished then has them.
func (h Health) IsRunning() bool { return len(h.running) > 0 }

// deadlineExceeded is kstatus' message about a workload whose pods are not read, since those of others were.
const deadlineExceeded = "Progress deadline exceeded"

// Cause is the cause in the user cluster of unhealthy objects; empty if there is none, or if an object failed for
// another reason.
func (h Health) Cause() (cause string) {
	for _, note := range h.Unhealthy {
		if note.Cause == "" && note.Reason == string(status.FailedStatus) && note.Message != deadlineExceeded {
			return ""
		}
		cause = cmp.Or(cause, note.Cause)
	}
	return cause
}

type finding struct {
	note     calls.Note
	failed   bool
	unjudged bool
	finished bool
	// running says that it is healthy, or does not count, and must be read until it ended.
	running  bool
	podOwner *podOwner
}

func sum(total int, findings []finding) Health {
	health := Health{Total: total, Healthy: total, podOwner: map[ownership.Key]podOwner{}}
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(failedFirst(a.note)-failedFirst(b.note), strings.Compare(a.note.Key.String(), b.note.Key.String()))
	})
	for _, one := range findings {
		if one.finished {
			health.Finished = append(health.Finished, one.note.Key)
			continue
		}
		if one.running {
			health.running = append(health.running, one.note.Key)
			continue
		}
		health.Healthy--
		if one.failed {
			health.Failing++
		}
		if one.unjudged {
			health.Unjudged++
		}
		health.unhealthy = append(health.unhealthy, one.note.Key)
		health.InProgress = health.InProgress || !one.failed
		if len(health.Unhealthy) == maxUnhealthy {
			continue
		}
		health.Unhealthy = append(health.Unhealthy, one.note)
		if one.podOwner != nil {
			health.podOwner[one.note.Key] = *one.podOwner
		}
	}
	return health
}

type assessor struct {
	owner    ownership.Owner
	target   calls.Target
	kinds    *calls.Kinds
	standard Standard
	// ofKind are the rules about all objects of a kind, ofObject those about one object.
	ofKind   map[schema.GroupKind][]int
	ofObject map[ownership.Key][]int
	// foreign are the objects that rules name and that are not the installation's.
	foreign []ownership.Key
	// whole are all objects of the installation; total is how many objects count, including those that only rules
	// require.
	whole ownership.Inventory
	total int

	// isLater says that there was an earlier assessment: kinds that were not served then are not discovered again.
	isLater bool

	lock     sync.Mutex
	findings []finding
}

// all assesses these entries of the installation.
func (a *assessor) all(ctx context.Context, inventory ownership.Inventory) (Health, error) {
	if err := calls.Each(ctx, a.batches(inventory), a.assess); err != nil {
		return Health{}, err
	}
	if err := calls.Each(ctx, a.foreign, a.readForeign); err != nil {
		return Health{}, err
	}
	a.expectObjects()
	return sum(a.total, a.findings), nil
}

func (a *assessor) assess(ctx context.Context, entries batch) error {
	version, _ := a.changes(entries[0])
	gvk := schema.GroupVersionKind{Group: entries[0].Group, Version: version, Kind: entries[0].Kind}
	isRuled := a.isRuled(entries[0].Key)
	where, served, err := a.find(gvk, isRuled)
	if err != nil {
		return fmt.Errorf("looking up the kind of %q: %w", entries[0].Key, err)
	}
	if !served {
		a.unknown(entries, "its kind is not served")
		return nil
	}
	if a.standard.Shared != nil && workloadKinds[gvk.GroupKind()] && !isRuled {
		if entries, err = a.standard.Shared.withoutHealthy(ctx, a.target, where, entries); err != nil || len(entries) == 0 {
			return err
		}
	}
	if err = a.read(ctx, where, entries); calls.IsKindTrouble(entries[0].GroupKind(), err) {
		a.unknown(entries, "the API server can't read objects of its kind")
		return nil
	}
	return err
}

func (a *assessor) unknown(entries batch, why string) {
	for _, entry := range entries {
		a.add(finding{note: calls.Note{Key: entry.Key, Reason: string(status.UnknownStatus), Message: why}})
	}
}

func (a *assessor) read(ctx context.Context, where calls.Resource, entries batch) (err error) {
	of := calls.DynamicOf(a.target, where, entries[0].Namespace)
	if len(entries) >= listFrom {
		if entries, err = a.list(ctx, of, entries); err != nil {
			return err
		}
	}
	return calls.Each(ctx, entries, func(ctx context.Context, entry ownership.Entry) error {
		return a.readOne(ctx, of, entry)
	})
}

// list assesses the listed objects that have the owner's label. Missed are the other entries.
func (a *assessor) list(ctx context.Context, client dynamic.ResourceInterface, entries batch) (missed batch, err error) {
	waiting := make(map[string]ownership.Entry, len(entries))
	for _, entry := range entries {
		waiting[entry.Name] = entry
	}
	selector := kubermaticv1.LabelInstallation + "=" + a.owner.ID()
	err = calls.EachPage(ctx, selector, func(ctx context.Context, options metav1.ListOptions) (calls.Page, error) {
		page, err := client.List(ctx, options)
		if err != nil {
			return calls.Page{}, err
		}
		for i := range page.Items {
			live := &page.Items[i]
			if entry, wanted := waiting[live.GetName()]; wanted && ctx.Err() == nil {
				delete(waiting, entry.Name)
				a.assessOne(ctx, entry, live)
			}
		}
		return calls.Page{Items: len(page.Items), Next: page.GetContinue()}, ctx.Err()
	})
	if err != nil && !calls.IsUnserved(err) {
		return nil, fmt.Errorf("listing the %s objects in namespace %q: %w", entries[0].Kind, entries[0].Namespace, err)
	}
	for _, entry := range entries {
		if _, still := waiting[entry.Name]; still {
			missed = append(missed, entry)
		}
	}
	return missed, nil
}

func (a *assessor) readOne(ctx context.Context, client dynamic.ResourceInterface, entry ownership.Entry) error {
	live, err := calls.ReadWhole(ctx, client, calls.Place{Namespace: entry.Namespace, Name: entry.Name})
	if apierrors.IsNotFound(err) {
		a.add(finding{note: calls.Note{Key: entry.Key, Reason: string(status.NotFoundStatus), Message: "it does not exist"}})
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %q: %w", entry.Key, err)
	}
	a.assessOne(ctx, entry, live)
	return nil
}

func (a *assessor) assessOne(ctx context.Context, entry ownership.Entry, live *unstructured.Unstructured) {
	if live.GetUID() != entry.UID {
		a.add(finding{note: calls.Note{Key: entry.Key, Reason: string(status.NotFoundStatus), Message: "another object has its name"}})
		return
	}
	if rules := a.rulesOf(entry.Key); len(rules) > 0 || a.standard.OnlyRules {
		a.assessRuled(ctx, entry.Key, rules, live)
		return
	}
	state, message := a.state(ctx, live)
	switch {
	case state == status.CurrentStatus && isFinishing(entry.GroupKind(), live):
		a.add(finding{note: calls.Note{Key: entry.Key}, finished: true})
	case state != status.CurrentStatus:
		note := calls.Note{Key: entry.Key, Reason: string(state), Message: calls.CutText(message)}
		found := finding{note: note, failed: state == status.FailedStatus}
		if workload, known := podOwnerOf(entry.GroupKind(), live); known {
			found.podOwner = &workload
		}
		if words := podReportOf(live); entry.GroupKind() == calls.PodGK && words.rank != rankReady {
			found.note.Message, found.note.Cause = words.text, words.cause
		}
		a.add(found)
	}
}

func (a *assessor) add(v finding) {
	if !v.finished && !v.running && !a.counts(v.note.Key) {
		return
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.findings = append(a.findings, v)
}
