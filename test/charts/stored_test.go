package charts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	cataloguesCRD = "addoncatalogues.kubermatic.k8c.io"
	// olderVersion of catalogues is one that a release of before stored, presentVersion the one of today.
	olderVersion, presentVersion = "v1alpha1", "v1"
)

// excusedOfCRDs are rights of the Job that no call shows, with what asks for them.
var excusedOfCRDs = map[string]string{
	makesCRDs: byApply,
	"control addoncatalogues.kubermatic.k8c.io":     "policy catalogue-roles asks for it: a generated catalogue is here",
	"manage-core addoncatalogues.kubermatic.k8c.io": "policy core-authors asks for it: a Core catalogue is here",
	"manage-core addonsets.kubermatic.k8c.io":       "policy core-authors asks for it where a set is Core",
}

// TestTheJobBringsWhatIsStoredToOneVersion: an API server has catalogues of all sorts in a version that the chart does not know any more,
// one more in that of today, and the master's policies. Helm upgrades the chart, and its Job runs with its account and the rights that
// the chart grants it. Red when the Job lacks a right or has a spare one, when the older version is still stored or told in the CRD's status,
// when a catalogue is another after that, is written twice, or without need, and when the Job of the next upgrade may write catalogues.
func TestTheJobBringsWhatIsStoredToOneVersion(t *testing.T) {
	where := fleet.Shared().Cluster(upgraded)
	c := kit.Client(t, where.Config)
	withoutCRDs(t, c)
	defer withoutCRDs(t, c)
	played := playJobs(t, where, c)
	chart := chartFolder(t, "trellis-master")
	mustHelm(t, where, "install", "trellis-master", chart, "--set=webhook.enabled=false") // nothing answers here
	defer mustHelm(t, where, "uninstall", "trellis-master", "--no-hooks")

	catalogues := storedBefore(t, c)
	written, as := storedCatalogues(t), readAnew(t, c, catalogues)
	seen := len(callsOfJobs(t))
	output, err := helm(t, where, "upgrade", "trellis-master", chart, "--reuse-values")
	told := played.Output("trellis-master-crds")
	if err != nil || !strings.Contains(told, "and stores 4 objects in one version") {
		t.Fatalf("%v\n%s\nthe Job told:\n%s", err, output, told)
	}
	expectRightsUsed(t, "trellis-master-crds", hooks(t, where, "trellis-master"), callsOfJobs(t)[seen:], excusedOfCRDs)

	if crd := cataloguesDefinition(t); !slices.Equal(crd.Status.StoredVersions, []string{presentVersion}) || len(crd.Spec.Versions) != 1 {
		t.Errorf("the CRD has %d versions, and stored are %v", len(crd.Spec.Versions), crd.Status.StoredVersions)
	}
	want := map[string]stored{}
	for name, one := range written {
		if one.in == olderVersion {
			one = stored{in: presentVersion, writes: one.writes + 1}
		}
		want[name] = one
	}
	if diff := cmp.Diff(want, storedCatalogues(t), cmp.AllowUnexported(stored{})); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(as, readAnew(t, c, catalogues)); diff != "" {
		t.Errorf("catalogues (-before +after):\n%s", diff)
	}
	mustHelm(t, where, "upgrade", "trellis-master", chart, "--reuse-values")
	if text := hooks(t, where, "trellis-master"); strings.Contains(text, "manage-core") {
		t.Errorf("the Job may write catalogues that are stored in one version:\n%s", text)
	}
}

// readAnew reads catalogues, less what each write changes.
func readAnew(t *testing.T, c client.Client, all []*kubermaticv1.AddonCatalogue) (found []*kubermaticv1.AddonCatalogue) {
	t.Helper()
	for _, one := range all {
		var read kubermaticv1.AddonCatalogue
		expect.Get(t, c, client.ObjectKeyFromObject(one), &read)
		read.ResourceVersion = ""
		found = append(found, &read)
	}
	return found
}

// storedBefore makes catalogues while an older version is stored, and one more once that is not served any more.
func storedBefore(t *testing.T, c client.Client) []*kubermaticv1.AddonCatalogue {
	t.Helper()
	plain, core, generated, later := custom("plain"), custom("core"), custom("generated"), custom("later")
	core.Spec.Type = kubermaticv1.CatalogueCore
	generated.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleGenerated}
	all := []*kubermaticv1.AddonCatalogue{plain, core, generated, later}

	changeCatalogues(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		older := *crd.Spec.Versions[0].DeepCopy()
		older.Name, crd.Spec.Versions[0].Storage = olderVersion, false
		crd.Spec.Versions = append(crd.Spec.Versions, older)
	})
	crd := cataloguesDefinition(t)
	crd.Status.StoredVersions = []string{olderVersion}
	expect.UpdateStatus(t, crdClient(t), &crd)
	for _, one := range all[:3] {
		expect.Create(t, c, one)
		expectStoredIn(t, c, one, olderVersion)
	}
	changeCatalogues(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage, crd.Spec.Versions[1].Served = true, false, false
	})
	expect.Create(t, c, later)
	expectStoredIn(t, c, later, presentVersion)
	if stored := cataloguesDefinition(t).Status.StoredVersions; !slices.Equal(stored, []string{olderVersion, presentVersion}) {
		t.Fatalf("stored are %v", stored)
	}
	return all
}

// changeCatalogues changes the CRD of catalogues.
func changeCatalogues(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	crd := cataloguesDefinition(t)
	change(&crd)
	expect.Update(t, crdClient(t), &crd)
}

func cataloguesDefinition(t *testing.T) (crd apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	expect.Get(t, crdClient(t), client.ObjectKey{Name: cataloguesCRD}, &crd)
	return crd
}

// expectStoredIn writes a catalogue as it is until the API server, which follows a CRD by a watch of its own, stores it in a version.
func expectStoredIn(t *testing.T, c client.Client, catalogue *kubermaticv1.AddonCatalogue, version string) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		err := c.Patch(t.Context(), catalogue.DeepCopy(), client.RawPatch(types.MergePatchType, []byte("{}")))
		if in := storedCatalogues(t)[catalogue.Name].in; err == nil && in != version {
			err = fmt.Errorf("%s is stored in %q", catalogue.Name, in)
		}
		return err
	})
}

// stored is what etcd has of an object: in which version, and how often it was written.
type stored struct {
	in     string
	writes int64
}

// storedCatalogues are those of the cluster, by name.
func storedCatalogues(t *testing.T) map[string]stored {
	t.Helper()
	var all struct {
		Kvs []struct {
			Key, Value []byte
			Version    int64 `json:",string"`
		}
	}
	everything := base64.StdEncoding.EncodeToString([]byte{0})
	asked := map[string]any{"key": everything, "range_end": everything}
	if err := fleet.CallEtcd(t.Context(), fleet.Shared().EtcdURL(), "range", asked, &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]stored{}
	for _, record := range all.Kvs {
		_, name, isCatalogue := strings.Cut(string(record.Key), "/"+upgraded+"/kubermatic.k8c.io/addoncatalogues/"+namespace+"/")
		if !isCatalogue {
			continue
		}
		var object metav1.TypeMeta
		if err := json.Unmarshal(record.Value, &object); err != nil {
			t.Fatal(err)
		}
		found[name] = stored{in: object.GroupVersionKind().Version, writes: record.Version}
	}
	return found
}
