package distributor

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/bench/bar"
)

// The size of the bars: 200 add-ons with 25 versions each, in 8 catalogues.
const (
	catalogues     = 8
	addonsOfEach   = 25
	versionsOfEach = 25
	versionsOfAll  = catalogues * addonsOfEach * versionsOfEach

	mergeBar = 300 * time.Millisecond
	platform = "kubermatic"
)

// large are the catalogues of the bars, authored. The first one, which is edited again and again, is Core: edits of others are paced.
func large() []*v1.AddonCatalogue {
	objects := make([]*v1.AddonCatalogue, 0, catalogues)
	for c := range catalogues {
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
			Namespace: platform, Name: fmt.Sprintf("catalogue-%d", c), UID: types.UID(fmt.Sprintf("uid-%d", c)),
		}}
		if c == 0 {
			object.Spec.Type = v1.CatalogueCore
		}
		for a := range addonsOfEach {
			object.Spec.Addons = append(object.Spec.Addons, addonOf(fmt.Sprintf("addon-%d-%02d", c, a)))
		}
		objects = append(objects, object)
	}
	return objects
}

func addonOf(name string) v1.Addon {
	addon := v1.Addon{Name: v1.AddonName(name), DisplayName: name, Description: "An add-on of the size that add-ons have."}
	for v := range versionsOfEach {
		addon.Versions = append(addon.Versions, v1.AddonVersion{
			Version:  fmt.Sprintf("1.%d.0", v),
			Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source: &v1.Source{Git: &v1.GitSource{
				Remote: "https://git.example.com/platform/addons.git", Path: fmt.Sprintf("%s/%d", name, v),
			}},
			Constraints: &v1.Constraints{KKPVersion: ">= 2.28", K8sVersion: v1.VersionRange(fmt.Sprintf(">= 1.%d", 30+v%12))},
			Values:      &runtime.RawExtension{Raw: []byte(`{"image":{"repository":"registry.example.com/addon","tag":"v1"},"replicas":3}`)},
		})
	}
	return addon
}

// BenchmarkMerge reads and merges 5,000 versions from nothing, which no pass but the first of a process has to.
func BenchmarkMerge(b *testing.B) {
	objects := large()
	before := processorTime(b)
	var merged int
	for b.Loop() {
		sources := make([]*catalogue.Source, 0, len(objects))
		for _, object := range objects {
			source, err := catalogue.Read(object)
			if err != nil {
				b.Fatal(err)
			}
			sources = append(sources, source)
		}
		merged = len(catalogue.Merge(sources, catalogue.Claims{}).Addons)
	}
	spent := (processorTime(b) - before) / time.Duration(b.N)
	if merged != catalogues*addonsOfEach {
		b.Fatalf("%d add-ons merged", merged)
	}
	b.Logf("%d versions are merged", versionsOfAll)
	bar.Time(b, "cpu-ms/merge", milliseconds(spent), milliseconds(mergeBar))
}

// processorTime is what this process has used of all processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
