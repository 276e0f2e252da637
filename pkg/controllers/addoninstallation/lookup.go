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
	"github.com/trellis-addons/trellis/pkg/lru"
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

// searches remembers by content digest what was found in contents.
type searches[T any] struct {
	byDigest *lru.Cache[string, T]
}

// searchesKept bounds the memory of searches.
const searchesKept = 4096

func newSearches[T any]() searches[T] { return searches[T]{lru.New[string, T](searchesKept, nil)} }

func (s *searches[T]) ask(digest string, content fs.FS, search func(fs.FS) (T, error)) (T, error) {
	if found, known := s.byDigest.Get(digest); known {
		return found, nil
	}
	found, err := search(content)
	if err != nil {
		return found, fmt.Errorf("searching the content: %w", err)
	}
	s.byDigest.Put(digest, found, lru.Forever)
	return found, nil
}

// fileLimit is how much of one file is searched.
const fileLimit = 5 << 20

// anyFile says whether any file of a content whose path is chosen holds what is looked for.
func anyFile(content fs.FS, chosen func(path string) bool, holds func(text string) bool) (bool, error) {
	found := false
	err := fs.WalkDir(content, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !chosen(path) {
			return err
		}
		text, _, err := render.ReadAtMost(content, path, fileLimit)
		if holds(text) {
			found = true
			return fs.SkipAll
		}
		return err
	})
	return found, err
}

func isTemplate(path string) bool { return strings.Contains("/"+path, "/templates/") }

// asksForCapabilities says whether the word Capabilities occurs in any template of a chart or of its dependencies.
func asksForCapabilities(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool { return strings.Contains(text, "Capabilities") })
}

// secretFields are the secret fields of template data as templates write them.
var secretFields = regexp.MustCompile(`\.Credentials\b|\.Cluster\.Kubeconfig\b|\.Address\.AdminToken\b`)

func chartNamesSecrets(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool {
		return strings.Contains(text, ".Values.kkp") && secretFields.MatchString(text)
	})
}

func manifestsNameSecrets(manifests fs.FS) (bool, error) {
	isManifest := func(path string) bool { return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") }
	return anyFile(manifests, isManifest, secretFields.MatchString)
}

// secretsAskedFor refuses content of a Core catalogue that names secrets which its version does not ask for: it would put empty
// ones into the user cluster, in place of those that it had before versions had to ask. It finds fields that are written out.
func (r *Reconciler) secretsAskedFor(f *facts) loop.Outcome {
	if !f.choice.Core || f.choice.SeesSecrets() {
		return nil
	}
	search := manifestsNameSecrets
	if f.choice.Version.Template.Method == kubermaticv1.MethodHelm {
		search = chartNamesSecrets
	}
	named, err := r.secretContents.ask(string(f.choice.Version.Template.Method)+f.snapshot.Digest, f.snapshot.FS, search)
	if err != nil {
		return failed(err)
	}
	if !named && !secretFields.MatchString(f.choice.Version.ValuesTemplate) {
		return nil
	}
	return loop.Stalled{
		Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: fmt.Sprintf(
			"version %q names secrets of the cluster (.Credentials, .Cluster.Kubeconfig or .Cluster.Address.AdminToken) and does not ask for "+
				"them: set template.clusterSecrets: true in its Core catalogue", f.choice.Version.Version),
	}
}

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
