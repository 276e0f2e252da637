package addonset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// revisionLength is the number of characters of the hash in a revision: users write it into annotations.
const revisionLength = 16

// revisionOf is a hash of all that clusters get by a set: the spec without the fields about pace and order, the
// content and constraints of every version that its items can choose, and the platform's version. Argument contents
// is the result of contentsOf, by item.
func revisionOf(spec *v1.AddonSetSpec, contents map[string]string, kkp string) (string, error) {
	about := *spec
	about.Paused, about.Removal, about.Rollout = false, "", nil
	digest, err := catalogue.Digest([]any{about, contents, catalogue.CanonicalPlatformVersion(kkp)})
	if err != nil {
		return "", fmt.Errorf("computing the revision: %w", err)
	}
	return strings.TrimPrefix(digest, "sha256:")[:revisionLength], nil
}

// platformPart follows an item's name, which has no slash, in the key of its platform's values.
const platformPart = "/platform-values"

// contentsOf are the digests of the versions that each item can choose. For an add-on without a catalogue, the last
// known digest still counts: a new revision because of a temporary absence would forget the failures.
func contentsOf(of *set, from *offers, before map[string]string) (map[string]string, error) {
	contents := make(map[string]string, len(of.items))
	for i := range of.items {
		one := &of.items[i]
		name := string(one.Name)
		if one.PlatformSecretRef != nil {
			contents[name+platformPart] = cmp.Or(from.platform[name].content, before[name+platformPart])
		}
		entry := from.entries[one.addon()]
		if entry == nil {
			contents[name] = before[name]
			continue
		}
		digest, err := catalogue.Digest(choosableOf(entry, one.AddonRef.Version))
		if err != nil {
			return nil, fmt.Errorf("computing the digest of the versions that item %q can choose: %w", name, err)
		}
		contents[name] = digest
	}
	return contents, nil
}

// choosable is a version that an item can choose. A deprecation does not count.
type choosable struct {
	Version     string
	Content     string
	Constraints *v1.Constraints
}

func choosableOf(entry *catalogue.Entry, wanted string) []choosable {
	var found []choosable
	for _, version := range entry.Choosable(wanted) {
		_, origin := entry.Version(version.Version)
		found = append(found, choosable{version.Version, origin.Content, version.Constraints})
	}
	slices.SortFunc(found, func(a, b choosable) int { return strings.Compare(a.Version, b.Version) })
	return found
}

// dependencies is the digest of the merged catalogues that a set depends on.
func dependencies(of *set, from *offers) string {
	digests := map[string]string{}
	for _, addon := range of.dependsOn {
		if entry := from.entries[addon]; entry != nil {
			digests[addon] = entry.Digest
		}
	}
	return catalogue.DependencyDigest(digests)
}
