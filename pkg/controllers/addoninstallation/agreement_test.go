package addoninstallation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/given"
)

// dice generate random catalogues, installations and clusters.
type dice struct{ *rand.Rand }

// one of some texts.
func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// odds are one in a number.
func (d dice) odds(of int) bool { return d.IntN(of) == 0 }

var numbers = []string{"1.0.0", "1.1.0", "2.0.0-rc.1", "2.0.0", "3.0.0", "edge"}

// merged is the catalogue of an add-on; nil if there is none.
func (d dice) merged() *kubermaticv1.AddonCatalogue {
	if d.odds(10) {
		return nil
	}
	addon := kubermaticv1.Addon{Name: "web"}
	for _, number := range numbers {
		if d.odds(4) {
			continue
		}
		version := kubermaticv1.AddonVersion{
			Version: number, Source: &kubermaticv1.Source{Git: &kubermaticv1.GitSource{Remote: "https://git.example.com/a.git"}},
			Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate, FormSpec: []kubermaticv1.FormField{
				{DisplayName: "N", InternalName: "n", Type: kubermaticv1.FormInteger},
			}},
			Constraints: &kubermaticv1.Constraints{K8sVersion: kubermaticv1.VersionRange(d.one("", "", ">= 1.36", "< 1.36", "not a range"))},
		}
		if d.odds(5) {
			version.Deprecated = "it leaks"
		}
		if d.odds(6) {
			version.Template, version.Source = nil, nil
		}
		addon.Versions = append(addon.Versions, version)
	}
	kind := kubermaticv1.CatalogueType(d.one(string(kubermaticv1.CatalogueCustom), string(kubermaticv1.CatalogueCore)))
	made := given.Merged("merged", kind, addon)
	made.Annotations[kubermaticv1.AnnotationKKPVersion] = d.one("v2.31.0", "", "nightly")
	made.Annotations[kubermaticv1.AnnotationLeftVersions] = d.one("", `["1.1.0"]`, `["2.0.0","3.0.0"]`)
	return made
}

func (d dice) installation() *kubermaticv1.AddonInstallation {
	made := &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-a", Name: "mine", Annotations: map[string]string{}},
		Spec:       kubermaticv1.AddonInstallationSpec{TargetNamespace: "web", CoreAddon: d.odds(2)},
	}
	if made.Spec.CoreAddon {
		made.Annotations[kubermaticv1.AnnotationCoreOrigin] = d.one(kubermaticv1.OriginRule, kubermaticv1.OriginList)
	}
	if d.odds(3) {
		made.Annotations[kubermaticv1.AnnotationAllowDowngrade] = "true"
	}
	return made
}

// history generates revisions of add-ons, complete or not, whose reconciliations write the status.
func (d dice) history(f *facts) {
	f.run.State.Loaded = true
	for range d.IntN(5) {
		f.installation.Spec.AddonRef.Name = kubermaticv1.AddonName(d.one("web", "web", "other"))
		intent := revision.Record{
			Addon: addonOf(f.installation), Version: d.one(numbers...), From: installedVersion(f), State: revision.StateIntent, Time: metav1.Now(),
		}
		applied := intent
		applied.State = revision.StateApplied
		f.run.State.Record = &intent
		if d.odds(2) { // otherwise the next reconciliation came first, or the status could not be written
			projectInstalled(f)
			projectObjects(f)
		}
		if !d.odds(3) {
			f.run.State.Record = &applied
		}
		projectInstalled(f)
		projectObjects(f)
	}
	f.installation.Spec.AddonRef = kubermaticv1.AddonReference{
		Name: "web", Version: d.one(append([]string{"", "1.x", ">= 2", ">= 1.2-01", "< 2"}, numbers...)...),
	}
}

// stored reads one object from an API server's cache.
type stored struct {
	client.Client
	object *kubermaticv1.AddonCatalogue
}

func (s stored) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.object == nil || client.ObjectKeyFromObject(s.object) != key {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "addoncatalogues"}, key.Name)
	}
	s.object.DeepCopyInto(into.(*kubermaticv1.AddonCatalogue))
	return nil
}

// List has no installations: the one in question is alone.
func (s stored) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// lone finds one Cluster.
type lone struct{ found target.Description }

func (o lone) Find(context.Context, target.Ref) (target.Description, error) { return o.found, nil }

// asked is one question to all three.
type asked struct {
	object      *kubermaticv1.AddonCatalogue
	f           *facts
	preReleases bool
}

// controller returns the version that the controller chooses, or its refusal.
func (a asked) controller(t *testing.T) (version, refusal string) {
	r := New(Dependencies{
		Client: stored{object: a.object}, Marks: mergedcatalogue.New(logr.Discard()),
		Options: Options{CatalogueNamespace: "merged", AllowPrereleases: a.preReleases},
	})
	switch outcome := r.resolve(t.Context(), a.f); {
	case outcome == nil:
		return a.f.choice.Version.Version, ""
	case outcome.Is(loop.Stalled):
		return "", outcome.Message
	default:
		t.Fatalf("got %#v", outcome)
		return "", ""
	}
}

// admission returns the webhook's answer about an installation with values: a refusal, or warnings.
func (a asked) admission(t *testing.T, values string) (refusal, warnings string) {
	object := a.f.installation.DeepCopy()
	object.Spec.Values = &runtime.RawExtension{Raw: []byte(values)}
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	handler := &webhook.Installations{
		Reader: stored{object: a.object}, Marks: mergedcatalogue.New(logr.Discard()), Clusters: lone{a.f.cluster},
		CatalogueNamespace: "merged", AllowPrereleases: a.preReleases,
	}
	answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: encoded},
	}})
	if answer.Result != nil {
		refusal = answer.Result.Message
	}
	return refusal, strings.Join(answer.Warnings, "\n")
}

func (a asked) upgrade(t *testing.T) resolution.UpgradeFinding {
	entry, err := mergedcatalogue.New(logr.Discard()).Entry(t.Context(), stored{object: a.object}, client.ObjectKey{Namespace: "merged", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	request := resolution.Request{
		Installation: a.f.installation, Installed: resolution.InstalledInStatus(a.f.installation), Cluster: a.f.cluster,
		AllowPrereleases: a.preReleases,
	}
	return resolution.CheckUpgrade(func(string) *catalogue.Entry { return entry }, []resolution.Request{request}, request.Cluster.KubernetesVersion)[0]
}

// Controller, admission and upgrade check agree about random catalogues, installations with a history, and clusters:
// which version is installed, which is chosen, and which refusal with which message. The upgrade check is asked about
// the cluster's present version. It fails if one of them takes another version for the installed one, or has a refusal
// that the others lack.
func TestControllerAdmissionAndUpgradeCheckAgree(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	d := dice{rand.New(rand.NewPCG(seed, 0))}
	seen := map[string]int{}
	for i := range 4000 {
		a := asked{object: d.merged(), preReleases: d.odds(2), f: factsFor(d.installation(), &memory{})}
		a.f.cluster.KubernetesVersion = d.one("v1.35.9", "1.36.3", "1.36.0-rc.1", "1.37.1-gke.100", "")
		d.history(a.f)
		why := fmt.Sprintf("seed %d, number %d: add-on %q, wanted %q, installed %q, Kubernetes %q", seed, i, addonOf(a.f.installation),
			a.f.installation.Spec.AddonRef.Version, installedVersion(a.f), a.f.cluster.KubernetesVersion)
		if got := resolution.InstalledInStatus(a.f.installation); got != installedVersion(a.f) {
			t.Fatalf("%s: the status says that %q is installed", why, got)
		}
		finding := a.upgrade(t) // before the reconciliation, which writes into the status
		denied, warned := a.admission(t, `{"n":1}`)
		reported, _ := a.admission(t, `{"n":"one"}`)
		version, refusal := a.controller(t)
		switch {
		case refusal != "":
			seen["refused"]++
			// Admission refuses invalid ranges and lower versions at once.
			isDenied := strings.Contains(denied, "spec.addonRef.version: range") || strings.Contains(denied, "spec.addonRef.version: "+refusal)
			if !isDenied && !slices.Contains(strings.Split(warned, "\n"), refusal) {
				t.Fatalf("%s: the controller refuses, %q; admission warns %q", why, refusal, warned)
			}
			if kept := finding.Version; finding.Outcome == resolution.OutcomeMoves ||
				kept != nil && catalogue.Key(kept.Version) != catalogue.Key(installedVersion(a.f)) {
				t.Fatalf("%s: the controller refuses, %q; the upgrade check says %+v", why, refusal, finding)
			}
		default:
			seen["chosen"]++
			if deprecated := a.f.choice.Version.Deprecated != ""; (warned != "") != deprecated || strings.Contains(warned, "\n") {
				t.Fatalf("%s: the controller chooses %q; admission warns %q", why, version, warned)
			}
			if !strings.Contains(reported, fmt.Sprintf("for version %q of", version)) {
				t.Fatalf("%s: the controller chooses %q; admission says %q", why, version, reported)
			}
			if finding.Version == nil || finding.Version.Version != version {
				t.Fatalf("%s: the controller chooses %q; the upgrade check says %+v", why, version, finding)
			}
		}
		seen[string(finding.Outcome)]++
	}
	t.Logf("seed %d: %v", seed, seen)
	for _, answer := range []string{"refused", "chosen", "Keeps", "Moves", "Breaks", "Unknown"} {
		if seen[answer] < 40 {
			t.Errorf("%s: %d times of 4000", answer, seen[answer])
		}
	}
}
