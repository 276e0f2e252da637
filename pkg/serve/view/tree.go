package view

import (
	"slices"
	"strings"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// tree is a Table whose first column is drawn as a tree.
type tree struct {
	Table
	all    map[string]*v1.AddonInstallation
	seen   map[string]bool
	now    time.Time
	waits  map[string][]string
	origin map[string][]string
}

// Tree is a cluster's installations by who requested them. Below each are those that depend on it, and its objects that are not healthy.
func Tree(installations []v1.AddonInstallation, now time.Time) Table {
	t := &tree{
		Table: NewTable("NAME", "VERSION?", "STATE", "REASON?"),
		all:   map[string]*v1.AddonInstallation{}, seen: map[string]bool{}, now: now,
		waits: map[string][]string{}, origin: map[string][]string{},
	}
	for i := range installations {
		t.all[installations[i].Name] = &installations[i]
	}
	for _, name := range sortedNames(installations) {
		one := t.all[name]
		if after := t.after(one); after != "" {
			t.waits[after] = append(t.waits[after], name)
		} else {
			t.origin[originOf(one)] = append(t.origin[originOf(one)], name)
		}
	}
	for _, name := range sortedNames(installations) {
		if one := t.all[name]; t.isInCycle(one) {
			t.origin[originOf(one)] = append(t.origin[originOf(one)], name)
		}
	}
	for _, of := range []string{"Core", "Users"} {
		t.root(of)
	}
	for _, name := range sortedNames(installations) {
		t.root(originOf(t.all[name]))
	}
	return t.Table
}

func sortedNames(installations []v1.AddonInstallation) []string {
	names := make([]string, len(installations))
	for i := range installations {
		names[i] = installations[i].Name
	}
	slices.Sort(names)
	return names
}

func originOf(one *v1.AddonInstallation) string {
	if one.Spec.CoreAddon {
		return "Core"
	}
	if set := one.Labels[v1.LabelSet]; set != "" {
		return "AddonSet " + set
	}
	return "Users"
}

// after is the first installation that one depends on and that exists, or "".
func (t *tree) after(one *v1.AddonInstallation) string {
	for _, name := range one.Spec.DependsOn {
		if t.all[string(name)] != nil {
			return string(name)
		}
	}
	return ""
}

// isInCycle says whether the way from an installation to those that it depends on never ends, and it is the first on it by name.
func (t *tree) isInCycle(one *v1.AddonInstallation) bool {
	first := one.Name
	for at, steps := t.after(one), 0; at != "" && steps <= len(t.all); at, steps = t.after(t.all[at]), steps+1 {
		if at == one.Name {
			return first == one.Name
		}
		first = min(first, at)
	}
	return false
}

// root adds those that were requested by one origin, once.
func (t *tree) root(of string) {
	names := t.origin[of]
	if len(names) == 0 || t.seen["/"+of] {
		return
	}
	t.seen["/"+of] = true
	t.Add(Of(of, " ", " ", " ")...)
	for i, name := range names {
		t.branch(name, "", i == len(names)-1)
	}
}

// branch adds an installation, what depends on it, and its objects that are not healthy.
func (t *tree) branch(name, indent string, isLast bool) {
	if t.seen[name] {
		return
	}
	t.seen[name] = true
	one := t.all[name]
	row := RowOf(one, t.now)
	cells := Of(drawn(indent, name, isLast), row.Version, row.State, row.Reason)
	cells[2] = StateCell(row.State)
	t.Add(cells...)
	if indent += "│  "; isLast {
		indent = strings.TrimSuffix(indent, "│  ") + "   "
	}
	below := t.waits[name]
	for i, object := range one.Status.Unhealthy {
		t.Add(Of(drawn(indent, object.Ref, i == len(one.Status.Unhealthy)-1 && len(below) == 0), " ", " ", object.Reason)...)
	}
	for i, next := range below {
		t.branch(next, indent, i == len(below)-1)
	}
}

func drawn(indent, name string, isLast bool) string {
	if isLast {
		return indent + "└─ " + name
	}
	return indent + "├─ " + name
}
