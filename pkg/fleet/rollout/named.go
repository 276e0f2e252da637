package rollout

import (
	"fmt"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// rowsNamed is the maximum number of rows of clusters in a message.
	rowsNamed = 3
	// maxNamed is the maximum length of a name or a reason in a message, and maxWords that of the first row's
	// message; in bytes.
	maxNamed, maxWords = 63, 200
)

// named lists the first rows that a message is about, each with its reason and item, and the number of omitted ones. It quotes the message
// of the first row only if that is blocked: the controller writes such a message. Messages from user clusters stay in status.clusters.
func named(rows []kubermaticv1.SetClusterStatus, number int32, isAbout func(*kubermaticv1.SetClusterStatus) bool) string {
	var names []string
	for i := range rows {
		row := &rows[i]
		if len(names) == rowsNamed || row.Reason == "" || !slices.Contains(troubledStates, row.State) || !isAbout(row) {
			continue
		}
		name := text.Cut(row.Name, maxNamed) + ": " + text.Cut(row.Reason, maxNamed)
		if row.Item != "" {
			name += fmt.Sprintf(" of item %q", row.Item)
		}
		if len(names) == 0 && row.State == kubermaticv1.ClusterBlocked && row.Message != "" {
			name += ": " + text.CutWords(row.Message, maxWords)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	if more := int(number) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return " (" + strings.Join(names, "; ") + ")"
}

// listed are the rows of all seeds that count, the gravest first. Those that are sick for a shared reason are failed.
func (f *Fleet) listed() []kubermaticv1.SetClusterStatus {
	var all []kubermaticv1.SetClusterStatus
	among := causes{}
	for i := range f.Counted {
		among.noteRow(&f.Counted[i])
		for _, row := range f.Counted[i].Clusters {
			row.Seed = f.Counted[i].Seed
			all = append(all, row)
		}
	}
	for i := range all {
		if all[i].State == kubermaticv1.ClusterSick && among.isShared(all[i].Cause) {
			all[i].State = kubermaticv1.ClusterFailed
		}
	}
	slices.SortStableFunc(all, func(a, b kubermaticv1.SetClusterStatus) int {
		return slices.Index(troubledStates, a.State) - slices.Index(troubledStates, b.State)
	})
	return all
}
