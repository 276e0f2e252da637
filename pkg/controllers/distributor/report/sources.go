package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// sourcesReady says whether the sources of the entries can be read: their Secrets on the master, and their content,
// by checks of the seeds and by the installations there. It does not change Ready. Without a problem, the condition
// stays the same until all seeds were asked.
func sourcesReady(object *v1.AddonCatalogue, f *facts) metav1.Condition {
	if len(f.NotAllowed) > 0 {
		return isFalse(v1.ConditionSourcesReady, v1.ReasonSecretNotAllowed, text.First(f.NotAllowed, secretsNamed))
	}
	if !f.hasRows() {
		return absent(v1.ConditionSourcesReady)
	}
	checked := f.checked()
	texts, reason := append(checked.faults(), secretTexts(f)...), checked.reason
	for _, found := range f.listed() {
		worst, said := found.Unfetched.Of(f.Digests)
		if said != "" {
			reason = usage.Worse(reason, worst)
			texts = append(texts, fmt.Sprintf("seed %q: %s", found.Name, said))
		}
	}
	if len(f.SecretProblems) > 0 {
		reason = v1.ReasonSecretNotCopied
	}
	before := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionSourcesReady)
	switch {
	case len(texts) == 0 && !f.asked && before != nil:
		return *before
	case len(texts) > 0:
		return isFalse(v1.ConditionSourcesReady, reason, text.Message(strings.Join(texts, "; ")))
	case checked.open > 0:
		return metav1.Condition{
			Type: v1.ConditionSourcesReady, Status: metav1.ConditionUnknown, Reason: v1.ReasonSourcesUnchecked,
			Message: fmt.Sprintf("not checked yet: %d of %s", checked.open, text.Count(len(f.Sources), "version")) + f.unchecked(),
		}
	}
	said := "every source was fetched"
	if checked.unrendered > 0 {
		said += fmt.Sprintf("; not rendered, since they need a cluster or values: %d of %s",
			checked.unrendered, text.Count(len(f.Sources), "version"))
	}
	return isTrue(v1.ConditionSourcesReady, v1.ReasonSourcesReady, said)
}

// unchecked says that no seed checks sources, or that none reported yet, and which seeds don't answer; empty if one does check, or
// not all seeds were asked yet.
func (f *facts) unchecked() string {
	if len(f.checkers) > 0 || !f.asked {
		return ""
	}
	message := "; no seed checks sources now"
	if f.awaited > 0 {
		message = "; the seeds have not reported on their checks yet"
	}
	var names []string
	for i := range f.seeds {
		if !f.seeds[i].Reached {
			names = append(names, f.seeds[i].Name)
		}
	}
	if len(names) > 0 {
		message += ", and these seeds do not answer: " + text.Names(names, seedsNamed)
	}
	return message
}

// checked sums up the seeds' findings about a catalogue's sources.
type checked struct {
	// first is the first of the bad versions, those with a fault; reason is the worst of the faults.
	first  string
	bad    int
	reason string
	// open is how many versions are not checked, unrendered how many were found and not rendered.
	open, unrendered int
}

func (f *facts) checked() (found checked) {
	for _, use := range f.Sources {
		fault, rendered, known := f.verdict(use.Key)
		switch {
		case !known:
			found.open++
		case fault.Reason != "":
			if found.bad == 0 {
				found.first = use.Text(fault)
			}
			found.bad++
			found.reason = usage.Worse(found.reason, fault.Reason)
		case !rendered:
			found.unrendered++
		}
	}
	return found
}

func (c *checked) faults() []string {
	switch c.bad {
	case 0:
		return nil
	case 1:
		return []string{c.first}
	}
	return []string{fmt.Sprintf("%s; and %d more", c.first, c.bad-1)}
}

// counts says whether a seed's report counts: the seed checks sources, or no seed does any more, and this is the last
// known report.
func (f *facts) counts(found seed.State) bool {
	return found.Checks != nil && (slices.Contains(f.checkers, found.Name) || f.asked && len(f.checkers) == 0)
}

// verdict is the finding about a source, and whether it was rendered: from the seed that must check it, or else from
// another one that did earlier.
func (f *facts) verdict(key string) (fault catalogue.SourceFault, rendered, known bool) {
	checker := catalogue.CheckerOf(key, f.checkers)
	for _, found := range f.seeds {
		if !f.counts(found) {
			continue
		}
		bad, isBad := found.Checks.Bad[key]
		switch {
		case found.Name == checker && (isBad || found.Checks.Good[key]):
			return bad, !found.Checks.Unrendered[key], true
		case found.Checks.Good[key]:
			fault, rendered, known = catalogue.SourceFault{}, !found.Checks.Unrendered[key], true
		case isBad && !known:
			fault, known = bad, true
		}
	}
	return fault, rendered, known
}

// secretTexts say which Secrets are not copied to the seeds, and why.
func secretTexts(f *facts) []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(f.SecretProblems)) {
		texts = append(texts, fmt.Sprintf("Secret %q is not copied to the seeds: %s", name, f.SecretProblems[name]))
	}
	return texts
}
