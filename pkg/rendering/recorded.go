package rendering

import (
	"context"
	"errors"
	"reflect"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// asRecorded renders as what is on record was, and says whether only chance would change it. Then
// the objects are those on record. What function lookup found for the record is not known any more:
// what it finds now, or nothing, as at the first time.
func (r *Renderer) asRecorded(ctx context.Context, q Request) (recorded Result, stays bool, err error) {
	q.Anew = false
	recorded = q.nothing()
	seen := recordedView(&q)
	if seen.found, err = r.lookup(ctx, &q); err != nil {
		return recorded, false, err
	}
	record, err := q.Installed.ReadWhole(ctx, q.Installed.Record())
	if err != nil {
		return recorded, false, err
	}
	recorded.Hooks = record.Hooks
	if recorded.Objects, err = revision.DecodeObjects(record.Objects); err != nil {
		return recorded, false, err
	}
	stays, err = r.comesOutAs(ctx, &q, record, &recorded, seen)
	if !stays && err == nil && len(seen.found) > 0 {
		seen.found = nil
		stays, err = r.comesOutAs(ctx, &q, record, &recorded, seen)
	}
	return recorded, stays, err
}

// comesOutAs says whether a rendering differs by chance only from what is on record, if at all, and
// gives the latter the rendering's chart. Where they differ it renders once more, at another moment,
// to learn what chance makes.
func (r *Renderer) comesOutAs(ctx context.Context, q *Request, record *revision.Record, recorded *Result, seen view) (bool, error) {
	once, err := r.renderAs(ctx, q, seen)
	if err != nil {
		return false, err
	}
	recorded.Chart = once.Chart
	if record.Holds(apply.ObjectsDigest(once.Objects), once.Hooks) {
		return true, nil
	}
	seen.otherMoment = true
	twice, err := r.renderAs(ctx, q, seen)
	if err != nil {
		return false, err
	}
	return differByChance(*recorded, once, twice)
}

// differByChance says whether what is on record differs from a rendering only where two renderings
// differ.
func differByChance(recorded, once, twice Result) (bool, error) {
	var contents [3]map[string]any
	var failures [3]error
	for i, one := range []Result{recorded, once, twice} {
		contents[i], failures[i] = contentOf(one.Objects, one.Hooks)
	}
	if err := errors.Join(failures[:]...); err != nil {
		return false, err
	}
	return byChance(contents[0], contents[1], contents[2]), nil
}

// byChance says whether a value on record differs from a rendering's only at paths at which another
// rendering differs from it too.
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
