package installer

import (
	"context"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/text"
)

// CheckRelease finds out, before the first write, whether the user cluster has a Helm release of
// the name that no record of ours knows. Without annotation adopt that is a refusal; with it, the
// release is adopted. What an installation of our name left behind is adopted in any case, and what
// one has that still exists never.
func (p *Pass) CheckRelease(ctx context.Context, name string) *Stop {
	if name == "" {
		return nil
	}
	if known := p.previousRelease(); known != nil && known.Name == name {
		return p.byHandBefore(ctx, known)
	}
	found, err := helmrelease.Find(ctx, p.helmPlace(p.Asked.TargetNamespace), name, p.Owner)
	if err != nil {
		return p.remoteFailed(AboutApply, err)
	}
	if found != nil && found.Installation != "" {
		return ReleaseTaken(found.Installation, name, found.Namespace)
	}
	if found == nil || found.Own || p.Asked.Adopt {
		p.Foreign = found
		return nil
	}
	p.Obstacle = &apply.Obstacle{Key: ownership.Key{Kind: "Secret", Namespace: found.Namespace, Name: found.Secret}}
	return &Stop{
		About: AboutApply, Reason: v1.ReasonReleaseNameTaken, Recheck: RefusedRecheck,
		Message: fmt.Sprintf("the user cluster has a Helm release %q in namespace %q that is not this installation's (revision %d): "+
			"uninstall it; or delete this installation and create it again with another releaseName; or annotate it with %s: \"true\" "+
			"to take it over",
			name, found.Namespace, found.Revision, v1.AnnotationAdopt),
	}
}

// FindExtras finds what the Helm release that is adopted has and the add-on has not. It is pruned
// like what an earlier revision of ours had, with the same guards; without annotation adopt nobody
// asked for that, and it stays.
func (p *Pass) FindExtras(ctx context.Context) *Stop {
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
		p.extras = removal.Prunable(left, p.Record().Inventory) // what the revision before had is pruned with it
		return nil
	}
	left, err := removal.Leftovers(ctx, p.target(), p.Foreign.Objects, removal.LeftoverOptions{
		Owner: p.Owner, Marks: p.Foreign.Marks(), Wanted: p.Objects, NameOf: p.nameOf(),
	})
	if err != nil {
		return p.remoteFailed(AboutApply, err)
	}
	p.extras = left
	return nil
}

// reportAdoption says once, when it is on record, what was there and what becomes of it.
func (p *Pass) reportAdoption(found *helmrelease.Foreign, left ownership.Inventory) {
	if found == nil {
		return
	}
	if found.Problem != "" {
		shown := "Secret %q of Helm release %q is not believed, since %s: objects that only it has stay where they are"
		if len(found.Objects) > 0 {
			shown = "Secret %q of Helm release %q can't be read in whole, since %s: objects that only the rest of it has stay where they are"
		}
		p.report(Event{Warning: true, Reason: v1.EventReleaseUnreadable, Action: "Adopt"}, shown, found.Secret, found.Name, found.Problem)
	}
	if found.ByHand {
		p.reportByHand(found, left)
		return
	}
	shown := "every object of it is part of the add-on"
	switch {
	case !p.Asked.Adopt:
		shown = "it was left behind by an installation of this name, and objects that only it has stay"
	case len(left) > 0:
		shown = "no longer part of the add-on, to be pruned: " + text.Names(keyTexts(left), maxNamed)
	}
	p.report(Event{Reason: v1.EventAdopted, Action: "Adopt"}, "Helm release %q in namespace %q goes on after its revision %d; %s",
		found.Name, found.Namespace, found.Revision, shown)
}

func keyTexts(entries ownership.Inventory) []string {
	texts := make([]string, len(entries))
	for i, entry := range entries {
		texts[i] = entry.Key.String()
	}
	return texts
}

// ReleaseTaken names the way out, which is no change of the installation: its releaseName and
// targetNamespace can't be changed.
func ReleaseTaken(by, name, namespace string) *Stop {
	return &Stop{
		About: AboutApply, Reason: v1.ReasonReleaseNameTaken, Recheck: RefusedRecheck,
		Message: fmt.Sprintf("installation %q has Helm release %q in namespace %q: delete this installation, and create it again "+
			"with another name, targetNamespace or releaseName", by, name, namespace),
	}
}
