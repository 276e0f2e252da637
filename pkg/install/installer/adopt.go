package installer

import (
	"context"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/removal"
)

// CheckRelease looks, before the first write, for a Helm release of the name that is not in our records. Without
// annotation adopt it is refused; with it, it is adopted. A release that a deleted installation of the same name left
// is always adopted, and one of an existing installation never.
func (p *Run) CheckRelease(ctx context.Context, name string) *loop.Outcome {
	if name == "" {
		return nil
	}
	if known := p.previousRelease(); known != nil && known.Name == name {
		return p.byHandBefore(ctx, known)
	}
	found, err := helmrelease.Find(ctx, p.helmPlace(p.Asked.TargetNamespace), name, p.Owner)
	if err != nil {
		return p.remoteFailed(v1.ConditionApplied, err)
	}
	if found != nil && found.Installation != "" {
		return ReleaseTaken(found.Installation, name, found.Namespace)
	}
	if found == nil || found.Own || p.Asked.Adopt {
		p.Foreign = found
		return nil
	}
	p.Obstacle = &apply.Obstacle{Key: ownership.Key{Kind: "Secret", Namespace: found.Namespace, Name: found.Secret}}
	return waitToApply(v1.ReasonReleaseNameTaken, fmt.Sprintf(
		"the user cluster has a Helm release %q in namespace %q that is not this installation's (revision %d): "+
			"uninstall the release; or delete this installation and create it again with another releaseName; or annotate it with %s: "+
			"\"true\" to adopt the release",
		name, found.Namespace, found.Revision, v1.AnnotationAdopt), RefusedRecheck)
}

// FindExtras finds the objects of the adopted Helm release that the add-on lacks. They are pruned like those of an
// earlier revision, with the same guards. Without annotation adopt pruning was not requested, and they stay.
func (p *Run) FindExtras(ctx context.Context) *loop.Outcome {
	if p.Foreign == nil || !p.Foreign.ByHand && !p.Asked.Adopt {
		return nil
	}
	if p.Foreign.ByHand {
		left, err := p.byHandExtras(ctx, p.Foreign, p.Record().Superseded)
		if err != nil {
			logByHand(ctx, err)
			return nil
		}
		left = left[:min(len(left), max(0, ownership.MaxObjects-len(p.Record().Superseded)))]
		p.extras = removal.Prunable(left, p.Record().Inventory) // objects of the previous revision are pruned with it
		return nil
	}
	left, err := removal.Leftovers(ctx, p.target(), p.Foreign.Objects, removal.LeftoverOptions{
		Owner: p.Owner, Marks: p.Foreign.Marks(), Wanted: p.Objects, NameOf: p.nameOf(),
	})
	if err != nil {
		return p.remoteFailed(v1.ConditionApplied, err)
	}
	p.extras = left
	return nil
}

// reportAdoption reports once, when it is on record, which objects existed and whether they are adopted or pruned.
func (p *Run) reportAdoption(found *helmrelease.Foreign, left ownership.Inventory) {
	if found == nil {
		return
	}
	if found.Problem != "" {
		shown := "Secret %q of Helm release %q is ignored, because %s: objects that only this Secret lists stay in the user cluster"
		if len(found.Objects) > 0 {
			shown = "Secret %q of Helm release %q can't be read completely, since %s: objects in the unread part stay in the user cluster"
		}
		p.report(Event{Warning: true, Reason: v1.EventReleaseUnreadable, Action: "Adopt"}, shown, found.Secret, found.Name, found.Problem)
	}
	if found.ByHand {
		p.reportByHand(found, left)
		return
	}
	shown := "all its objects are part of the add-on"
	switch {
	case !p.Asked.Adopt:
		shown = "the release was left behind by an earlier installation of this name, and objects that only the release has stay"
	case len(left) > 0:
		shown = "no longer part of the add-on, to be pruned: " + text.Names(keyTexts(left), maxNamed)
	}
	p.report(Event{Reason: v1.EventAdopted, Action: "Adopt"}, "Helm release %q in namespace %q continues after its revision %d; %s",
		found.Name, found.Namespace, found.Revision, shown)
}

func keyTexts(entries ownership.Inventory) []string {
	texts := make([]string, len(entries))
	for i, entry := range entries {
		texts[i] = entry.Key.String()
	}
	return texts
}

// ReleaseTaken names the solution, which is no change of the installation: its releaseName and targetNamespace are
// immutable.
func ReleaseTaken(by, name, namespace string) *loop.Outcome {
	return waitToApply(v1.ReasonReleaseNameTaken, fmt.Sprintf("installation %q has Helm release %q in namespace %q: delete this "+
		"installation, and create it again with another name, targetNamespace or releaseName", by, name, namespace), RefusedRecheck)
}
