package revision

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// highestRevision is the highest that is written, and accepted in a name: higher numbers must remain.
const highestRevision = 1 << 30

func headName(owner ownership.Owner, revision int) string { return nameOf(owner.LongID(), revision) }

func nameOf(id string, revision int) string { return fmt.Sprintf("addon-%s-%d", id, revision) }

func partName(head string, number int) string { return fmt.Sprintf("%s-%d", head, number) }

type named struct {
	// id is the owner's LongID.
	id       string
	revision int
	part     int
}

var recordNames = regexp.MustCompile(`^addon-([0-9a-f]{32})-([1-9][0-9]{0,9})(?:-([1-9][0-9]{0,3}))?$`)

func parseName(name string) (named, bool) {
	found := recordNames.FindStringSubmatch(name)
	if found == nil {
		return named{}, false
	}
	revision, err := strconv.Atoi(found[2])
	part, _ := strconv.Atoi(found[3]) // a head has none
	return named{id: found[1], revision: revision, part: part}, err == nil && revision <= highestRevision
}

func (n named) isHead() bool { return n.part == 0 }

func (n named) isOf(owner ownership.Owner) bool { return n.id == owner.LongID() }

// headsOf are the heads of an owner, newest first.
func headsOf(items []metav1.PartialObjectMetadata, owner ownership.Owner) []named {
	var heads []named
	for i := range items {
		if name, ok := parseName(items[i].Name); ok && name.isHead() && name.isOf(owner) {
			heads = append(heads, name)
		}
	}
	slices.SortFunc(heads, func(a, b named) int { return b.revision - a.revision })
	return heads
}

// revisionsOf has the revisions in a list by their owners' LongIDs.
func revisionsOf(items []metav1.PartialObjectMetadata) map[string][]int {
	found := map[string][]int{}
	for i := range items {
		if name, ok := parseName(items[i].Name); ok && name.isHead() {
			found[name.id] = append(found[name.id], name.revision)
		}
	}
	for _, revisions := range found {
		slices.SortFunc(revisions, func(a, b int) int { return b - a })
	}
	return found
}
