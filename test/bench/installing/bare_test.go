package installing

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// stubGroup is the group of a copy of AddonInstallation, that no manager watches.
const stubGroup = "bench.example.com"

// Resources that the bare client writes.
var (
	stubs   = schema.GroupVersionResource{Group: stubGroup, Version: "v1", Resource: "addoninstallations"}
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	events  = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

	appliedKinds = []schema.GroupVersionResource{
		{Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "services"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, {Group: "apps", Version: "v1", Resource: "deployments"},
	}
)

// bare makes the writes of the product and nothing else: no reads, no waits, nothing decided. It writes what it saw the
// product write for one installation, under other names.
type bare struct {
	client dynamic.Interface
	// sample is the name of the installation whose writes it repeats.
	sample string
	// status, secret and event as they were written for the sample.
	status, secret, event string
	// statuses and finalizers are how often the product writes the installation's status and metadata.
	statuses, finalizers int
}

// newBare takes the writes of an installation that is there as its sample; made are the calls of so many installations.
func (w *world) newBare(b *testing.B, sample string, made calls, count int) *bare {
	b.Helper()
	w.copyKind(b)
	config := rest.CopyConfig(w.both.Config)
	oneConnection, err := rest.HTTPClientFor(config)
	expect.NoError(b, err)
	dynamics, err := dynamic.NewForConfigAndClient(config, oneConnection)
	expect.NoError(b, err)
	p := &bare{
		client: dynamics, sample: sample, statuses: made.each("PATCH addoninstallations/status", count),
		finalizers: made.each("PATCH addoninstallations", count),
	}
	p.status = encoded(b, w.read(b, &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: sample},
	}).Status)
	var found corev1.SecretList
	expect.List(b, w.seed, &found, client.InNamespace(clusterNamespace), client.MatchingFields{
		"type": "addons.kubermatic.k8c.io/release.v1",
	})
	record := found.Items[0] // all are as large
	p.secret = encoded(b, &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Type: record.Type, Data: record.Data,
		ObjectMeta: metav1.ObjectMeta{Name: "record-" + sample, Labels: record.Labels, OwnerReferences: record.OwnerReferences},
	})
	p.event = encoded(b, w.event(b, sample))
	return p
}

func (w *world) read(b *testing.B, object *kubermaticv1.AddonInstallation) *kubermaticv1.AddonInstallation {
	b.Helper()
	expect.Read(b, w.seed, object)
	return object
}

// event is the one about the sample's objects; events come a moment after what they tell.
func (w *world) event(b *testing.B, sample string) *eventsv1.Event {
	b.Helper()
	var reported *eventsv1.Event
	expect.Eventually(b, patience, func() error {
		var list eventsv1.EventList
		if err := w.seed.List(b.Context(), &list, client.InNamespace(clusterNamespace)); err != nil {
			return err
		}
		for _, item := range list.Items {
			if item.Regarding.Name == sample && item.Reason == kubermaticv1.EventApplied {
				reported = &item
				return nil
			}
		}
		return fmt.Errorf("no event tells of %s", sample)
	})
	reported.TypeMeta = metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"}
	reported.ObjectMeta = metav1.ObjectMeta{Name: "event-" + sample}
	return reported
}

// copyKind makes a kind that is as AddonInstallation, in another group.
func (w *world) copyKind(b *testing.B) {
	b.Helper()
	clients, err := apiextensions.NewForConfig(w.both.Config)
	expect.NoError(b, err)
	definitions := clients.ApiextensionsV1().CustomResourceDefinitions()
	original, err := definitions.Get(b.Context(), "addoninstallations.kubermatic.k8c.io", metav1.GetOptions{})
	expect.NoError(b, err)
	made := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "addoninstallations." + stubGroup}, Spec: original.Spec,
	}
	made.Spec.Group, made.Spec.Names.ShortNames = stubGroup, nil
	if _, err := definitions.Create(b.Context(), made, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	expect.Eventually(b, patience, func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(stubGroup + "/v1")
		list.SetKind("AddonInstallationList")
		return w.seed.List(b.Context(), list)
	})
}

func encoded(b *testing.B, object any) string {
	b.Helper()
	raw, err := json.Marshal(object)
	expect.NoError(b, err)
	return string(raw)
}

// bareRound measures the bare client.
func (w *world) bareRound(b *testing.B, p *bare, names []string) outcome {
	b.Helper()
	return w.measure(b, len(names), func() time.Time {
		group, ctx := errgroup.WithContext(b.Context())
		group.SetLimit(concurrency)
		for _, name := range names {
			group.Go(func() error { return p.install(ctx, name) })
		}
		expect.NoError(b, group.Wait())
		return time.Now()
	})
}

// install makes all writes of one installation, in the product's order.
func (p *bare) install(ctx context.Context, name string) error {
	requested, err := runtime.DefaultUnstructuredConverter.ToUnstructured(installation("four", name))
	if err != nil {
		return err
	}
	request := &unstructured.Unstructured{Object: requested}
	request.SetAPIVersion(stubGroup + "/v1")
	request.SetKind("AddonInstallation")
	own := p.client.Resource(stubs).Namespace(clusterNamespace)
	if _, err := own.Create(ctx, request, metav1.CreateOptions{}); err != nil {
		return err
	}
	for range p.finalizers {
		patch := []byte(`{"metadata":{"finalizers":["kubermatic.k8c.io/bench"]}}`)
		if _, err := own.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if err := p.writeStatuses(ctx, own, name, 1, p.statuses); err != nil {
		return err
	}
	record, err := p.object(p.secret, name)
	if err != nil {
		return err
	}
	records := p.client.Resource(secrets).Namespace(clusterNamespace)
	made, err := records.Create(ctx, record, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := p.apply(ctx, name); err != nil {
		return err
	}
	record.SetResourceVersion(made.GetResourceVersion())
	record.SetLabels(map[string]string{"state": "Applied"})
	if _, err := records.Update(ctx, record, metav1.UpdateOptions{}); err != nil {
		return err
	}
	reported, err := p.object(p.event, name)
	if err != nil {
		return err
	}
	if _, err := p.client.Resource(events).Namespace(clusterNamespace).Create(ctx, reported, metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.writeStatuses(ctx, own, name, 0, 1)
}

// writeStatuses writes the status so often; each time something in it differs, or the server would write nothing.
func (p *bare) writeStatuses(ctx context.Context, own dynamic.ResourceInterface, name string, from, to int) error {
	for i := from; i < to; i++ {
		status := strings.Replace(strings.ReplaceAll(p.status, p.sample, name), "1.0.0", fmt.Sprintf("1.0.%d", i), 1)
		if _, err := own.Patch(ctx, name, types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

func (p *bare) object(text, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON([]byte(strings.ReplaceAll(text, p.sample, name)))
}

// apply applies the four objects.
func (p *bare) apply(ctx context.Context, name string) error {
	for i, text := range strings.Split(strings.ReplaceAll(addonTemplate, "{{ .Variables.name }}", name), "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return err
		}
		object.SetNamespace(targetNamespace)
		labels := object.GetLabels()
		labels["bench.example.com/installation"] = "0123456789abcdef"
		object.SetLabels(labels)
		_, err := p.client.Resource(appliedKinds[i]).Namespace(targetNamespace).Apply(ctx, name, object, metav1.ApplyOptions{
			FieldManager: "bench-installation/" + name,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
