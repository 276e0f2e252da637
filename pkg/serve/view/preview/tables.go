package preview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// masked stands for a leaf that is not shown, blank for one that is not there.
const (
	masked = "(hidden)"
	blank  = " "
)

// Summary is one line: the versions with the numbers of objects, or why there are no objects.
func (p *Preview) Summary() string {
	if p.State != StateComplete {
		state := map[State]string{StatePending: "not ready yet", StateRefused: "it would not be applied"}[p.State]
		return fmt.Sprintf("%s: %s: %s: %s", state, p.Condition, p.Reason, p.Message)
	}
	version := "version " + p.Version
	if p.Installed != "" && p.Installed != p.Version {
		version += " (installed: " + p.Installed + ")"
	}
	return fmt.Sprintf("%s: %s to create, %d to change, %d to remove, %d the same", version, text.Count(p.Counts.Create, "object"),
		p.Counts.Change, p.Counts.Remove, p.Counts.Same)
}

// Differs says whether something would change, or the installation would not be applied.
func (p *Preview) Differs() bool {
	isRefused := p.Live != nil && (len(p.Live.Problems) > 0 || p.Live.Message != "")
	return p.State != StateComplete || p.Counts.Create+p.Counts.Change+p.Counts.Remove > 0 || isRefused
}

// Notes are what people should know beside objects and values, a line each.
func (p *Preview) Notes() []string {
	notes := make([]string, 0, len(p.Warnings)+2)
	for _, warning := range p.Warnings {
		notes = append(notes, "warning: "+warning)
	}
	if p.Masked != "" {
		notes = append(notes, "values and fields are hidden: "+p.Masked)
	}
	if p.Truncated {
		notes = append(notes, "there are more values or changes than a preview shows")
	}
	return append(notes, p.Live.notes()...)
}

func (l *Live) notes() (notes []string) {
	if l == nil {
		return nil
	}
	notes = append(notes, fmt.Sprintf("the cluster checked %s: it would refuse %d", text.Count(l.Checked, "object"), len(l.Problems)))
	if l.Unchecked > 0 {
		notes = append(notes, fmt.Sprintf("%s not checked: there are too many, or their namespace or kind does not exist yet",
			text.Count(l.Unchecked, "object")))
	}
	if l.Message != "" {
		notes = append(notes, "the check ended early: "+l.Message)
	}
	for _, one := range l.Problems {
		notes = append(notes, one.Reason+": "+one.Message)
	}
	return notes
}

var colours = map[Action]view.Colour{ActionCreate: view.Green, ActionChange: view.Yellow, ActionRemove: view.Red}

// Differing is a table without heads of the objects that would not stay the same, at most some of them.
func (p *Preview) Differing(most int) view.Table {
	table := view.Table{Columns: []view.Column{{}, {}}}
	left := 0
	for _, one := range p.Objects {
		switch {
		case one.Action == ActionSame:
		case len(table.Rows) == most:
			left++
		default:
			table.Add(view.Cell{Text: string(one.Action), Colour: colours[one.Action]}, view.Cell{Text: one.title()})
		}
	}
	if left > 0 {
		table.Add(view.Of("…", fmt.Sprintf("and %d more", left))...)
	}
	return table
}

// title names an object, and its hook.
func (o *Object) title() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	title := o.APIVersion + " " + o.Kind + " " + name
	if o.Hook != "" {
		title += " (hook " + o.Hook + ")"
	}
	return title
}

// inTitle are leaves that the title of an object has.
var inTitle = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}

// shown are the changes without those that only repeat the title of a new object.
func (o *Object) shown() []Change {
	return slices.DeleteFunc(slices.Clone(o.Changes), func(change Change) bool {
		return change.Action == ActionCreate && slices.Contains(inTitle, change.Path)
	})
}

// Differences is the table of the leaves that would change, below their objects.
func (p *Preview) Differences() view.Table {
	table := view.NewTable("ACTION", "OBJECT", "BEFORE", "AFTER")
	for _, one := range p.Objects {
		if one.Action == ActionSame {
			continue
		}
		table.Add(view.Cell{Text: string(one.Action), Colour: colours[one.Action]}, view.Cell{Text: one.title()}, view.Cell{Text: blank},
			view.Cell{Text: blank})
		for _, change := range one.shown() {
			before, after := p.leaf(&one, change.Before), p.leaf(&one, change.After)
			switch change.Action {
			case ActionCreate:
				before = blank
			case ActionRemove:
				after = blank
			}
			row := view.Of(string(change.Action), "  "+change.Path, before, after)
			row[0].Colour = colours[change.Action]
			table.Add(row...)
		}
	}
	return table
}

// Applied is the table of the objects that the installation would have, with the leaves that would be new or change.
func (p *Preview) Applied() view.Table {
	table := view.NewTable("OBJECT", "VALUE")
	for _, one := range p.Objects {
		if one.Action == ActionRemove {
			continue
		}
		table.Add(view.Of(one.title(), blank)...)
		for _, change := range one.shown() {
			if change.Action != ActionRemove {
				table.Add(view.Of("  "+change.Path, p.leaf(&one, change.After))...)
			}
		}
	}
	return table
}

// Merged is the table of the values, with their origins on request.
func (p *Preview) Merged(withOrigins bool) view.Table {
	heads := []string{"PATH", "VALUE"}
	if withOrigins {
		heads = append(heads, "ORIGIN")
	}
	table := view.NewTable(heads...)
	for _, one := range p.Values {
		cells := []string{one.Path, p.leaf(nil, one.Value)}
		if withOrigins {
			cells = append(cells, one.Origin)
		}
		table.Add(view.Of(cells...)...)
	}
	return table
}

// leaf is a leaf of an object, or of values if that is nil, in JSON on one line.
func (p *Preview) leaf(of *Object, value any) string {
	isSecret := of != nil && of.Kind == secretKind.Kind && !strings.Contains(of.APIVersion, "/")
	if value == nil && (p.Masked != "" || isSecret) {
		return masked
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return masked // it came from JSON
	}
	return string(encoded)
}
