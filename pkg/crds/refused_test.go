package crds

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const (
	refusingPolicy = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: things}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [UPDATE], resources: [things]}]},
		validations: [{expression: "object.metadata.name != 'thing-1'", message: not any more}]}}`
	refusingBinding = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: things}, spec: {
		policyName: things, validationActions: [Deny]}}`
	deadWebhook = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: things}, webhooks: [{
		name: dead.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1"},
		matchConditions: [{name: one, expression: "object.metadata.name == 'thing-2'"}],
		rules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [UPDATE], resources: [things]}]}]}`
)

// TestWhatIsRefusedHoldsUpNothingElse: of four objects a policy newer than it refuses one, and a webhook that is down another. Red when
// that ends the run before the CRD is applied, when another object stays in the first version, when they are not named, when the CRD says
// that none is stored in the first version, or when that stays so once nothing refuses them.
func TestWhatIsRefusedHoldsUpNothingElse(t *testing.T) {
	log.SetLogger(logr.Discard())
	f := fleet.ForTest(t, fleet.ClusterOptions{Name: "crds"}) // its etcd is read
	c, err := client.NewWithWatch(f.Cluster("crds").Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const second = "{name: v1, served: true, storage: false, FORM}, {name: v2, served: true, storage: true, FORM}"
	update(t, c, thingsCRD(t, "{name: v1, served: true, storage: true, FORM}"), "is new")
	for number := range 4 {
		createThing(t, c, thing(number+1))
	}
	update(t, c, thingsCRD(t, second), "is up to date now")
	expect.Eventually(t, expect.Patience, func() error { // the API server hears of it by a watch of its own
		if err := touch(t.Context(), c, thing(4), newer); err != nil || storedIn(t, f, "v2") > 0 {
			return err
		}
		return errors.New("the API server still stores v1")
	})
	var refusing []client.Object
	for _, manifest := range []string{refusingPolicy, refusingBinding, deadWebhook} {
		object := &unstructured.Unstructured{}
		if err := errors.Join(yaml.Unmarshal([]byte(manifest), &object.Object), c.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
		refusing = append(refusing, object)
	}
	expectRefused(t, c, true)

	third := strings.Replace(second, "v1, served: true", "v1, served: false", 1)
	told, err := Update(t.Context(), c, thingsCRD(t, third))
	if err != nil || !strings.HasPrefix(told, "is up to date now, and may store 2 of 4 objects in an older version") {
		t.Fatalf("the CRD %s: %v", told, err)
	}
	expectNamed(t, told)
	expectStored(t, c, "v1", "v2")
	if left := storedIn(t, f, "v1"); left != 2 {
		t.Errorf("%d objects are stored in v1, want the two that are refused", left)
	}
	without := thingsCRD(t, "{name: v2, served: true, storage: true, FORM}")
	if told, err = Update(t.Context(), c, without); err == nil {
		t.Fatalf("a CRD that drops what is stored %s", told)
	}
	expectNamed(t, err.Error())

	for _, object := range refusing {
		expect.Delete(t, c, object)
	}
	expectRefused(t, c, false)
	update(t, c, without, "is up to date now, and stores 4 objects in one version")
	expectStored(t, c, "v2")
}

func thing(number int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("thing-%d", number)}}
}

// expectRefused waits until the API server refuses the first two things, or does not any more.
func expectRefused(t *testing.T, c client.Client, want bool) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		for number := 1; number <= 2; number++ {
			if err := touch(t.Context(), client.NewDryRunClient(c), thing(number), newer); isRefusal(err) != want {
				return fmt.Errorf("thing-%d is answered with %w", number, err)
			}
		}
		return nil
	})
}

func expectNamed(t *testing.T, told string) {
	t.Helper()
	for _, part := range []string{`writing Thing "default/thing-1"`, "not any more", `writing Thing "default/thing-2"`, "dead.example.com"} {
		if !strings.Contains(told, part) {
			t.Errorf("%q is not told: %s", part, told)
		}
	}
}

// Red when one object that is refused ends a run, and when what ails the API server, or the caller, is taken for a refusal.
func TestRefusalIsOfOneObject(t *testing.T) {
	resource := schema.GroupResource{Group: "example.com", Resource: "things"}
	for _, test := range []struct {
		why  string
		err  error
		want bool
	}{
		{"a schema", apierrors.NewInvalid(newer.GroupKind(), "thing", nil), true},
		{"a policy", apierrors.NewForbidden(resource, "thing", errors.New("no")), true},
		{"its size", apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large"), true},
		{"a webhook that is down", apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		{"another writer", apierrors.NewConflict(resource, "thing", errors.New("changed")), true},
		{"wrapped", fmt.Errorf("writing: %w", apierrors.NewBadRequest("no")), true},
		{"a token", apierrors.NewUnauthorized("who"), false},
		{"too many", apierrors.NewTooManyRequests("later", 1), false},
		{"an API server that goes", apierrors.NewServiceUnavailable("down"), false},
		{"an API server that is slow", apierrors.NewTimeoutError("slow", 1), false},
		{"a connection", errors.New("connection refused"), false},
		{"nothing", nil, false},
	} {
		if got := isRefusal(test.err); got != test.want {
			t.Errorf("%s is a refusal: %t", test.why, got)
		}
	}
}
