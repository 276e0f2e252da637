package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	objects "github.com/trellis-addons/trellis/test/given" // given is a function here
)

// madeCatalogue is a catalogue that a test fills by itself.
func madeCatalogue(t testing.TB, addons int) *Catalogue {
	t.Helper()
	made := NewCatalogue("catalogue", mergedcatalogue.New(logr.Discard()), logr.Discard())
	for i := range addons {
		made.put(mergedWith(i, 1, ">= 1.30"))
	}
	made.publish()
	return made
}

// mergedWith is a merged object; another revision has another version of the add-on.
func mergedWith(i, revision int, k8s string) *v1.AddonCatalogue {
	name := fmt.Sprintf("addon-%03d", i)
	version := v1.AddonVersion{Version: fmt.Sprintf("1.0.%d", revision), Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(k8s)}}
	made := objects.Merged("catalogue", "", objects.Addon(name, version))
	made.UID, made.ResourceVersion, made.Spec.Addons[0].DisplayName = types.UID(name), fmt.Sprint(revision), "<&>"
	return made
}

func (c *Catalogue) entries() []*catalogue.Entry {
	var entries []*catalogue.Entry
	for _, object := range c.now().objects {
		entries = append(entries, object.entry)
	}
	return entries
}

// expectListing compares an answer with one that is made in one go.
func expectListing(t *testing.T, why string, merged *Catalogue, cached *answers, key pair) *content {
	t.Helper()
	got, err := cached.to(t.Context(), merged.now(), key)
	if err != nil {
		t.Fatal(err)
	}
	var listing catalogue.Listing
	if err := json.Unmarshal(got.plain.body, &listing); err != nil {
		t.Fatalf("%s: %v\n%s", why, err, got.plain.body)
	}
	want := catalogue.Listing{
		KKPVersion: catalogue.CanonicalPlatformVersion(key.kkp), K8sVersion: catalogue.CanonicalPlatformVersion(key.k8s),
		Addons: []catalogue.ListedAddon{},
	}
	lister := catalogue.NewLister(catalogue.Platform{KKPVersion: key.kkp, K8sVersion: key.k8s},
		catalogue.ListOptions{Explain: key.explain, Describe: key.describe})
	for _, entry := range merged.entries() {
		if listed, ok := lister.List(entry); ok {
			want.Addons = append(want.Addons, listed)
		}
	}
	slices.SortFunc(want.Addons, func(a, b catalogue.ListedAddon) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(want, listing); diff != "" {
		t.Errorf("%s: (-want +answer)\n%s", why, diff)
	}
	return got
}

// TestAnswersFollowTheCatalogue changes a catalogue in every way; the answer made of old and new
// parts is the same as one that is made anew.
func TestAnswersFollowTheCatalogue(t *testing.T) {
	t.Parallel()
	merged, cached := madeCatalogue(t, 5), newAnswers(false, nil)
	keys := []pair{{kkp: "2.31.0", k8s: "1.36.3"}, {kkp: "2.31.0", k8s: "1.36.3", explain: true}, {k8s: "1.29.0", describe: true}, {kkp: "2.31.0"}}
	everyKey := func(why string) {
		t.Helper()
		for _, key := range keys {
			expectListing(t, why, merged, cached, key)
		}
	}
	everyKey("at first")
	for _, change := range []struct {
		why  string
		make func()
	}{
		{"the first one changes", func() { merged.put(mergedWith(0, 2, ">= 1.37")) }},
		{"one comes in front", func() { merged.put(mergedWith(-9, 1, "< 1.0")) }},
		{"one comes last", func() { merged.put(mergedWith(9, 1, "")) }},
		{"the last one goes", func() { merged.remove(mergedWith(9, 1, "")) }},
		{"the first one fits again", func() { merged.put(mergedWith(0, 3, "")) }},
		{"one loses its role", func() {
			object := mergedWith(2, 2, "")
			object.Labels = nil
			merged.put(object)
		}},
		{"one can't be read", func() {
			object := mergedWith(3, 2, "")
			object.Spec.Addons = nil
			merged.put(object)
		}},
		{"nothing is left", func() {
			for i := -9; i < 10; i++ {
				merged.remove(mergedWith(i, 1, ""))
			}
		}},
	} {
		change.make()
		merged.publish()
		everyKey(change.why)
	}
}

// TestOnlyWhatChangedIsDecidedAgain marks the parts of an answer, and finds the marks in the next
// one.
func TestOnlyWhatChangedIsDecidedAgain(t *testing.T) {
	t.Parallel()
	merged, cached, key := madeCatalogue(t, 3), newAnswers(false, nil), pair{kkp: "2.31.0", k8s: "1.36.3"}
	expectListing(t, "at first", merged, cached, key)
	before := cached.find(key).present.Load()
	for i := range before.plain.body {
		if before.plain.body[i] == '<' {
			before.plain.body[i] = '!'
		}
	}
	merged.put(mergedWith(1, 2, ">= 1.30"))
	merged.publish()
	got, err := cached.to(t.Context(), merged.now(), key)
	if err != nil {
		t.Fatal(err)
	}
	var listing catalogue.Listing
	if err := json.Unmarshal(got.plain.body, &listing); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"!&>", "<&>", "!&>"} {
		if listing.Addons[i].DisplayName != want {
			t.Errorf("add-on %d says %q, want %q", i, listing.Addons[i].DisplayName, want)
		}
	}
}

// TestAnswersAreBounded asks for more platforms than are kept.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	merged, cached := madeCatalogue(t, 3), newAnswers(false, nil)
	for i := range 3 * mostAnswers {
		if _, err := cached.to(t.Context(), merged.now(), pair{k8s: fmt.Sprintf("1.%d.0", i)}); err != nil {
			t.Fatal(err)
		}
	}
	size := 0
	for element := cached.order.Front(); element != nil; element = element.Next() {
		size += element.Value.(*answer).size
	}
	if cached.order.Len() != mostAnswers || len(cached.byKey) != mostAnswers || cached.bytes != size || size == 0 {
		t.Errorf("%d and %d answers of %d bytes are kept, counted as %d", cached.order.Len(), len(cached.byKey), size, cached.bytes)
	}
	huge := &answer{}
	cached.byKey[huge.key] = cached.order.PushFront(huge)
	cached.account(huge, &listing{content: content{plain: form{body: make([]byte, mostAnswerBytes+1)}}})
	if cached.order.Len() != 0 || cached.bytes != 0 {
		t.Errorf("%d answers of %d bytes are kept beside one that fills all room", cached.order.Len(), cached.bytes)
	}
}

// TestAnswersAreMadeOnce has many ask for the same at once.
func TestAnswersAreMadeOnce(t *testing.T) {
	t.Parallel()
	merged, cached := madeCatalogue(t, 20), newAnswers(false, nil)
	var group sync.WaitGroup
	bodies := make([]*content, 50)
	for i := range bodies {
		group.Go(func() { bodies[i], _ = cached.to(t.Context(), merged.now(), pair{k8s: "1.36.3"}) })
	}
	group.Wait()
	for _, body := range bodies {
		if body != bodies[0] || body == nil {
			t.Fatal("an answer was made twice")
		}
	}
}

func TestAnswersEndWithTheRequest(t *testing.T) {
	t.Parallel()
	merged, cached := madeCatalogue(t, 1), newAnswers(false, nil)
	for range decisionsAtOnce {
		cached.turns <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := cached.to(ctx, merged.now(), pair{k8s: "1.36.3"})
	if _, ok := errors.AsType[*UnavailableError](err); !ok {
		t.Errorf("got %v, want an UnavailableError", err)
	}
}

// TestNothingUnmarkedIsAnswered: what has the role and no mark is not listed once the seed has the
// key, and is again when the key goes.
func TestNothingUnmarkedIsAnswered(t *testing.T) {
	t.Parallel()
	key := []byte("01234567890123456789012345678901")
	marks := mergedcatalogue.New(logr.Discard())
	made := NewCatalogue("catalogue", marks, logr.Discard())
	genuine, edited := mergedWith(1, 1, ">= 1.30"), mergedWith(2, 1, ">= 1.30")
	for _, object := range []*v1.AddonCatalogue{genuine, edited} {
		content, err := catalogue.ContentDigest(object)
		if err != nil {
			t.Fatal(err)
		}
		object.Annotations[v1.AnnotationMark] = catalogue.Mark(key, object, content)
	}
	edited.Spec.Addons[0].Versions[0].Version = "99.0.0"
	made.put(genuine)
	made.put(edited)
	made.put(mergedWith(3, 1, ">= 1.30"))
	expect := func(why string, want ...string) {
		t.Helper()
		made.publish()
		var have []string
		for _, entry := range made.entries() {
			have = append(have, string(entry.Addon.Name))
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: %v, want %v", why, have, want)
		}
	}
	expect("no key yet", "addon-001", "addon-002", "addon-003")
	if err := marks.Read(t.Context(), keySecret{key: key}, "kubermatic"); err != nil {
		t.Fatal(err)
	}
	expect("a key", "addon-001")
	made.put(mergedWith(1, 2, ">= 1.30"))
	expect("an edit of the marked one")
	made.put(genuine)
	expect("the marked one again", "addon-001")
	marks.Forget()
	expect("no key any more", "addon-001", "addon-002", "addon-003")
	made.remove(genuine)
	marks.Forget()
	expect("one is deleted", "addon-002", "addon-003")
}

// keySecret answers with the key of the marks.
type keySecret struct {
	client.Reader
	key []byte
}

func (s keySecret) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*corev1.Secret).Data = map[string][]byte{v1.MarkKeyField: s.key}
	return nil
}
