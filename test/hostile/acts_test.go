package hostile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	contract "github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/hostile"
)

// TestActsWriteWhatTheyDescribe lets each act begin and take some steps on an API server that has the kinds and no
// webhook. The test fails where an act writes nothing, or only objects that the kinds refuse: the siege would pass
// without an attack. Of the catalogues of acts, admission and the distributor refuse only the listed ones.
func TestActsWriteWhatTheyDescribe(t *testing.T) {
	user := fleet.Shared().Cluster("user")
	if err := fleet.InstallCRDs(t.Context(), user.Config, fleet.CRDs(t)[0]); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(user.Config, client.Options{Scheme: wiring.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	by := &hostile.Attackers{
		Author: c, Tenant: c, Catalogues: "acts", Home: "acts", Sources: fleet.SourcesForTest(t), CASecret: "ca",
	}
	expect.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: by.Home}})
	const steps = 4
	for _, test := range []struct {
		act string
		// taken is the number of accepted writes, installations that of installations afterwards.
		taken, installations int
		catalogues, refused  []string
	}{
		{"doubling-rules", 9 + 3*steps, 8 + steps, []string{"doubling-rules", "slow-rules"}, []string{"doubling-rules"}},
		{"dear-rules", 2 * steps, 0, []string{"dear-rules-0", "dear-rules-1", "dear-rules-2", "dear-rules-3"}, nil},
		{"long-versions", steps, 0, []string{"long-versions-0", "long-versions-1", "long-versions-2", "long-versions-3"}, nil},
		{"random-records", 13 + steps, 12, []string{"noise"}, nil},
		{"large-values", 32 + steps, 32 + steps, nil, nil},
		{"large-metadata", 2 * steps, steps, nil, nil},
		{"many-indexes", steps, 0, []string{"many-indexes-0", "many-indexes-1"}, nil},
		{"moving-repository", 2 + steps, 0, []string{"moving-repository"}, nil},
		{"made-up-clusters", 10 * steps, 10 * steps, nil, nil},
	} {
		t.Run(test.act, func(t *testing.T) {
			act, found := hostile.ActNamed(test.act)
			if !found {
				t.Fatal("there is no such act")
			}
			act.Begin(t.Context(), by)
			for number := range steps {
				act.Step(t.Context(), by, number)
			}
			if reported := by.Answers(); reported.Refused > 0 || reported.Failed > 0 || reported.Taken != test.taken {
				t.Errorf("%d writes are taken, want %d; %d are refused (%v), %d failed (%v)",
					reported.Taken, test.taken, reported.Refused, reported.Refusal, reported.Failed, reported.Failure)
			}
			var catalogues v1.AddonCatalogueList
			var installations v1.AddonInstallationList
			label := client.MatchingLabels{hostile.LabelAct: test.act}
			for _, list := range []client.ObjectList{&catalogues, &installations} {
				expect.List(t, c, list, client.InNamespace(by.Home), label)
			}
			var names, refused []string
			for i := range catalogues.Items {
				one := &catalogues.Items[i]
				names = append(names, one.Name)
				if _, err := catalogue.Read(one, health.Check(t.Context())); err != nil {
					refused = append(refused, one.Name)
				}
			}
			if diff := cmp.Diff(test.catalogues, names) + cmp.Diff(test.refused, refused); diff != "" {
				t.Errorf("catalogues, and those that are refused (-want +got):\n%s", diff)
			}
			if len(installations.Items) != test.installations {
				t.Errorf("there are %d installations, want %d", len(installations.Items), test.installations)
			}
		})
	}
	if acts := hostile.Acts(); len(acts) != 9 {
		t.Errorf("there are %d acts, and this test tries 9", len(acts))
	}
}

// TestAuthorsHurt: objects of authors cost as much as possible: rules that double are refused, expensive ones have
// the maximum that a catalogue may have, names and values are near the limits of their kinds, and random data can't
// be compressed.
func TestAuthorsHurt(t *testing.T) {
	version := func(expressions ...string) *v1.AddonVersion {
		check := &v1.HealthCheck{}
		for _, one := range expressions {
			check.Rules = append(check.Rules, v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: one})
		}
		return &v1.AddonVersion{Template: &v1.Template{Health: check}}
	}
	for why, expression := range hostile.DoublingRules() {
		if _, err := health.CheckVersion(version(expression)); err == nil || len(expression) > 1024 {
			t.Errorf("a rule of %d bytes that doubles %s is taken", len(expression), why)
		}
	}
	taken, check := map[string]bool{}, health.Check(t.Context())
	for number := range 128 {
		expression := hostile.DearRule(number)
		if _, err := check(version(expression)); err != nil {
			t.Errorf("dear rule %d is refused: %v", number, err)
		}
		taken[expression] = true
	}
	if size := len(strings.Join(slices.Collect(maps.Keys(taken)), "")); len(taken) != 128 || size < 120<<10 {
		t.Errorf("%d dear rules differ, and have %d bytes", len(taken), size)
	}
	if _, err := check(version(hostile.SlowRule(1))); err != nil {
		t.Errorf("a rule that no look comes to the end of is refused: %v", err)
	}
	names, _ := json.Marshal(hostile.LongNames("a", 1, nil)) // of strings
	if size := len(names); size < 500<<10 || size > 1<<20 {
		t.Errorf("long names have %d bytes", size)
	}
	noise, turn := fstest.MapFS{"all.yaml": &fstest.MapFile{Data: []byte(hostile.Noise(4))}}, 0
	render := func() (size int) {
		var packed bytes.Buffer
		packing := gzip.NewWriter(&packed)
		turn++
		made, err := gotemplate.New().Render(t.Context(), contract.Input{Addon: "noise", Content: noise, Values: map[string]any{"turn": turn}})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range made.Objects {
			if reported, _, _ := unstructured.NestedString(object.Object, "data", "turn"); reported != fmt.Sprint(turn) {
				t.Errorf("noise has turn %q in turn %d", reported, turn)
			}
			_ = json.NewEncoder(packing).Encode(object) // of strings
		}
		_ = packing.Close()
		return packed.Len()
	}
	for range 2 {
		if size := render(); size < 2<<20 {
			t.Errorf("noise is packed to %d bytes", size)
		}
	}
	values := hostile.LargeValues(1)
	if size := len(values); size < 240<<10 || size > 256<<10 || !json.Valid(values) {
		t.Errorf("large values have %d bytes", size)
	}
}
