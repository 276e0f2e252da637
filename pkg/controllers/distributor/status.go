package distributor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// conflictsListed is how many conflicts a status lists; it counts all of them. seedsListed likewise.
const (
	conflictsListed = 50
	seedsListed     = 200
)

// reconcileStatus writes the status of one catalogue, once a pass has seen its present generation.
func (r *Reconciler) reconcileStatus(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1.AddonCatalogue{}
	if err := r.cached.Get(ctx, request.NamespacedName, object); err != nil {
		r.troubles.Delete(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	known, seeds, ok := r.board.facts(object.UID, object.Generation)
	if !ok || !isInput(object) {
		return reconcile.Result{}, nil
	}
	conflicts, leaving, trouble := object.Status.Conflicts, leavingReason(object), r.toldOf(object)
	turn := loop.StartShared(r.cached, object)
	project(object, known, seeds)
	projectLeaving(object, known, r.usage.having(known.leave))
	result, err := turn.Finish(ctx, loop.Done{})
	if err == nil && result.IsZero() {
		r.tellConflicts(object, conflicts)
		r.tellLeaving(object, leaving)
		r.tellTrouble(ctx, object, trouble)
	}
	return result, err
}

// project writes what is known of a catalogue into its status. It is the only writer of it, but for what controller
// gitcatalogue finds out about a catalogue in git: condition Fetched, revision and counts.
func project(object *v1.AddonCatalogue, known outcome, seeds []seedState) {
	s := &object.Status
	s.ObservedGeneration = object.Generation
	if object.Spec.Git == nil {
		s.Addons, s.Versions = count(&object.Spec)
	}
	projectConflicts(object, known)
	projectSeeds(s, known, seeds)
	projectSources(object, known, seeds)
	projectReady(object, known, seeds)
}

func count(spec *v1.AddonCatalogueSpec) (addons, versions int32) {
	for _, addon := range spec.Addons {
		addons++
		versions += int32(len(addon.Versions)) // at most 128 by the schema
	}
	return addons, versions
}

func projectConflicts(object *v1.AddonCatalogue, known outcome) {
	s := &object.Status
	s.Conflicts = slices.Clone(known.conflicts[:min(len(known.conflicts), conflictsListed)])
	s.ConflictCount = int32(len(known.conflicts)) // at most all versions
	if len(known.conflicts) == 0 {
		conditions.False(&s.Conditions, object.Generation, v1.ConditionConflicting, v1.ReasonNoConflict,
			"no other catalogue defines the same")
		return
	}
	first := known.conflicts[0]
	conditions.True(&s.Conditions, object.Generation, v1.ConditionConflicting, first.Reason,
		fmt.Sprintf("%s; status.conflicts has %d in all", tellConflict(object.Name, first), len(known.conflicts)))
}

func tellConflict(self string, conflict v1.CatalogueConflict) string {
	switch {
	case conflict.Reason == v1.ReasonCoreReserved:
		return fmt.Sprintf("add-on %q is left out: Core catalogue %q reserves the name", conflict.Addon, conflict.WonBy)
	case conflict.WonBy == self:
		return fmt.Sprintf("add-on %q version %q is in other catalogues too; this one wins", conflict.Addon, conflict.Version)
	}
	return fmt.Sprintf("add-on %q version %q is left out: catalogue %q has it with precedence",
		conflict.Addon, conflict.Version, conflict.WonBy)
}

// projectSeeds writes a row for each seed. A row keeps its revision and time until another revision has arrived.
func projectSeeds(s *v1.AddonCatalogueStatus, known outcome, seeds []seedState) {
	before := map[string]v1.SeedSync{}
	for _, row := range s.Seeds {
		before[row.Name] = row
	}
	s.Seeds, s.SyncedSeeds = nil, 0
	if known.parent != "" || len(known.digests) == 0 {
		return // A catalogue in git has the rows of all that was generated from it; one that adds nothing has none.
	}
	for _, seed := range seeds[:min(len(seeds), seedsListed)] {
		row := before[seed.name]
		row.Name, row.Message = seed.name, text.Message(behind(known, seed))
		row.Synced = row.Message == ""
		_, row.Sources = seed.unfetched.of(known.digests)
		if revision := revisionOf(known.digests); row.Synced && row.Revision != revision {
			// Times are kept to the second by the API.
			at := metav1.NewTime(seed.at.Truncate(time.Second))
			row.Revision, row.LastSyncTime = revision, &at
		}
		if row.Synced {
			s.SyncedSeeds++
		}
		s.Seeds = append(s.Seeds, row)
	}
}

// behind says what keeps a seed from having all of a catalogue; empty: it has.
func behind(known outcome, seed seedState) string {
	if !seed.reached {
		return seed.problem
	}
	for _, name := range slices.Sorted(maps.Keys(known.digests)) {
		if by := seed.held[name]; by != "" {
			return fmt.Sprintf("AddonCatalogue %q stays as it is: what catalogue %q says can't be told", name, by)
		}
		if failed := seed.failedCatalogues[name]; failed != "" {
			return failed
		}
		if seed.digests[name] != known.digests[name] {
			return fmt.Sprintf("AddonCatalogue %q is on its way", name)
		}
	}
	for _, name := range known.secrets {
		if failed := seed.failedSecrets[name]; failed != "" {
			return failed
		}
	}
	return seed.keyFailed
}

// revisionOf is one word for the merged add-ons that a catalogue has a part in.
func revisionOf(digests map[string]string) string {
	revision, err := catalogue.Digest(digests)
	if err != nil { // A map of texts always encodes.
		return ""
	}
	return revision
}

func projectReady(object *v1.AddonCatalogue, known outcome, seeds []seedState) {
	list, generation := &object.Status.Conditions, object.Generation
	switch {
	case known.refusal != "":
		conditions.False(list, generation, v1.ConditionReady, known.reason, refused(known))
		return
	case len(known.tooLarge) > 0:
		slices.Sort(known.tooLarge)
		conditions.False(list, generation, v1.ConditionReady, v1.ReasonTooLarge,
			strings.Join(known.tooLarge, "; ")+"; the seeds keep the last good one")
		return
	case object.Spec.Git != nil && !fetched(object):
		return
	case known.parent != "":
		conditions.True(list, generation, v1.ConditionReady, v1.ReasonMerged,
			fmt.Sprintf("it is merged; the status of catalogue %q has the seeds", known.parent))
		return
	case len(known.digests) == 0:
		conditions.True(list, generation, v1.ConditionReady, v1.ReasonDistributed, "it adds nothing to what the seeds get")
		return
	case len(seeds) == 0:
		conditions.False(list, generation, v1.ConditionReady, v1.ReasonDistributing, "there is no Seed to bring it to")
		return
	}
	reason, summary := distribution(object.Status.Seeds, seeds)
	told := []string{summary}
	for _, name := range slices.Sorted(maps.Keys(known.secretProblems)) {
		told = append(told, fmt.Sprintf("Secret %q is not handed on: %s", name, known.secretProblems[name]))
	}
	message := strings.Join(told, "; ")
	if reason == v1.ReasonDistributed {
		conditions.True(list, generation, v1.ConditionReady, reason, message)
		return
	}
	conditions.False(list, generation, v1.ConditionReady, reason, message)
}

// fetched says whether the repository was read; otherwise Ready says why not, as Fetched does.
func fetched(object *v1.AddonCatalogue) bool {
	list := &object.Status.Conditions
	found := meta.FindStatusCondition(*list, v1.ConditionFetched)
	switch {
	case found == nil:
		conditions.False(list, object.Generation, v1.ConditionReady, v1.ReasonFetching, "the repository has not been read yet")
		return false
	case found.Status != metav1.ConditionTrue:
		conditions.False(list, object.Generation, v1.ConditionReady, found.Reason, found.Message)
		return false
	}
	return true
}

func refused(known outcome) string {
	switch {
	case known.reason != v1.ReasonInvalid:
		return known.refusal
	case known.kept:
		return known.refusal + "; the seeds keep the last valid content"
	}
	return known.refusal + "; the seeds keep what they have of it"
}

// distribution sums the rows up. A seed that can't be reached does not make a catalogue unready: it catches up.
func distribution(rows []v1.SeedSync, seeds []seedState) (reason, message string) {
	reached := map[string]bool{}
	for _, seed := range seeds {
		reached[seed.name] = seed.reached
	}
	var synced int
	var waiting, away []string
	for _, row := range rows {
		switch {
		case row.Synced:
			synced++
		case reached[row.Name]:
			waiting = append(waiting, row.Name)
		default:
			away = append(away, row.Name)
		}
	}
	message = fmt.Sprintf("%d of %d seeds have it", synced, len(rows))
	if len(away) > 0 {
		message += fmt.Sprintf("; not reached: %s", strings.Join(away, ", "))
	}
	if len(waiting) > 0 {
		return v1.ReasonDistributing, message + fmt.Sprintf("; not yet: %s", strings.Join(waiting, ", "))
	}
	return v1.ReasonDistributed, message
}
