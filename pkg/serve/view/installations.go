package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// States are the names of states for people, in the order of their counts.
var States = []string{"Ready", "UnderWay", "Failing", "Unknown"}

var stateNames = map[conditions.State]string{
	conditions.StateReady: States[0], conditions.StateUnderWay: States[1], conditions.StateFailing: States[2],
	conditions.StateUnknown: States[3],
}

// Row is one installation in a list.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster"`
	Addon     string `json:"addon"`
	// Version is installed; Wanted is what addonRef asks for.
	Version string `json:"version,omitempty"`
	Wanted  string `json:"requested,omitempty"`
	Update  string `json:"update,omitempty"`
	// State is one of States. Reason and Message are empty while it is Ready.
	State           string `json:"state"`
	Reason          string `json:"reason,omitempty"`
	Message         string `json:"message,omitempty"`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	Objects         string `json:"objects,omitempty"`
	// Age since its creation.
	Age     time.Duration `json:"-"`
	Core    bool          `json:"core,omitempty"`
	BySet   string        `json:"set,omitempty"`
	Created metav1.Time   `json:"created"`
}

// Rows are the rows of installations, by namespace, cluster and name.
func Rows(installations []v1.AddonInstallation, now time.Time) []Row {
	rows := make([]Row, len(installations))
	for i := range installations {
		rows[i] = RowOf(&installations[i], now)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// RowOf is the row of an installation.
func RowOf(one *v1.AddonInstallation, now time.Time) Row {
	row := Row{
		Namespace: one.Namespace, Name: one.Name, Cluster: ClusterOf(one), Addon: string(one.Spec.AddonRef.Name),
		Version: one.Status.Version, Wanted: one.Spec.AddonRef.Version, Update: one.Status.AvailableUpdate,
		TargetNamespace: one.Spec.TargetNamespace, Age: now.Sub(one.CreationTimestamp.Time), Core: one.Spec.CoreAddon,
		BySet: one.Labels[v1.LabelSet], Created: one.CreationTimestamp,
	}
	if one.Status.Objects != nil {
		row.Objects = one.Status.Objects.Summary
	}
	state, ready := conditions.StateOf(one.Status.Conditions)
	row.State = stateNames[state]
	if ready != nil && state != conditions.StateReady {
		row.Reason, row.Message = ready.Reason, ready.Message
	}
	return row
}

// ClusterOf is the name of an installation's cluster.
func ClusterOf(one *v1.AddonInstallation) string {
	if one.Status.Cluster != nil && one.Status.Cluster.Name != "" {
		return one.Status.Cluster.Name
	}
	return cmp.Or(one.Spec.ClusterName, strings.TrimPrefix(one.Namespace, "cluster-"))
}

// Counts counts rows by state: "3 installations: 2 Ready, 1 Failing".
func Counts(rows []Row) string {
	number := map[string]int{}
	for _, row := range rows {
		number[row.State]++
	}
	var parts []string
	for _, state := range States {
		if number[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", number[state], state))
		}
	}
	if len(rows) == 0 {
		return "no installations"
	}
	return text.Count(len(rows), "installation") + ": " + strings.Join(parts, ", ")
}

// Age is a duration for people: "5m", "3d".
func Age(of time.Duration) string { return duration.HumanDuration(of) }

// StateCell is a state with its colour.
func StateCell(state string) Cell {
	colours := map[string]Colour{States[0]: Green, States[1]: Yellow, States[2]: Red, States[3]: Yellow}
	return Cell{Text: state, Colour: colours[state]}
}

// Installations is the table of rows, with columns for namespace and cluster if there are several.
func Installations(rows []Row) Table {
	several := len(rows) > 0 && slices.ContainsFunc(rows, func(row Row) bool {
		return row.Namespace != rows[0].Namespace || row.Cluster != rows[0].Cluster
	})
	table := NewTable("CLUSTER", "NAME", "ADDON?", "VERSION", "STATE", "REASON?", "AGE?", "UPDATE*", "OBJECTS*", "TARGET-NAMESPACE*",
		"NAMESPACE*", "MESSAGE*?")
	table.Columns[0].Wide = !several
	for _, row := range rows {
		cells := Of(row.Cluster, row.Name, row.Addon, row.Version, row.State, row.Reason, Age(row.Age), row.Update, row.Objects,
			row.TargetNamespace, row.Namespace, row.Message)
		cells[4] = StateCell(row.State)
		table.Add(cells...)
	}
	return table
}
