package addoninstallation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// lookup gives what function lookup of a chart finds: the installation's own objects as the record has them, and those of a release
// that is gone on with as they are in the user cluster. It is nil where the chart does not ask.
func (r *Reconciler) lookup(ctx context.Context, f *facts) ([]*unstructured.Unstructured, loop.Outcome) {
	asked, err := r.lookedUp(f)
	if err != nil {
		return nil, failed(err)
	}
	if !asked.any() {
		return nil, nil
	}
	var found []*unstructured.Unstructured
	if record := f.Record(); record != nil {
		whole, err := f.ReadWhole(ctx, record)
		if err != nil {
			return nil, failed(err)
		}
		if found, err = recordedObjects(whole, asked); err != nil {
			return nil, failed(err)
		}
	}
	live, err := f.ForeignObjects(ctx, asked.has, survey.FoundLimits{Total: render.MaxFoundBytes, Object: render.MaxFoundObject})
	if _, beyond := errors.AsType[*survey.FoundError](err); beyond {
		return nil, loop.Stalled{
			Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonLimitExceeded, Message: err.Error(), Recheck: clusterRecheck,
		}
	}
	if err != nil {
		return nil, outcomeOf(r.callFailed(f, aboutRender, err))
	}
	return append(found, live...), nil
}

// recordedObjects are the objects of a record of kinds that are asked for, and the hooks that have run and stay.
func recordedObjects(record *revision.Record, asked kindsAsked) ([]*unstructured.Unstructured, error) {
	objects, err := revision.DecodeObjects(record.Objects)
	if err != nil {
		return nil, err
	}
	var staying []hooks.Hook
	for _, hook := range record.Hooks {
		if hook.Run != nil && hook.Run.Phase == hooks.PhaseSucceeded && !hook.Run.Cleaned {
			staying = append(staying, hook)
		}
	}
	made, err := hooks.Objects(staying)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, object := range append(objects, made...) {
		if asked.has(object.GetKind()) {
			found = append(found, asServed(object))
		}
	}
	return found, nil
}

// asServed is an object as an API server would give it: a Secret's stringData stands in its data.
func asServed(object *unstructured.Unstructured) *unstructured.Unstructured {
	plain, found, err := unstructured.NestedStringMap(object.Object, "stringData")
	if !found || err != nil || object.GetKind() != "Secret" {
		return object
	}
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(object.Object, "stringData")
	object.Object["data"] = data
	return object
}

// kindsAsked are the kinds that a chart looks up; the zero value is none.
type kindsAsked struct {
	// all: it can't be told which.
	all   bool
	named map[string]bool
}

func (k kindsAsked) any() bool { return k.all || len(k.named) > 0 }

func (k kindsAsked) has(kind string) bool { return k.all || k.named[kind] }

const lookupFunction = "lookup"

// lookupCall is a call of lookup that writes out what it looks up.
var lookupCall = regexp.MustCompile(`\blookup\s+"[^"]*"\s+"([A-Za-z0-9]*)"`)

// take adds what a text looks up.
func (k *kindsAsked) take(text string) {
	calls := lookupCall.FindAllStringSubmatch(text, -1)
	if strings.Count(text, lookupFunction) > len(calls) {
		k.all = true // by other means than text alone, or a word in a comment
	}
	for _, call := range calls {
		if k.named == nil {
			k.named = map[string]bool{}
		}
		k.named[call[1]] = true
	}
}

// kindsLookedUp finds which kinds a chart looks up.
func kindsLookedUp(content fs.FS) (asked kindsAsked, err error) {
	_, err = anyFile(content, mayCall, func(text string) bool {
		if strings.Contains(text, "{{") {
			asked.take(text)
		}
		return asked.all
	})
	if err == nil && !asked.all {
		asked.all, err = anyFile(content, isPacked, func(string) bool { return true })
	}
	return asked, err
}

// mayCall says whether a file of a chart can be a template, or text that one renders.
func mayCall(path string) bool {
	return !strings.HasSuffix(path, ".md") && !strings.Contains("/"+path, "/crds/") && !isPacked(path)
}

// isPacked says whether a file is a dependency that nobody looks into here.
func isPacked(path string) bool { return strings.HasSuffix(path, ".tgz") }

// lookedUp are the kinds that the version's chart looks up, its values included: they may be templates.
func (r *Reconciler) lookedUp(f *facts) (kindsAsked, error) {
	if f.choice.Version.Template.Method != kubermaticv1.MethodHelm {
		return kindsAsked{}, nil
	}
	asked, err := r.lookupCharts.ask(f.snapshot.Digest, f.snapshot.FS, kindsLookedUp)
	if err != nil || asked.all {
		return asked, err
	}
	values, err := json.Marshal(f.values.Merged)
	if err != nil {
		return asked, fmt.Errorf("encoding the values: %w", err)
	}
	asked.all = strings.Contains(string(values), lookupFunction) && strings.Contains(string(values), "{{")
	return asked, nil
}
