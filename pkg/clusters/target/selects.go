package target

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Selects says whether a selector selects a cluster with these labels and facts. It is unknown if the selector needs
// the name of the seed, and the facts lack it.
func Selects(selector labels.Selector, facts labels.Set) (selected, isKnown bool) {
	needs, _ := selector.Requirements()
	isUnknown := false
	for _, one := range needs {
		if one.Key() == v1.FactSeed && !facts.Has(v1.FactSeed) {
			isUnknown = true
		} else if !one.Matches(facts) {
			return false, true
		}
	}
	if isUnknown {
		return false, false
	}
	return selector.Matches(facts), true // also one that selects nothing, which has no requirements
}

// NeedsSeed says whether a selector uses the name of the seed.
func NeedsSeed(selector labels.Selector) bool {
	needs, _ := selector.Requirements()
	return slices.ContainsFunc(needs, func(one labels.Requirement) bool { return one.Key() == v1.FactSeed })
}
