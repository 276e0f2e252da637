package crash_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
)

// kinds that are looked for in the user cluster, beside those of the API server itself. Those with a namespace are the subject's in
// whose namespace they are, the others by its name.
var (
	clusterKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	}
	namespacedKinds = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
		{Version: "v1", Kind: "Pod"},
	}
)

// observation is what the user cluster has at a moment, of all subjects.
type observation map[schema.GroupVersionKind][]unstructured.Unstructured

// look lists it. What every namespace has is left out.
func (p *platform) look(t testing.TB) observation {
	t.Helper()
	seen := observation{}
	for _, kind := range slices.Concat(clusterKinds, namespacedKinds) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		expect.List(t, p.user, list)
		seen[kind] = slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool {
			return object.GetName() == "kube-root-ca.crt" || kind.Kind == "ServiceAccount" && object.GetName() == "default"
		})
	}
	return seen
}

// of gives what is the subject's, by name or by namespace.
func (s observation) of(one *subject) (found []unstructured.Unstructured) {
	for kind, objects := range s {
		for _, object := range objects {
			if one.has(object.GetNamespace()) || slices.Contains(clusterKinds, kind) && strings.Contains(object.GetName(), one.name) {
				found = append(found, object)
			}
		}
	}
	return found
}

// uids are those of the subject's objects.
func (s observation) uids(one *subject) map[ownership.Key]types.UID {
	uids := map[ownership.Key]types.UID{}
	for _, object := range s.of(one) {
		uids[keyOfObject(object)] = object.GetUID()
	}
	return uids
}

func keyOfObject(object unstructured.Unstructured) ownership.Key {
	kind := object.GroupVersionKind()
	return ownership.Key{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// state is stateIn of this moment.
func (s *subject) state(t testing.TB) map[string]string {
	t.Helper()
	return s.stateIn(t, s.look(t))
}

// stateIn is everything that has to be equal after a kill, in words: what the user cluster has, with contents, generations, our
// field managers, and whether it stood there before, and what the seed says of it. It leaves out identities and times.
func (s *subject) stateIn(t testing.TB, seen observation) map[string]string {
	t.Helper()
	state := map[string]string{}
	uids, written := map[ownership.Key]types.UID{}, map[ownership.Key]int64{}
	for _, object := range slices.Concat(seen.of(s), s.probes(t)) {
		key := keyOfObject(object)
		uids[key] = object.GetUID()
		_, written[key] = fieldsets.Of(object.GetManagedFields(), s.owner().FieldManager())
		text := essence(t, s.withoutCredential(t, object))
		if s.before[key] == object.GetUID() {
			text += "\nas it stood before"
		}
		state[s.anonymous(key.Kind+" "+key.Namespace+"/"+key.Name)] = s.anonymous(text)
	}
	s.addCopies(t, state, uids)
	s.addAgents(t, state)
	s.addInstallation(t, state)
	s.addRecords(t, state, uids, written)
	return state
}

// probes are the objects of the kind that add-on probe defines, where it is served. The user cluster is asked without looking
// the kind up.
func (s *subject) probes(t testing.TB) []unstructured.Unstructured {
	t.Helper()
	resource := schema.GroupVersionResource{Group: s.name + ".crash.example", Version: "v1", Resource: "probes"}
	list, err := s.userDynamic.Resource(resource).Namespace(s.name).List(t.Context(), metav1.ListOptions{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return list.Items
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
	expect.NoError(t, err)
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed)))
	expect.NoError(t, err)
	release := map[string]any{}
	expect.NoError(t, json.NewDecoder(unpacked).Decode(&release))
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
	shown := s.stored(t).shown(installation.Status.Access)
	installation.Status.Access = nil
	state["the installation"] = s.anonymous(encode(t, map[string]any{
		"finalizers": installation.Finalizers, "generation": installation.Generation, "status": installation.Status, "credentials": shown,
	}))
}

// addRecords adds every record, and what the newest says; of UIDs and times of writing it is said whether they are those of the living
// objects.
func (s *subject) addRecords(t testing.TB, state map[string]string, uids map[ownership.Key]types.UID, written map[ownership.Key]int64) {
	t.Helper()
	secrets := &corev1.SecretList{}
	labels := client.MatchingLabels{kubermaticv1.LabelInstallation: s.owner().ID()}
	expect.List(t, s.seed, secrets, client.InNamespace(s.namespace()), labels)
	for _, secret := range secrets.Items {
		state[s.anonymous("record "+secret.Name)] = s.anonymous(encode(t, secret.Labels))
	}
	record, err := revision.NewRecords(s.seed, s.seed, revision.NewSeal([]byte("key"))).Load(t.Context(), s.namespace(), s.owner())
	expect.NoError(t, err)
	if record == nil {
		return
	}
	for _, entries := range []ownership.Inventory{record.Inventory, record.Superseded, record.ManagedSecrets} {
		for i := range entries {
			known := "not that of the object"
			if uids[entries[i].Key] == entries[i].UID {
				known = "that of the object"
			}
			entries[i].UID, entries[i].Content = types.UID(known), ""
			if at, lives := written[entries[i].Key]; !lives || at == entries[i].WrittenAt {
				entries[i].WrittenAt = 0
			}
		}
	}
	for i := range record.Hooks {
		if run := record.Hooks[i].Run; run != nil {
			run.Started, run.Ended, run.UID = metav1.Time{}, metav1.Time{}, "some"
		}
	}
	if record.Rollback != nil {
		record.Rollback.Inputs = ""
	}
	record.Inputs, record.Wanted, record.ObjectsDigest, record.HooksDigest, record.Time = "", "", "", "", metav1.Time{}
	if record.Helm != nil {
		record.Helm.FirstDeployed, record.Helm.LastDeployed = metav1.Time{}, metav1.Time{}
	}
	state["the newest record"] = s.anonymous(encode(t, record))
}

func encode(t testing.TB, content any) string {
	t.Helper()
	encoded, err := json.MarshalIndent(content, "", " ")
	expect.NoError(t, err)
	return string(encoded)
}

// unsettled says what a subject still lacks to have that version installed and healthy; for "", to be gone without a trace.
func (s *subject) unsettled(t testing.TB, version string) error {
	t.Helper()
	installation := s.installation()
	err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(installation), installation)
	if version == "" {
		if err == nil {
			return fmt.Errorf("%s is still there: %s", s.name, encode(t, installation.Status.Conditions))
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

// notBack says what a subject still lacks to have given a version up and be back at the one before, which is healthy.
func (s *subject) notBack(t testing.TB, version string) error {
	t.Helper()
	installation := s.installation()
	if err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil {
		return err
	}
	if installation.Status.Version != version {
		return fmt.Errorf("%s has version %q", s.name, installation.Status.Version)
	}
	return errors.Join(
		expect.Condition(installation, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonRolledBack),
		expect.Condition(installation, kubermaticv1.ConditionHealthy, "True", kubermaticv1.ReasonHealthy),
	)
}

func ready(installation *kubermaticv1.AddonInstallation) error {
	return expect.Condition(installation, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
}
