package catalogue_test

import (
	"slices"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestDependencyDigestIsOfWhatIsThere fails when a seed and the master compute different digests for the same
// catalogues, or equal ones for different ones.
func TestDependencyDigestIsOfWhatIsThere(t *testing.T) {
	one := catalogue.DependencyDigest(map[string]string{"web": "sha256:1", "dns": "sha256:2"})
	if other := catalogue.DependencyDigest(map[string]string{"dns": "sha256:2", "web": "sha256:1", "gone": ""}); other != one {
		t.Errorf("an add-on without catalogue counts: %s, %s", one, other)
	}
	for _, digests := range []map[string]string{{"web": "sha256:2", "dns": "sha256:1"}, {"web": "sha256:1"}, nil} {
		if catalogue.DependencyDigest(digests) == one {
			t.Errorf("%v has the digest of other catalogues", digests)
		}
	}
}

// TestASetDependsOnItsAddons fails when a set depends on other catalogues than its items name, or one of type Core
// not on all.
func TestASetDependsOnItsAddons(t *testing.T) {
	all := map[string]bool{"web": true, "dns": true}
	custom := v1.AddonSetSpec{Addons: []v1.AddonSetItem{{Name: "frontend", AddonRef: v1.AddonReference{Name: "web"}}}}
	if got := catalogue.Dependencies(&custom, all); !slices.Equal(got, []string{"web"}) {
		t.Errorf("a custom set depends on %v", got)
	}
	if got := slices.Sorted(slices.Values(catalogue.Dependencies(&v1.AddonSetSpec{Type: v1.AddonSetCore}, all))); !slices.Equal(got, []string{"dns", "web"}) {
		t.Errorf("a core set depends on %v", got)
	}
}

// TestASetsMarkCoversWhatASeedGoesBy fails when a field that a seed uses can be changed under a mark.
func TestASetsMarkCoversWhatASeedGoesBy(t *testing.T) {
	key := make([]byte, catalogue.MarkKeySize)
	marked := func() *v1.AddonSet {
		set := &v1.AddonSet{Spec: v1.AddonSetSpec{Priority: 3}}
		set.Namespace, set.Name = "addon-catalogue", "monitoring"
		set.Annotations = map[string]string{v1.AnnotationSeed: "north", v1.AnnotationGate: "r1/1", v1.AnnotationDigest: "sha256:x"}
		content, err := catalogue.SetDigest(&set.Spec)
		if err != nil {
			t.Fatal(err)
		}
		set.Annotations[v1.AnnotationMark] = catalogue.SetMark(key, set, content)
		return set
	}
	if !catalogue.IsSetMarked(key, marked()) {
		t.Fatal("its own mark is not accepted")
	}
	for why, change := range map[string]func(*v1.AddonSet){
		"spec":             func(set *v1.AddonSet) { set.Spec.Paused = true },
		"name":             func(set *v1.AddonSet) { set.Name = "other" },
		"namespace":        func(set *v1.AddonSet) { set.Namespace = "other" },
		"gate":             func(set *v1.AddonSet) { set.Annotations[v1.AnnotationGate] = "r1/9" },
		"seed":             func(set *v1.AddonSet) { set.Annotations[v1.AnnotationSeed] = "south" },
		"digest":           func(set *v1.AddonSet) { set.Annotations[v1.AnnotationDigest] = "sha256:y" },
		"removal-approved": func(set *v1.AddonSet) { set.Annotations[v1.AnnotationRemovalApproved] = "word" },
		"confirm-deletion": func(set *v1.AddonSet) { set.Annotations[v1.AnnotationConfirmDeletion] = "monitoring" },
		"created":          func(set *v1.AddonSet) { set.Annotations[v1.AnnotationCreated] = "2001-01-01T00:00:00Z" },
		"leave-out":        func(set *v1.AddonSet) { set.Annotations[v1.AnnotationLeaveOut] = "amber" },
		"mark":             func(set *v1.AddonSet) { set.Annotations[v1.AnnotationMark] = catalogue.MarkKeyID(key) + ":00" },
		"no mark":          func(set *v1.AddonSet) { delete(set.Annotations, v1.AnnotationMark) },
	} {
		set := marked()
		if change(set); catalogue.IsSetMarked(key, set) {
			t.Errorf("%s can be changed", why)
		}
	}
}
