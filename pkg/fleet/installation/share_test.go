package installation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// F12: Red when one cluster may have installations, or values, without a bound; or when a Core add-on or one of a set is refused for it, or
// counts against others.
func TestTheShareOfACluster(t *testing.T) {
	of := func(name string, bytes int) v1.AddonInstallation {
		made := v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if bytes > 0 {
			made.Spec.Values, made.Spec.ValuesTemplate = &runtime.RawExtension{Raw: []byte(strings.Repeat("x", bytes-1))}, "x"
		}
		return made
	}
	others := func(count, bytes int) (made []v1.AddonInstallation) {
		for i := range count {
			made = append(made, of(fmt.Sprintf("i%d", i), bytes))
		}
		return made
	}
	labelled, annotated := of("own", 0), of("own", 0)
	labelled.Labels, annotated.Annotations = map[string]string{"a": "x"}, map[string]string{"a": "x"}
	core, ofSet := of("own", 9), of("own", 9)
	core.Spec.CoreAddon, ofSet.Labels = true, map[string]string{v1.LabelSet: "monitoring"}
	large := func(one v1.AddonInstallation) v1.AddonInstallation {
		one.Name, one.Spec.Values = "platform", &runtime.RawExtension{Raw: []byte(strings.Repeat("x", 16<<20))}
		return one
	}
	for _, test := range []struct {
		why    string
		object v1.AddonInstallation
		before []v1.AddonInstallation
		says   string
	}{
		{"the last that may be", of("own", 0), others(999, 1), ""},
		{"one more", of("own", 0), others(1000, 1), "the cluster has 1000 AddonInstallations"},
		{"itself does not count", of("i0", 0), others(1000, 1), ""},
		{"all values that may be", of("own", 1<<20), others(15, 1<<20), ""},
		{"a byte more", of("own", 1), others(16, 1<<20), "at most 16384 KiB are allowed"},
		{"labels that have room", labelled, others(1, 16<<20-2), ""},
		{"labels count", labelled, others(1, 16<<20-1), "values, labels and annotations"},
		{"annotations count", annotated, others(1, 16<<20-1), "values, labels and annotations"},
		{"so do those of others", of("own", 16<<20-1), []v1.AddonInstallation{{ObjectMeta: metav1.ObjectMeta{Annotations: annotated.Annotations}}}, "at most 16384 KiB are allowed"},
		{"a Core add-on", core, others(1000, 1<<15), ""},
		{"one of a set", ofSet, others(1000, 1<<15), ""},
		{"those of the platform do not count", of("own", 1), append(others(999, 1), large(core), large(ofSet)), ""},
	} {
		err := installation.CheckShare(&test.object, test.before)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}

// TestManagedFieldsGoByWhatTheyAreAbout turns red when managedFields have no bound, or one that a few managers of large values reach.
func TestManagedFieldsGoByWhatTheyAreAbout(t *testing.T) {
	of := func(managers, each, bytes int) *v1.AddonInstallation {
		made := &v1.AddonInstallation{Spec: v1.AddonInstallationSpec{Values: &runtime.RawExtension{Raw: make([]byte, bytes)}}}
		for range managers {
			made.ManagedFields = append(made.ManagedFields, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", each))})
		}
		return made
	}
	for _, test := range []struct {
		why       string
		object    *v1.AddonInstallation
		isRefused bool
	}{
		{"small ones of many managers", of(100, 600, 0), false},
		{"large ones of large values", of(3, 350<<10, 256<<10), false},
		{"larger ones of large values", of(4, 350<<10, 256<<10), true},
		{"many of small values", of(100, 1<<10, 1<<10), true},
	} {
		if err := installation.CheckManagers(nil, test.object); (err != nil) != test.isRefused {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}

func TestWhichInstallationIsOlder(t *testing.T) {
	at := func(name string, second int64) *v1.AddonInstallation {
		return &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}}
	}
	for _, test := range []struct {
		a, b *v1.AddonInstallation
		want bool
	}{{at("b", 1), at("a", 2), true}, {at("a", 2), at("b", 1), false}, {at("a", 1), at("b", 1), true}, {at("b", 1), at("a", 1), false}, {at("a", 1), at("a", 1), false}} {
		if got := installation.IsOlder(test.a, test.b); got != test.want {
			t.Errorf("%s of %s before %s of %s: %t", test.a.Name, test.a.CreationTimestamp, test.b.Name, test.b.CreationTimestamp, got)
		}
	}
}
