package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// shelf is a cache that has these catalogues, or can't be read.
type shelf struct {
	items []v1.AddonCatalogue
	err   error
}

func (s *shelf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if catalogues, ok := list.(*v1.AddonCatalogueList); ok {
		catalogues.Items = s.items
	}
	return s.err
}

func (*shelf) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("it has nothing else")
}

// Red when catalogues are created, or grow, beyond what all of them may have; when one of a namespace that nobody reads is; when a smaller
// one, a Core one or an edit that takes something out or sets a mark is refused; when labels and annotations fill the manager's memory, or what is on its
// way out does; and when 5,000 versions are too many.
func TestCataloguesHaveATotal(t *testing.T) {
	sized := func(name string, versions int, change ...func(*v1.AddonCatalogue)) *v1.AddonCatalogue {
		object := authored(name)
		object.Spec.Addons = nil
		for i := range versions {
			if i%128 == 0 {
				object.Spec.Addons = append(object.Spec.Addons, v1.Addon{Name: v1.AddonName(fmt.Sprintf("%s-%d", name, i))})
			}
			addon := &object.Spec.Addons[len(object.Spec.Addons)-1]
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", i)})
		}
		for _, one := range change {
			one(object)
		}
		return object
	}
	elsewhere := func(object *v1.AddonCatalogue) { object.Namespace = "elsewhere" }
	core := func(object *v1.AddonCatalogue) { object.Spec.Type = v1.CatalogueCore }
	note, labels := map[string]string{"example.com/note": strings.Repeat("x", 128<<10)}, map[string]string{}
	for i := range 2000 {
		labels[fmt.Sprintf("example.com/%040d", i)] = strings.Repeat("x", 60)
	}
	noted := func(object *v1.AddonCatalogue) { object.Annotations = note }
	labelled := func(object *v1.AddonCatalogue) { object.Labels = labels }
	going := func(object *v1.AddonCatalogue) { object.DeletionTimestamp = new(metav1.Now()) }
	many := func(catalogues, versions int, change ...func(*v1.AddonCatalogue)) (items []v1.AddonCatalogue) {
		for i := range catalogues {
			one := sized(fmt.Sprintf("c%d", i), versions, change...)
			one.UID = types.UID(one.Name)
			items = append(items, *one)
		}
		return items
	}
	const all = "all Custom catalogues together would have more than 20000 versions or 64 MiB"
	for _, test := range []struct {
		why           string
		have          []v1.AddonCatalogue
		err           error
		before, after *v1.AddonCatalogue
		refused       string
	}{
		{why: "the last of 5,000 versions", have: many(49, 100), after: sized("new", 100)},
		{why: "one beside 19,900", have: many(199, 100), after: sized("new", 100)},
		{why: "one beside 20,000", have: many(200, 100), after: sized("new", 1), refused: all},
		{why: "one without versions beside 20,000", have: many(200, 100), after: sized("new", 0), refused: all},
		{why: "a Core one", have: many(200, 100), after: sized("new", 1, core)},
		{why: "one beside Core ones", have: many(200, 100, core), after: sized("new", 1)},
		{why: "one that grows", have: many(200, 100), before: sized("c0", 100), after: sized("c0", 101), refused: all},
		{why: "one that shrinks", have: many(201, 100), before: sized("c0", 100), after: sized("c0", 99)},
		{why: "a Core one that becomes Custom", have: many(200, 100), before: sized("new", 1, core), after: sized("new", 1), refused: all},
		{why: "a share", have: nil, after: sized("new", 10_001), refused: `catalogue "new", with all that is generated from it, would have`},
		{why: "another namespace", have: many(200, 100, elsewhere), after: sized("new", 1, elsewhere), refused: all},
		{why: "the platform beside another namespace", have: many(200, 100, elsewhere), after: sized("new", 1)},
		{why: "one beside long annotations", have: many(600, 1, noted), after: sized("new", 1, noted), refused: all},
		{why: "one beside many labels", have: many(600, 1, labelled), after: sized("new", 1, labelled), refused: all},
		{why: "a mark on one beside 20,000", have: many(200, 100), before: sized("new", 1), after: sized("new", 1, func(object *v1.AddonCatalogue) {
			object.Annotations = map[string]string{v1.AnnotationReconcileAt: "now"}
		})},
		{why: "annotations alone", have: many(600, 1, noted), before: sized("new", 1), after: sized("new", 1, noted), refused: all},
		{why: "annotations that go", have: many(600, 1, noted), before: sized("new", 1, noted), after: sized("new", 1)},
		{why: "one that grows on its way out", have: many(200, 100), before: sized("c0", 1, going), after: sized("c0", 101, going), refused: all},
		{why: "one that loses a version on its way out", have: many(201, 100), before: sized("c0", 100, going), after: sized("c0", 99, going)},
		{why: "the cache can't be read", have: many(200, 100), err: errors.New("lost"), after: sized("new", 1)},
	} {
		t.Run(test.why, func(t *testing.T) {
			answer := (&webhook.Catalogues{Namespace: platform, Master: &shelf{items: test.have, err: test.err}}).Handle(t.Context(),
				question(t, catalogueOrNil(test.before), catalogueOrNil(test.after)))
			if test.refused != "" {
				expectRefused(t, answer, test.refused, test.after.Name)
				return
			}
			if !answer.Allowed {
				t.Errorf("refused: %s", answer.Result.Message)
			}
		})
	}
}
