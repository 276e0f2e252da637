package revision

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

const (
	// formerDigits of an owner's ID are in names of unsealed records; two owners can share them.
	formerDigits = 10
	// highestRevision that is written, and believed of a name: higher numbers must remain.
	highestRevision = 1 << 30
)

func headName(owner ownership.Owner, revision int) string { return nameOf(owner.LongID(), revision) }

func nameOf(id string, revision int) string { return fmt.Sprintf("addon-%s-%d", id, revision) }

func partName(head string, number int) string { return fmt.Sprintf("%s-%d", head, number) }

type named struct {
	// id is the owner's LongID, or the beginning of its ID in a former name.
	id       string
	revision int
	part     int
}

var recordNames = regexp.MustCompile(`^addon-([0-9a-f]{10}|[0-9a-f]{32})-([1-9][0-9]{0,9})(?:-([1-9][0-9]{0,3}))?$`)

func parseName(name string) (named, bool) {
	found := recordNames.FindStringSubmatch(name)
	if found == nil {
		return named{}, false
	}
	revision, err := strconv.Atoi(found[2])
	part, _ := strconv.Atoi(found[3]) // a head has none
	return named{id: found[1], revision: revision, part: part}, err == nil && revision <= highestRevision
}

// isFormer says whether it is a name from before records were sealed.
func (n named) isFormer() bool { return len(n.id) == formerDigits }

func (n named) isHead() bool { return n.part == 0 }

func (n named) head() string { return nameOf(n.id, n.revision) }

// isOf says whether the item is an owner's. Former names need the label.
func (n named) isOf(owner ownership.Owner, item *metav1.PartialObjectMetadata) bool {
	if n.isFormer() {
		return n.id == owner.ID()[:formerDigits] && item.Labels[v1.LabelInstallation] == owner.ID()
	}
	return n.id == owner.LongID()
}

// headsOf are the heads of an owner, newest first; of one revision the former name is last.
func headsOf(items []metav1.PartialObjectMetadata, owner ownership.Owner) []named {
	var heads []named
	for i := range items {
		if name, ok := parseName(items[i].Name); ok && name.isHead() && name.isOf(owner, &items[i]) {
			heads = append(heads, name)
		}
	}
	slices.SortFunc(heads, func(a, b named) int { return cmp.Or(b.revision-a.revision, len(b.id)-len(a.id)) })
	return heads
}

// revisionsOf has the revisions in a list by their owners' LongIDs; former names by their label.
func revisionsOf(items []metav1.PartialObjectMetadata) map[string][]int {
	found := map[string][]int{}
	for i := range items {
		name, ok := parseName(items[i].Name)
		if !ok || !name.isHead() {
			continue
		}
		id := name.id
		if name.isFormer() {
			id = items[i].Labels[v1.LabelInstallation]
		}
		found[id] = append(found[id], name.revision)
	}
	for _, revisions := range found {
		slices.SortFunc(revisions, func(a, b int) int { return b - a })
	}
	return found
}
