package crash_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/release"
	"github.com/trellis-addons/trellis/test/expect"
)

// kinds that are looked for in the user cluster, beside those of the API server itself. Those with a namespace are listed in
// the subject's, the others by its name.
var (
	clusterKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	}
	namespacedKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
	}
)

// state is everything that has to be equal after a kill, in words: what the user cluster has, with contents, generations and
// our field managers, and what the seed says of it. It leaves out identities and times.
func (s *subject) state(t testing.TB) map[string]string {
	t.Helper()
	state := map[string]string{}
	uids := map[apply.Key]types.UID{}
	own := []schema.GroupVersionKind{{Group: s.name + ".crash.example", Version: "v1", Kind: "Probe"}}
	for _, kind := range slices.Concat(clusterKinds, namespacedKinds, own) {
		for _, object := range s.objects(t, kind) {
			uids[apply.Key{
				Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
			}] = object.GetUID()
			state[s.anonymous(kind.Kind+" "+object.GetNamespace()+"/"+object.GetName())] = s.anonymous(essence(t, object))
		}
	}
	s.addInstallation(t, state)
	s.addRecords(t, state, uids)
	return state
}

// objects of a kind that are the subject's, by name or by namespace; those that every namespace has are left out.
func (s *subject) objects(t testing.TB, kind schema.GroupVersionKind) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	options := []client.ListOption{client.InNamespace(s.name)}
	if slices.Contains(clusterKinds, kind) {
		options = nil
	}
	err := s.user.List(t.Context(), list, options...)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool {
		every := object.GetName() == "kube-root-ca.crt" || kind.Kind == "ServiceAccount" && object.GetName() == "default"
		return every || !strings.Contains(object.GetNamespace()+object.GetName(), s.name)
	})
}

// essence of an object: its content, how often its specification was changed, and what our managers own of it.
func essence(t testing.TB, object unstructured.Unstructured) string {
	t.Helper()
	content := maps.Clone(object.Object)
	ours := map[string]string{}
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "addon-installation/") {
			ours[entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource] = entry.FieldsV1.GetRawString()
		}
	}
	metadata := maps.Clone(content["metadata"].(map[string]any))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"} {
		delete(metadata, field)
	}
	if attempt := object.GetAnnotations()[kubermaticv1.AnnotationHookRun]; attempt != "" { // its last word is a time
		object.SetAnnotations(map[string]string{"hook-run": attempt[:strings.LastIndex(attempt, ".")]})
		metadata["annotations"] = object.GetAnnotations()
	}
	content["metadata"], content["our fields"] = metadata, ours
	delete(content, "status")
	if object.GetKind() == "Secret" && strings.HasPrefix(object.GetName(), "sh.helm.release.") {
		readableRelease(t, content, metadata)
	}
	if object.GetKind() == "Job" { // its selector and labels carry its UID
		content["spec"] = nil
		delete(metadata, "labels")
	}
	return encode(t, content)
}

// readableRelease unpacks what Helm stores, and takes the times out.
func readableRelease(t testing.TB, content, metadata map[string]any) {
	t.Helper()
	labels := maps.Clone(metadata["labels"].(map[string]any))
	delete(labels, "createdAt")
	delete(labels, "modifiedAt")
	metadata["labels"] = labels
	text, _, _ := unstructured.NestedString(content, "data", "release")
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	release := map[string]any{}
	if err := json.NewDecoder(unpacked).Decode(&release); err != nil {
		t.Fatal(err)
	}
	if info, isMap := release["info"].(map[string]any); isMap {
		delete(info, "first_deployed")
		delete(info, "last_deployed")
	}
	if hooks, isList := release["hooks"].([]any); isList {
		for _, hook := range hooks {
			if run, isMap := hook.(map[string]any)["last_run"].(map[string]any); isMap {
				delete(run, "started_at")
				delete(run, "completed_at")
			}
		}
	}
	content["data"] = release
}

// addInstallation adds finalizers and status. The hashes in lastApplied cover the subject's name.
func (s *subject) addInstallation(t testing.TB, state map[string]string) {
	t.Helper()
	installation := s.installation()
	err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(installation), installation)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return
	}
	// A controller that starts looks for drift at once; one that installs, an interval later.
	installation.Status.Conditions = slices.DeleteFunc(installation.Status.Conditions, func(condition metav1.Condition) bool {
		return condition.Type == kubermaticv1.ConditionDrifted && condition.Reason == kubermaticv1.ReasonNoDrift
	})
	for i := range installation.Status.Conditions {
		installation.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	if applied := installation.Status.LastApplied; applied != nil {
		applied.Time, applied.Inputs, applied.Objects = nil, "", ""
	}
	state["the installation"] = s.anonymous(encode(t, map[string]any{
		"finalizers": installation.Finalizers, "generation": installation.Generation, "status": installation.Status,
	}))
}

// addRecords adds every record, and what the newest says; of UIDs it is said whether they are those of the living objects.
func (s *subject) addRecords(t testing.TB, state map[string]string, uids map[apply.Key]types.UID) {
	t.Helper()
	secrets := &corev1.SecretList{}
	labels := client.MatchingLabels{kubermaticv1.LabelInstallation: s.owner().ID()}
	if err := s.seed.List(t.Context(), secrets, client.InNamespace(s.namespace()), labels); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		state[s.anonymous("record "+secret.Name)] = s.anonymous(encode(t, secret.Labels))
	}
	record, err := release.NewRecords(s.seed, s.seed).Load(t.Context(), s.namespace(), s.owner())
	if err != nil {
		t.Fatal(err)
	}
	if record == nil {
		return
	}
	for _, entries := range []apply.Inventory{record.Inventory, record.Superseded} {
		for i := range entries {
			known := "not that of the object"
			if uids[entries[i].Key] == entries[i].UID {
				known = "that of the object"
			}
			entries[i].UID, entries[i].Content = types.UID(known), ""
		}
	}
	for i := range record.Hooks {
		if run := record.Hooks[i].Run; run != nil {
			run.Started, run.Ended, run.UID = metav1.Time{}, metav1.Time{}, "some"
		}
	}
	record.Inputs, record.ObjectsDigest, record.HooksDigest, record.Time = "", "", "", metav1.Time{}
	if record.Helm != nil {
		record.Helm.FirstDeployed, record.Helm.LastDeployed = metav1.Time{}, metav1.Time{}
	}
	state["the newest record"] = s.anonymous(encode(t, record))
}

func encode(t testing.TB, content any) string {
	t.Helper()
	encoded, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// unsettled says what a subject still lacks to have that version installed and healthy; for "", to be gone without a trace.
func (s *subject) unsettled(t testing.TB, version string) error {
	t.Helper()
	installation := s.installation()
	err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(installation), installation)
	if version == "" {
		if err == nil {
			return fmt.Errorf("%s is still there", s.name)
		}
		return client.IgnoreNotFound(err)
	}
	if err != nil {
		return err
	}
	if err := ready(installation); err != nil {
		return err
	}
	if installation.Status.Version != version {
		return fmt.Errorf("%s has version %q", s.name, installation.Status.Version)
	}
	return nil
}

func ready(installation *kubermaticv1.AddonInstallation) error {
	return expect.Condition(installation, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
}
