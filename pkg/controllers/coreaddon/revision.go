package coreaddon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// revisionLength is the number of characters of the hash in a revision: users write it into annotations.
const revisionLength = 16

// basis is the content that a Core set's revision is taken from, in addition to its spec. Content that is unknown for
// a while counts as unchanged: a new revision would forget the failures.
type basis struct {
	Rules    [][2]string
	List     string
	Contents map[string]string
	KKP      string
}

// basisOf returns the basis of offers. Argument before is the present revision's basis, nil when a process starts. A
// deleted list counts as empty: its add-ons stay.
func basisOf(from *offers, before *basis) (made *basis, err error) {
	made = &basis{Contents: map[string]string{}, KKP: catalogue.CanonicalPlatformVersion(from.kkp)}
	for _, one := range rules() {
		made.Rules = append(made.Rules, [2]string{one.addon, one.condition})
	}
	var items []any
	for _, one := range from.list.Items {
		items = append(items, []any{one.name, one.spec, one.selector.String()})
	}
	if from.list.Absent {
		items = nil
	}
	if made.List, err = catalogue.Digest(items); err != nil {
		return nil, fmt.Errorf("computing the digest of the custom core list: %w", err)
	}
	for name, entry := range from.entries {
		if entry == nil {
			if before != nil && before.Contents[name] != "" {
				made.Contents[name] = before.Contents[name]
			}
			continue
		}
		if made.Contents[name], err = contentOf(entry); err != nil {
			return nil, err
		}
	}
	if from.kkp == "" && before != nil {
		made.KKP = before.KKP
	}
	return made, nil
}

// contentOf is the digest of all versions of an add-on that can be chosen. A deprecation does not count.
func contentOf(entry *catalogue.Entry) (string, error) {
	var found [][]any
	for _, version := range entry.Addon.Versions {
		_, origin := entry.Version(version.Version)
		row := []any{version.Version, origin.Content, version.Constraints, entry.Left(version.Version)}
		if version.Draft { // so that other digests do not change
			row = append(row, "draft")
		}
		found = append(found, row)
	}
	slices.SortFunc(found, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	digest, err := catalogue.Digest([]any{entry.Type, found})
	if err != nil {
		return "", fmt.Errorf("computing the digest of add-on %q: %w", entry.Addon.Name, err)
	}
	return digest, nil
}

func revisionOf(spec *v1.AddonSetSpec, from *basis) (string, error) {
	about := *spec
	about.Paused, about.Removal, about.Rollout = false, "", nil
	digest, err := catalogue.Digest([]any{about, from})
	if err != nil {
		return "", fmt.Errorf("computing the revision: %w", err)
	}
	return strings.TrimPrefix(digest, "sha256:")[:revisionLength], nil
}

// revise takes the revision, and writes a new one into the status before anything moves to it. Grants of another
// revision become void.
func (r *Reconciler) revise(ctx context.Context, f *setFacts) *loop.Outcome {
	if f.run.counted && f.run.seen.isSame(f.offers) {
		return nil
	}
	before := f.run.basis
	made, err := basisOf(f.offers, before)
	if err != nil {
		return failed(err)
	}
	revision, err := revisionOf(&f.run.spec, made)
	if err != nil {
		return failed(err)
	}
	isSame := sameBasis(before, made)
	isUnknown := f.offers.list.Problem != nil && !f.offers.list.Read && f.run.revision != "" // nothing is added or removed
	isUnread := f.run.spec.Type == ""                                                        // this process has read no spec: nothing moves
	startedAt := f.run.startedAt
	if revision == f.run.revision || isUnknown || isUnread {
		revision = f.run.revision
	} else if startedAt, err = r.begin(ctx, f, revision); err != nil {
		return failed(err)
	}
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	f.run.seen = f.offers
	if isSame && revision == f.run.revision && f.run.offers != nil && f.run.offers.sameList(f.offers) {
		return nil // also keeps the entries, which an edit without effect recreates
	}
	f.run.offers, f.run.basis, f.run.counted = f.offers, made, false
	f.run.adopt(revision, startedAt)
	return nil
}

// adopt makes a revision the present one. The caller holds the mutex.
func (r *running) adopt(revision string, startedAt time.Time) {
	if revision == r.revision {
		return
	}
	r.revision, r.startedAt = revision, startedAt
	r.decision = rollout.Decision{Open: rollout.NoGroup}
	for _, one := range r.clusters {
		one.Void()
	}
}

// begin writes a new revision into the status.
func (r *Reconciler) begin(ctx context.Context, f *setFacts, revision string) (startedAt time.Time, err error) {
	if err := r.adoptLive(ctx, f); err != nil {
		return time.Time{}, err
	}
	startedAt = waves.Began(r.Clock.Now(), f.run.startedAt)
	wanted, at := f.run.shown.DeepCopy(), metav1.NewTime(startedAt)
	wanted.Revision, wanted.StartedAt = revision, &at
	wanted.Catalogues = "" // the counts are of the previous revision: the master must not use them
	if err := waves.WriteStatus(ctx, r.Client, fieldOwner, f.set, wanted); err != nil {
		return time.Time{}, err
	}
	waves.Begins(r.Recorder, f.set, revision)
	return startedAt, nil
}

// adoptLive reads the copy past the cache, and adopts its status if an earlier process began a revision that this one
// does not know: to begin that revision again would forget its failures.
func (r *Reconciler) adoptLive(ctx context.Context, f *setFacts) error {
	live, err := waves.CheckRevision(ctx, r.Reader, f.set, f.run.revision)
	if live == nil {
		return err
	}
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	found := begin(live, r.Options.StatusInterval)
	f.run.shown, f.run.basis, f.run.seen, f.run.counted = found.shown, nil, nil, false
	f.run.adopt(found.revision, found.startedAt)
	return err
}

// isSame reports whether two offers are identical: entries and the list are parsed once.
func (o *offers) isSame(other *offers) bool {
	items, others := o.list.Items, other.list.Items
	return o.sameList(other) && o.kkp == other.kkp && maps.Equal(o.entries, other.entries) &&
		len(items) == len(others) && (len(items) == 0 || &items[0] == &others[0])
}

// sameList reports whether the list has the same state as before.
func (o *offers) sameList(other *offers) bool {
	return o.list.Absent == other.list.Absent && o.list.Read == other.list.Read && (o.list.Problem == nil) == (other.list.Problem == nil)
}

// sameBasis reports whether two bases are equal; nil equals none.
func sameBasis(a, b *basis) bool {
	if a == nil {
		return false
	}
	one, err := json.Marshal(a)
	other, problem := json.Marshal(b)
	return err == nil && problem == nil && string(one) == string(other)
}
