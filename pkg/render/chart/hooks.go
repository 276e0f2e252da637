package chart

import (
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
)

// readHooks reads the objects of hooks. They count in the same limits as all other objects. Empty documents are no hooks.
func readHooks(reader *manifest.Reader, sorted []*release.Hook, options render.Release) ([]render.Hook, error) {
	if options.DisableHooks {
		return nil, nil
	}
	var hooks []render.Hook
	for _, one := range sorted {
		at := func(int) (string, int) { return one.Path, 0 }
		objects, err := reader.Read(manifest.Source{Text: one.Manifest, At: at})
		if err != nil {
			return nil, err
		}
		if len(objects) != 1 {
			return nil, &render.TemplateError{File: one.Path, Problem: "a hook has to be one object, not none and not a list"}
		}
		hook := render.Hook{
			Path: one.Path, Weight: one.Weight, Object: objects[0], Events: distinct(one.Events, render.HookEvents),
			DeletePolicies: distinct(one.DeletePolicies, render.HookDeletePolicies),
			LogPolicies:    distinct(one.OutputLogPolicies, render.HookLogPolicies),
		}
		if err := hook.Check(); err != nil {
			return nil, err
		}
		hooks = append(hooks, hook)
	}
	return hooks, nil
}

// distinct are the words that are known, each once, in the order of the known ones. What stands in annotations may repeat
// itself, and may hold words of another program.
func distinct[W ~string](words []W, known []string) []string {
	var found []string
	for _, word := range known {
		if slices.ContainsFunc(words, func(said W) bool { return strings.EqualFold(string(said), word) }) {
			found = append(found, word)
		}
	}
	return found
}
