package addoninstallation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Renderings that nobody asked for: only served kinds, the Kubernetes version or the cluster's data are others. What chance alone
// makes of them stays as it is (ADR 38).

// staysAsRecorded renders as what is on record was, and says whether only chance would change it. Then the objects are those on
// record. What function lookup found for the record is not known any more: what it finds now, or nothing, as at the first time.
func (r *Reconciler) staysAsRecorded(ctx context.Context, f *facts) (bool, loop.Outcome) {
	seen := recordedSight(f)
	var outcome loop.Outcome
	if seen.found, outcome = r.lookup(ctx, f); outcome != nil {
		return false, outcome
	}
	record, err := f.ReadWhole(ctx, f.Record())
	if err != nil {
		return false, failed(err)
	}
	recorded := prepared{hooks: record.Hooks}
	if recorded.objects, err = revision.DecodeObjects(record.Objects); err != nil {
		return false, failed(err)
	}
	stays, outcome := r.comesOutAs(ctx, f, record, &recorded, seen)
	if !stays && outcome == nil && len(seen.found) > 0 {
		seen.found = nil
		stays, outcome = r.comesOutAs(ctx, f, record, &recorded, seen)
	}
	if stays {
		f.use(recorded)
	}
	return stays, outcome
}

// comesOutAs says whether a rendering differs by chance only from what is on record, if at all. Where they differ it renders once more,
// at another moment, to learn what chance makes.
func (r *Reconciler) comesOutAs(
	ctx context.Context, f *facts, record *revision.Record, recorded *prepared, seen sight,
) (bool, loop.Outcome) {
	once, outcome := r.renderAs(ctx, f, seen)
	if outcome != nil {
		return false, outcome
	}
	recorded.chart = once.chart
	if record.Holds(apply.ObjectsDigest(once.objects), once.hooks) {
		return true, nil
	}
	seen.otherMoment = true
	twice, outcome := r.renderAs(ctx, f, seen)
	if outcome != nil {
		return false, outcome
	}
	byChance, err := differByChance(*recorded, once, twice)
	if err != nil {
		return false, failed(err)
	}
	return byChance, nil
}

// renderAs renders and prepares the objects with a view.
func (r *Reconciler) renderAs(ctx context.Context, f *facts, seen sight) (prepared, loop.Outcome) {
	request, err := r.renderRequest(f, seen)
	if err != nil {
		return prepared{}, failed(err)
	}
	rendered, err := r.Renders.Render(ctx, request)
	if err != nil {
		return prepared{}, renderOutcome(err)
	}
	return r.prepare(f, rendered.Result)
}

// differByChance says whether what is on record differs from a rendering only where two renderings differ.
func differByChance(recorded, once, twice prepared) (bool, error) {
	var contents [3]map[string]any
	var failures [3]error
	for i, one := range []prepared{recorded, once, twice} {
		contents[i], failures[i] = one.content()
	}
	if err := errors.Join(failures[:]...); err != nil {
		return false, err
	}
	return byChance(contents[0], contents[1], contents[2]), nil
}

// content are objects and hooks by name, in the kinds of values that JSON has. Hooks of tests count for nothing.
func (p prepared) content() (map[string]any, error) {
	named := map[string]any{}
	for _, object := range p.objects {
		named[ownership.KeyOf(object).String()] = object.Object
	}
	for _, hook := range p.hooks {
		if hooks.Digest([]hooks.Hook{hook}) != "" {
			hook.Run = nil
			named[hookNameOf(hook)] = hook
		}
	}
	encoded, err := json.Marshal(named)
	if err != nil {
		return nil, fmt.Errorf("encoding objects to compare: %w", err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, fmt.Errorf("decoding objects to compare: %w", err)
	}
	return content, nil
}

// byChance says whether a value on record differs from a rendering's only at paths at which another rendering differs from it too.
func byChance(recorded, once, twice any) bool {
	if reflect.DeepEqual(recorded, once) {
		return true
	}
	switch once := once.(type) {
	case map[string]any:
		recorded, isMap := recorded.(map[string]any)
		twice, areMaps := twice.(map[string]any)
		if isMap && areMaps {
			return membersByChance(recorded, once, twice)
		}
	case []any:
		recorded, isList := recorded.([]any)
		twice, areLists := twice.([]any)
		if isList && areLists && len(once) == len(twice) {
			return len(recorded) == len(once) && elementsByChance(recorded, once, twice)
		}
	}
	return !reflect.DeepEqual(once, twice)
}

func membersByChance(recorded, once, twice map[string]any) bool {
	varies := false // keys are made up
	for key, value := range once {
		other, isThere := twice[key]
		before, was := recorded[key]
		if varies = varies || !isThere; !isThere {
			continue
		}
		if !was || !byChance(before, value, other) {
			return false
		}
	}
	for key := range recorded {
		_, stays := once[key]
		_, comesBack := twice[key]
		if !stays && !comesBack && !varies {
			return false
		}
	}
	return true
}

func elementsByChance(recorded, once, twice []any) bool {
	for i := range once {
		if !byChance(recorded[i], once[i], twice[i]) {
			return false
		}
	}
	return true
}
