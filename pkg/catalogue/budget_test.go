package catalogue_test

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// hold gives catalogues to a budget as a watch brings them, and names those that are stubs.
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

// TestWhatTheTotalsAllowIsHeldWhole turns red when the master's cache has no room for what all Custom catalogues may have together: many
// versions, or long ones, beside large Core catalogues, which are always whole; or when it holds the content of other namespaces.
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

// TestAStubIsWeighedByItsMark turns red when what a cache holds as a stub counts as nothing for the room that is left, or when it counts
// so after it is whole.
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

// Red when a flood of Custom catalogues makes a stub of a Core one, whose names others would get; or a catalogue of type Core in another
// namespace, which takes no verb, is always whole.
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
