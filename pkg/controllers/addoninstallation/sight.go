package addoninstallation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// sight is what a rendering sees besides the inputs. It changes with what is installed, so it is no reason for a rendering; it is part
// of what one is kept by.
type sight struct {
	revision  int
	isInstall bool
	// found is what function lookup finds.
	found []*unstructured.Unstructured
	// otherMoment is for a second rendering, to compare.
	otherMoment bool
}

// nextSight is that of a change, as helm gives it.
func nextSight(f *facts) sight {
	next := f.NextRelease(releaseName(f))
	if next == nil {
		return sight{}
	}
	return sight{revision: next.Revision, isInstall: revision.NextAction(f.Record(), next) == hooks.ActionInstall}
}

// recordedSight is that of the revision on record.
func recordedSight(f *facts) sight {
	record := f.Record()
	if record == nil || record.Helm == nil {
		return nextSight(f)
	}
	isInstall := record.Action == hooks.ActionInstall
	if record.Action == "" {
		isInstall = record.Helm.Revision == 1
	}
	return sight{revision: record.Helm.Revision, isInstall: isInstall}
}

// keptBy is what a rendering is kept by.
func (r *Reconciler) keptBy(f *facts, seen sight) (string, error) {
	if f.choice.Version.Template.Method != kubermaticv1.MethodHelm && !seen.otherMoment {
		return f.inputs, nil
	}
	found, err := json.Marshal(seen.found)
	if err != nil {
		return "", fmt.Errorf("encoding what is looked up: %w", err)
	}
	return revision.InputsHash(r.InputsKey, []byte(f.inputs), found,
		fmt.Append(nil, seen.revision, seen.isInstall, seen.otherMoment)), nil
}

func (r *Reconciler) renderRequest(f *facts, seen sight) (render.Request, error) {
	kept, err := r.keptBy(f, seen)
	return render.Request{
		Method: string(f.choice.Version.Template.Method), Inputs: kept, Input: r.renderInput(f, seen), Wake: r.waker(f.installation),
	}, err
}
