package catalogue_test

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// hold adds catalogues to a budget as a watch does, and returns the names of the stubs.
func hold(
	t *testing.T, into *budget.Budget[v1.AddonCatalogue, *v1.AddonCatalogue], all ...*v1.AddonCatalogue,
) (held []any, stubs []string) {
	t.Helper()
	for _, one := range all {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		decoded := &v1.AddonCatalogue{}
		if err := json.Unmarshal(text, decoded); err != nil {
			t.Fatal(err)
		}
		decoded.UID = types.UID("uid-" + one.Name)
		found, err := into.Transform(decoded)
		if err != nil {
			t.Fatal(err)
		}
		if budget.IsStub(found.(*v1.AddonCatalogue)) {
			stubs = append(stubs, one.Name)
		}
		held = append(held, found)
	}
	return held, stubs
}

// TestWhatTheTotalsAllowIsHeldWhole fails when the master's cache has no space for the maximum of all Custom
// catalogues together, as many versions or long ones, beside large Core catalogues, which are never stubs; or when it
// holds the content of other namespaces.
func TestWhatTheTotalsAllowIsHeldWhole(t *testing.T) {
	t.Parallel()
	of := func(name string, versions, bytes int) *v1.AddonCatalogue {
		made := crowd(name, 1, versions, bytes)
		made.Namespace = "kubermatic"
		return made
	}
	core := of("core", 128, 10<<10)
	core.Spec.Type = v1.CatalogueCore
	long, many := []*v1.AddonCatalogue{core}, []*v1.AddonCatalogue{core}
	for at := range 64 {
		long = append(long, of(fmt.Sprintf("long-%d", at), 100, 10<<10))
	}
	for at := range 20 {
		many = append(many, of(fmt.Sprintf("many-%d", at), 1000, 2<<10))
	}
	short := []*v1.AddonCatalogue{core, of("short-1", 9_900, 1), of("short-2", 9_900, 1)}
	for what, all := range map[string][]*v1.AddonCatalogue{"long": long, "many": many, "short": short} {
		into := budget.New[v1.AddonCatalogue](catalogue.Budget("kubermatic"))
		held, stubs := hold(t, into, all...)
		if len(stubs) > 0 {
			t.Errorf("%s: stubs are held of %v", what, stubs)
		}
		foreign := of("foreign", 1, 1)
		foreign.Namespace = "other"
		if _, stubs = hold(t, into, foreign); len(stubs) != 1 {
			t.Errorf("content of another namespace is held")
		}
		runtime.KeepAlive(held)
	}
}

// TestAStubIsWeighedByItsMark fails when a stub in the cache does not count against the space that is left, or still
// counts as a stub after it is complete.
func TestAStubIsWeighedByItsMark(t *testing.T) {
	t.Parallel()
	var scale catalogue.Scale
	one := crowd("one", 1, 1, 1)
	one.Annotations = map[string]string{v1.AnnotationStub: "123456"}
	if found := scale.Others([]v1.AddonCatalogue{*one}, "", "other"); found.Bytes != 123456 {
		t.Errorf("a stub weighs %d", found.Bytes)
	}
	one.Annotations = nil
	if found := scale.Others([]v1.AddonCatalogue{*one}, "", "other"); found != catalogue.Weigh(&one.Spec) {
		t.Errorf("what is whole weighs %d", found.Bytes)
	}
}

// TestACoreCatalogueIsAlwaysWhole fails when a flood of Custom catalogues turns a Core one into a stub, so that
// others get its names; or when a catalogue of type Core in another namespace, which requires no verb, is held with
// its content.
func TestACoreCatalogueIsAlwaysWhole(t *testing.T) {
	t.Parallel()
	kind := catalogue.Budget("kubermatic")
	kind.Most = 1 << 20
	into := budget.New[v1.AddonCatalogue](kind)
	of := func(name, namespace string, class v1.CatalogueType) *v1.AddonCatalogue {
		made := crowd(name, 1, 100, 10<<10)
		made.Namespace, made.Spec.Type = namespace, class
		return made
	}
	held, stubs := hold(t, into, of("custom", "kubermatic", v1.CatalogueCustom), of("core", "kubermatic", v1.CatalogueCore),
		of("foreign", "other", v1.CatalogueCore))
	if fmt.Sprint(stubs) != "[custom foreign]" {
		t.Errorf("stubs are held of %v", stubs)
	}
	runtime.KeepAlive(held)
}
