package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
)

// listedKinds may all be read, the last of them only for templates.
func listedKinds() cluster.Kinds {
	kinds := bothKinds
	kinds.ControlPlanes = append([]schema.GroupResource{{Group: clusterapi.InfrastructureGroup, Resource: "fleetclusters"}}, kinds.ControlPlanes...)
	return kinds
}

// asking counts a manager's requests, by a part of the URL, and refuses to list the kinds in refused.
type asking struct {
	mutex   sync.Mutex
	urls    []string
	refused string
}

func (a *asking) wrap(m *management) {
	m.config = rest.CopyConfig(m.config)
	m.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			a.mutex.Lock()
			a.urls = append(a.urls, request.URL.String())
			a.mutex.Unlock()
			if a.refused != "" && strings.Contains(request.URL.Path, a.refused) {
				body := io.NopCloser(bytes.NewReader([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)))
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: http.StatusForbidden, Header: header, Body: body, Request: request}, nil
			}
			return next.RoundTrip(request)
		})
	})
}

func (a *asking) count(part string) (count int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, one := range a.urls {
		if strings.Contains(one, part) {
			count++
		}
	}
	return count
}

// infra creates the infrastructure of a Cluster with its name, and makes the Cluster refer to it.
func (m *management) infra(of *unstructured.Unstructured) *unstructured.Unstructured {
	m.t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"region": "here"}}}
	made.SetGroupVersionKind(clusterapi.InfraClusterKind)
	made.SetNamespace(of.GetNamespace())
	made.SetName(of.GetName())
	m.write(made, nil)
	m.write(of, set("spec.infrastructureRef", map[string]any{
		"apiGroup": clusterapi.InfrastructureGroup, "kind": "FleetCluster", "name": of.GetName(),
	}))
	return made
}

// reading is a reader that counts its notifications.
type reading struct {
	finder   *cluster.Finders
	of       target.Ref
	reported atomic.Int64
}

func (r *reading) seen(ctx context.Context, names templatedata.CAPINames) (target.Description, map[string]any, error) {
	found, err := r.finder.Find(ctx, r.of)
	if err != nil {
		return found, nil, err
	}
	name := types.NamespacedName{Namespace: r.of.Namespace, Name: r.of.Name + ".web"}
	return r.finder.Seen(ctx, found, names, cluster.Reader{Name: name, Changed: func() { r.reported.Add(1) }})
}

// expectReported waits until the reader was notified that often.
func (r *reading) expectReported(t *testing.T, want int64) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		if got := r.reported.Load(); got != want {
			return fmt.Errorf("told %d times, want %d", got, want)
		}
		return nil
	})
}

var (
	onlyCluster = templatedata.CAPINames{CAPI: true}
	infraToo    = templatedata.CAPINames{CAPI: true, InfraCluster: true}
)

// TestObjectsAreWatchedOnceATemplateNamesThem fails when a kind is watched although no template names an object of
// it, when an object differs from the served one, when its change is not notified, is notified more than once, or is
// in a status that changes continuously; or when the data under KKP's names is of another moment.
func TestObjectsAreWatchedOnceATemplateNamesThem(t *testing.T) {
	m := newest(t)
	made := m.create("team-seen", "one", set("spec.topology", map[string]any{
		"classRef": map[string]any{"name": "c"}, "version": "v1.36.3", "variables": []any{map[string]any{"name": "owner", "value": "net"}},
	}))
	infra, behind := m.infra(made), m.infra(m.create("team-seen", "behind", nil))
	m.plane("team-seen", "one", map[string]any{"status": map[string]any{"version": "v1.36.3"}})
	asked := &asking{}
	asked.wrap(m)
	reader := &reading{finder: m.finder(listedKinds()), of: target.Ref{Namespace: "team-seen", Name: "one"}}
	expect.Eventually(t, expect.Patience, func() error {
		found, err := reader.finder.Find(t.Context(), reader.of)
		if err == nil && found.KubernetesVersion != "1.36.3" {
			err = errors.New(found.NoVersion)
		}
		return err
	})
	if _, seen, err := reader.seen(t.Context(), templatedata.CAPINames{}); seen != nil || err != nil {
		t.Errorf("what no template names is given: %v, %v", seen, err)
	}
	lists := asked.count("/v1beta2/clusters")
	if asked.count("/fleetclusters") > 0 {
		t.Error("infrastructure is asked for before a template names it")
	}
	of, seen, err := reader.seen(t.Context(), onlyCluster)
	if err != nil || asked.count("/v1beta2/clusters") == lists || asked.count("/fleetclusters") > 0 {
		t.Fatalf("of the Cluster: %v; asked for it %d times before, %d after", err, lists, asked.count("/v1beta2/clusters"))
	}
	words, _ := of.Object.(*capiv1.Cluster)
	if seen["ControlPlane"] != nil || seen["Variables"].(map[string]any)["owner"] != "net" || words == nil || words.Spec.InfrastructureRef.Name != "one" {
		t.Errorf("got %v, %v", seen, words)
	}
	_, seen, err = reader.seen(t.Context(), infraToo)
	region, _, _ := unstructured.NestedString(seen, "InfraCluster", "spec", "region")
	if err != nil || region != "here" || asked.count("/fleetclusters") == 0 {
		t.Fatalf("of the infrastructure: %v, %v", seen, err)
	}

	reader.expectReported(t, 2) // once per kind, when its objects arrived
	if _, _, err = reader.seen(t.Context(), infraToo); err != nil {
		t.Fatal(err)
	}
	other := &reading{finder: reader.finder, of: target.Ref{Namespace: "team-seen", Name: "behind"}}
	if _, _, err = other.seen(t.Context(), infraToo); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		m.write(infra, set("status", map[string]any{"replicas": int64(i), "conditions": []any{fmt.Sprint(i)}}))
	}
	m.write(behind, set("spec.region", "there")) // all earlier events have arrived by then
	expect.Eventually(t, expect.Patience, func() error {
		if other.reported.Load() == 0 {
			return errors.New("not told")
		}
		return nil
	})
	reader.expectReported(t, 2)
	m.write(infra, set("spec.region", "there"))
	reader.expectReported(t, 3)
	before, err := reader.finder.Find(t.Context(), reader.of)
	expect.NoError(t, err)
	m.write(infra, set("spec.region", "nowhere")) // no reader has read it since the notification
	m.write(made, set("metadata.labels", map[string]any{"ring": "1"}))
	reader.expectReported(t, 4)
	expect.Eventually(t, expect.Patience, func() error {
		of, seen, err = reader.seen(t.Context(), infraToo)
		if region, _, _ = unstructured.NestedString(seen, "InfraCluster", "spec", "region"); err == nil && (region != "nowhere" || of.Labels["ring"] != "1") {
			err = fmt.Errorf("region %q, labels %v", region, of.Labels)
		}
		return err
	})
	if of, _, err = reader.finder.Seen(t.Context(), before, onlyCluster, cluster.Reader{Changed: func() {}}); err != nil || of.Labels["ring"] != "1" ||
		of.Object.(*capiv1.Cluster).Labels["ring"] != "1" {
		t.Errorf("KKP's words are of another moment: %v, %v", of, err)
	}
	expect.Delete(t, m, infra)
	expect.Eventually(t, expect.Patience, func() error {
		_, _, err = reader.seen(t.Context(), infraToo)
		if _, isUnseen := errors.AsType[*cluster.UnseenError](err); !isUnseen || !strings.Contains(err.Error(), `"one", which does not exist`) {
			return fmt.Errorf("once it is gone: %w", err)
		}
		return nil
	})
}

// TestReferencesLeadToNoOtherNamespace fails when a reference of v1beta1 leads out of the Cluster's namespace.
func TestReferencesLeadToNoOtherNamespace(t *testing.T) {
	m := newManagement(t, "other", clusterapi.InstallOlderCRDs, clusterapi.OlderClusterKind)
	for name, namespace := range map[string]string{"thief": "team-elsewhere", "honest": "team-references"} {
		m.create("team-references", name, set("spec.infrastructureRef", map[string]any{
			"apiVersion": clusterapi.InfraClusterKind.GroupVersion().String(), "kind": "FleetCluster", "name": name, "namespace": namespace,
		}))
		made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"region": name}}}
		made.SetGroupVersionKind(clusterapi.InfraClusterKind)
		made.SetNamespace("team-references")
		made.SetName(name)
		m.write(made, nil)
	}
	finder := m.finder(listedKinds())
	for name, says := range map[string]string{"thief": "spec.infrastructureRef of the Cluster refers to another namespace", "honest": ""} {
		reader := &reading{finder: finder, of: target.Ref{Namespace: "team-references", Name: name}}
		expect.Eventually(t, expect.Patience, func() error {
			_, seen, err := reader.seen(t.Context(), infraToo)
			if says == "" && err == nil && seen["InfraCluster"] != nil || says != "" && err != nil && strings.Contains(err.Error(), says) {
				return nil
			}
			return fmt.Errorf("%s: %v, %w", name, seen, err)
		})
	}
}

// TestObjectsThatMayNotBeListed fails when a reconciliation waits for objects that may not be listed for longer than
// the first ones, or when the error does not say how to correct it.
func TestObjectsThatMayNotBeListed(t *testing.T) {
	m := newest(t)
	m.infra(m.create("team-refused", "one", nil))
	(&asking{refused: "/fleetclusters"}).wrap(m)
	reader := &reading{finder: m.finder(listedKinds()), of: target.Ref{Namespace: "team-refused", Name: "one"}}
	for _, most := range []time.Duration{10 * time.Second, time.Second} {
		began := time.Now()
		_, _, err := reader.seen(t.Context(), infraToo)
		if _, isUnseen := errors.AsType[*cluster.UnseenError](err); !isUnseen || !strings.Contains(err.Error(), "may list them") || time.Since(began) > most {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	}
}
