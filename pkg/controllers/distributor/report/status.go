package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// How many conflicts and seeds a status lists; it counts all.
const (
	conflictsListed = 50
	seedsListed     = 200
	// secretsNamed and seedsNamed are how many Secrets and seeds a message names.
	secretsNamed, seedsNamed = 5, 5
)

// facts are the input of a catalogue's status.
type facts struct {
	Findings
	// seeds are all seeds, by name.
	seeds []seed.State
	// wonInGit is the catalogue in git of the first conflict's winner; empty if there is none.
	wonInGit string
	// checkers are the seeds that check sources, once all seeds were asked.
	checkers []string
	asked    bool
	// awaited is the remaining time to wait for first reports if no seed checks.
	awaited time.Duration
	// leaving are the installations with versions that the catalogue tells clusters to leave.
	leaving usage.Stay
}

// listed are the seeds that a status has rows for.
func (f *facts) listed() []seed.State { return f.seeds[:min(len(f.seeds), seedsListed)] }

// hasRows says whether a catalogue has rows of seeds: generated and empty ones don't.
func (f *facts) hasRows() bool { return f.Parent == "" && len(f.Digests) > 0 }

// statusOf is the whole status of a catalogue, and its only writer. For one in git, condition Fetched, revision and
// counts are controller gitcatalogue's, and stay.
func statusOf(object *v1.AddonCatalogue, f *facts) v1.AddonCatalogueStatus {
	next := *object.Status.DeepCopy()
	next.ObservedGeneration = f.Read
	if object.Spec.Git == nil && f.Read == object.Generation && !budget.IsStub(object) {
		next.Addons, next.Versions = catalogue.Size(&object.Spec)
	}
	next.Conflicts = slices.Clone(f.Conflicts[:min(len(f.Conflicts), conflictsListed)])
	next.ConflictCount = int32(len(f.Conflicts)) // at most all versions
	next.Seeds, next.SyncedSeeds = rowsOf(object.Status.Seeds, f)
	for _, condition := range []metav1.Condition{
		conflicting(object, f), sourcesReady(object, f), ready(object, next.Seeds, f), leaving(f),
	} {
		if condition.Reason == "" {
			meta.RemoveStatusCondition(&next.Conditions, condition.Type)
			continue
		}
		condition.ObservedGeneration = f.Read
		conditions.Set(&next.Conditions, condition)
	}
	return next
}

func isTrue(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func absent(kind string) metav1.Condition { return metav1.Condition{Type: kind} }

func conflicting(object *v1.AddonCatalogue, f *facts) metav1.Condition {
	if len(f.Conflicts) == 0 {
		return isFalse(v1.ConditionConflicting, v1.ReasonNoConflict, "no other catalogue defines the same versions")
	}
	first := f.Conflicts[0]
	return isTrue(v1.ConditionConflicting, first.Reason,
		fmt.Sprintf("%s; status.conflicts has %d in all", conflictText(object, first, f.wonInGit), len(f.Conflicts)))
}

func conflictText(object *v1.AddonCatalogue, conflict v1.CatalogueConflict, inGit string) string {
	winner := fmt.Sprintf("%q", conflict.WonBy)
	if inGit != "" {
		winner = fmt.Sprintf("%q in git (generated: %q)", inGit, conflict.WonBy)
	}
	switch {
	case conflict.Reason == v1.ReasonCoreReserved:
		return fmt.Sprintf("add-on %q is left out: Core catalogue %s reserves the name", conflict.Addon, winner)
	case conflict.Reason == v1.ReasonOwnedByOther && conflict.Version != "":
		return fmt.Sprintf("version %q of add-on %q is left out: Custom catalogue %s took over the add-on, and its previous owner can't "+
			"add versions: remove the version from catalogue %q", conflict.Version, conflict.Addon, winner, catalogue.Author(object))
	case conflict.Reason == v1.ReasonOwnedByOther:
		return fmt.Sprintf("add-on %q is left out here, since Custom catalogue %s owns it. Remove it from one of the two catalogues, or ask "+
			"a user with verb %s to set annotation %s=%s on %q", conflict.Addon, winner,
			v1.VerbManageCore, v1.AnnotationTakeOver, conflict.Addon, catalogue.Author(object))
	case conflict.WonBy == object.Name, inGit == object.Name:
		return fmt.Sprintf("add-on %q version %q is in other catalogues too; this one has precedence", conflict.Addon, conflict.Version)
	}
	return fmt.Sprintf("add-on %q version %q is left out: catalogue %s has this version too, and has precedence",
		conflict.Addon, conflict.Version, winner)
}

// rowsOf has a row for each seed, which keeps revision and time until another revision arrives.
func rowsOf(present []v1.SeedSync, f *facts) (rows []v1.SeedSync, synced int32) {
	if !f.hasRows() {
		return nil, 0
	}
	before := map[string]v1.SeedSync{}
	for _, row := range present {
		before[row.Name] = row
	}
	revision := revisionOf(f.Digests)
	for _, found := range f.listed() {
		row := before[found.Name]
		row.Name, row.Message = found.Name, text.Message(found.Behind(f.Digests, f.Secrets))
		row.Synced = row.Message == ""
		_, row.Sources = found.Unfetched.Of(f.Digests)
		if row.Synced {
			synced++
		}
		if row.Synced && row.Revision != revision {
			at := metav1.NewTime(found.At.Truncate(time.Second)) // as the API stores it
			row.Revision, row.LastSyncTime = revision, &at
		}
		rows = append(rows, row)
	}
	return rows, synced
}

// revisionOf is one digest of the merged add-ons with a part of a catalogue.
func revisionOf(digests map[string]string) string {
	revision, err := catalogue.Digest(digests)
	if err != nil { // a map of texts can always be encoded
		return ""
	}
	return revision
}

func ready(object *v1.AddonCatalogue, rows []v1.SeedSync, f *facts) metav1.Condition {
	switch {
	case f.Waits != "":
		return isFalse(v1.ConditionReady, v1.ReasonDistributing, f.Waits)
	case f.Refusal != "":
		return isFalse(v1.ConditionReady, f.Reason, refusalText(f))
	case len(f.TooLarge) > 0:
		return isFalse(v1.ConditionReady, v1.ReasonTooLarge, strings.Join(f.TooLarge, "; "))
	case len(f.NotAllowed) > 0:
		return isFalse(v1.ConditionReady, v1.ReasonSecretNotAllowed, text.First(f.NotAllowed, secretsNamed)+"; versions that need it are left "+
			"out")
	case object.Spec.Git != nil && !meta.IsStatusConditionTrue(object.Status.Conditions, v1.ConditionFetched):
		return notFetched(object)
	case f.Parent != "":
		return isTrue(v1.ConditionReady, v1.ReasonMerged, fmt.Sprintf(
			"the catalogue is merged; the status of catalogue %q shows the seeds", f.Parent))
	case len(f.Digests) == 0:
		return isTrue(v1.ConditionReady, v1.ReasonDistributed, "the catalogue adds nothing to the content of the seeds")
	case len(f.seeds) == 0:
		return isFalse(v1.ConditionReady, v1.ReasonDistributing, "there is no Seed")
	}
	isWhole, summary := distribution(rows, f.seeds)
	message := strings.Join(append([]string{summary}, secretTexts(f)...), "; ")
	if len(f.SecretWarnings) > 0 {
		message += "; " + text.First(f.SecretWarnings, secretsNamed)
	}
	if !isWhole {
		return isFalse(v1.ConditionReady, v1.ReasonDistributing, message)
	}
	return isTrue(v1.ConditionReady, v1.ReasonDistributed, message)
}

// notFetched uses the reason of condition Fetched.
func notFetched(object *v1.AddonCatalogue) metav1.Condition {
	fetched := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionFetched)
	if fetched == nil {
		return isFalse(v1.ConditionReady, v1.ReasonFetching, "the repository has not been read yet")
	}
	return isFalse(v1.ConditionReady, fetched.Reason, fetched.Message)
}

func refusalText(f *facts) string {
	switch {
	case f.Reason != v1.ReasonInvalid:
		return f.Refusal
	case f.Kept:
		return f.Refusal + "; the seeds keep the last valid content"
	}
	return f.Refusal + "; the seeds keep its last content"
}

// distribution sums up the rows. A seed that can't be reached does not make a catalogue unready.
func distribution(rows []v1.SeedSync, seeds []seed.State) (isWhole bool, message string) {
	reached := map[string]bool{}
	for _, found := range seeds {
		reached[found.Name] = found.Reached
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
		message += fmt.Sprintf("; not yet: %s", strings.Join(waiting, ", "))
	}
	return len(waiting) == 0, message
}

// leaving says how many installations still have versions that annotation leave-versions names.
func leaving(f *facts) metav1.Condition {
	left := f.leaving
	switch {
	case f.LeaveProblem != "":
		return isFalse(v1.ConditionLeaving, v1.ReasonLeaveUnreadable, f.LeaveProblem)
	case len(f.Leave) == 0:
		return absent(v1.ConditionLeaving)
	case left.Installations+left.Uncounted == 0:
		return isFalse(v1.ConditionLeaving, v1.ReasonVersionsLeft, fmt.Sprintf(
			"no installation has %s any more, and none gets it again while annotation %s is set", f.Leave, v1.AnnotationLeaveVersions))
	}
	message := fmt.Sprintf("clusters leave %s: %d installations on %d seeds have it", f.Leave, left.Installations, left.Seeds)
	if left.Uncounted > 0 {
		message += fmt.Sprintf("; %d seeds are not counted", left.Uncounted)
	}
	return isTrue(v1.ConditionLeaving, v1.ReasonVersionsInUse, message)
}
