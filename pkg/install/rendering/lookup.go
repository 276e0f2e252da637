package rendering

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

	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// view is the data that a rendering sees in addition to the inputs. It changes with the installed objects, so it is
// no reason to render again; it is part of the key of a cached rendering.
type view struct {
	revision  int
	isInstall bool
	// found are the results of function lookup.
	found []*unstructured.Unstructured
	// otherMoment marks a second rendering, for comparison.
	otherMoment bool
}

// nextView is that of a change, as in Helm.
func nextView(q *Request) view {
	next := q.Installed.NextRelease(q.releaseName())
	if next == nil {
		return view{}
	}
	return view{revision: next.Revision, isInstall: revision.NextAction(q.Installed.Record(), next) == hooks.ActionInstall}
}

// recordedView is that of the recorded revision.
func recordedView(q *Request) view {
	record := q.Installed.Record()
	if record == nil || record.Helm == nil {
		return nextView(q)
	}
	isInstall := record.Action == hooks.ActionInstall
	if record.Action == "" {
		isInstall = record.Helm.Revision == 1
	}
	return view{revision: record.Helm.Revision, isInstall: isInstall}
}

// lookup returns the objects that function lookup of a chart finds: the installation's own as recorded, and those of
// the Helm release that it adopts as they are in the user cluster. It is empty if the chart does not call lookup.
func (r *Renderer) lookup(ctx context.Context, q *Request) ([]*unstructured.Unstructured, error) {
	asked, err := r.lookedUp(q)
	if err != nil || !asked.any() {
		return nil, err
	}
	var found []*unstructured.Unstructured
	if record := q.Installed.Record(); record != nil {
		whole, err := q.Installed.ReadWhole(ctx, record)
		if err != nil {
			return nil, err
		}
		if found, err = recordedObjects(whole, asked); err != nil {
			return nil, err
		}
	}
	live, err := q.Installed.ForeignObjects(ctx, asked.has, survey.FoundLimits{Total: render.MaxFoundBytes, Object: render.MaxFoundObject})
	if _, beyond := errors.AsType[*survey.FoundError](err); beyond {
		return nil, &Error{CauseVersion, err}
	}
	if err != nil {
		return nil, &Error{CauseCluster, err}
	}
	return append(found, live...), nil
}

// recordedObjects are the objects of a record of the requested kinds, and the hooks that have run and stay.
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

// asServed is an object in the form of the API server: a Secret's stringData is moved to its data.
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

// kindsAsked are the kinds that a chart looks up; the zero value has none.
type kindsAsked struct {
	// all says that the kinds can't be determined.
	all   bool
	named map[string]bool
}

func (k kindsAsked) any() bool { return k.all || len(k.named) > 0 }

func (k kindsAsked) has(kind string) bool { return k.all || k.named[kind] }

const lookupFunction = "lookup"

// lookupCall matches a call of lookup with its kind written out.
var lookupCall = regexp.MustCompile(`\blookup\s+"[^"]*"\s+"([A-Za-z0-9]*)"`)

// add adds the kinds that a text looks up.
func (k *kindsAsked) add(text string) {
	calls := lookupCall.FindAllStringSubmatch(text, -1)
	if strings.Count(text, lookupFunction) > len(calls) {
		k.all = true // the kind is computed, or the word is in a comment
	}
	for _, call := range calls {
		if call[1] == templatedata.SecretsKind {
			continue // no object of the installation
		}
		if k.named == nil {
			k.named = map[string]bool{}
		}
		k.named[call[1]] = true
	}
}

// kindsLookedUp determines the kinds that a chart looks up.
func kindsLookedUp(content fs.FS) (asked kindsAsked, err error) {
	_, err = anyFile(content, mayCall, func(text string) bool {
		if strings.Contains(text, "{{") {
			asked.add(text)
		}
		return asked.all
	})
	if err == nil && !asked.all {
		asked.all, err = anyFile(content, isPacked, func(string) bool { return true })
	}
	return asked, err
}

// mayCall reports whether a file of a chart may be a template, or text that a template renders.
func mayCall(path string) bool {
	return !strings.HasSuffix(path, ".md") && !strings.Contains("/"+path, "/crds/") && !isPacked(path)
}

// isPacked reports whether a file is a dependency that is not read here.
func isPacked(path string) bool { return strings.HasSuffix(path, ".tgz") }

// lookedUp are the kinds that the version's chart, including its values, looks up: values may be templates.
func (r *Renderer) lookedUp(q *Request) (kindsAsked, error) {
	if !q.traits().LooksUp {
		return kindsAsked{}, nil
	}
	asked, err := r.lookupCharts.ask(q.Content.Digest, q.Content.FS, kindsLookedUp)
	if err != nil || asked.all {
		return asked, err
	}
	values, err := json.Marshal(q.Values.Merged)
	if err != nil {
		return asked, fmt.Errorf("encoding the values: %w", err)
	}
	asked.all = strings.Contains(string(values), lookupFunction) && strings.Contains(string(values), "{{")
	return asked, nil
}
