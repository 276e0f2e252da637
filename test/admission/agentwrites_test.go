package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const (
	// held is a finalizer.
	held = "example.com/hold"
	// writer is an agent's account; agentPlace is a namespace whose name begins as those of agents do.
	writer, agentPlace = "addon-agent-writer-hub", "addon-agent-place"
	certificateUser    = "system:addon:" + guest + ":c:web:0"
)

// widgetsDefinition is a kind of somebody's, with whatever fields.
func widgetsDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "widgets.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

func widget(namespace, name string) *unstructured.Unstructured {
	made := anyOf("widgets.example.com/v1", "Widget", name)
	made.SetNamespace(namespace)
	return made
}

func withFinalizers[T client.Object](object T, finalizers ...string) T {
	object.SetFinalizers(finalizers)
	return object
}

// applying applies an object, new or not.
func applying(version, kind, name string, content map[string]any) func(context.Context, client.Client) error {
	return func(ctx context.Context, agent client.Client) error {
		object := anyOf(version, kind, name)
		object.SetNamespace(guest)
		for key, value := range content {
			if key != "metadata" {
				object.Object[key] = value
				continue
			}
			maps.Copy(object.Object["metadata"].(map[string]any), value.(map[string]any))
		}
		return agent.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("agent"), client.ForceOwnership, client.DryRunAll)
	}
}

// putting reads an object, changes it, and writes all of it.
func putting[T client.Object](object T, change func(T)) func(context.Context, client.Client) error {
	return func(ctx context.Context, agent client.Client) error {
		found := object.DeepCopyObject().(T)
		if err := agent.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
			return err
		}
		change(found)
		return agent.Update(ctx, found, client.DryRunAll)
	}
}

// writers has accounts, agents' and not, that RBAC lets write all that the policy is about, and what they write.
func (w *world) writers(t *testing.T) {
	t.Helper()
	w.agents(t)
	expect.NoError(t, fleet.InstallDefinitions(t.Context(), w.config, widgetsDefinition()))
	w.put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentPlace}})
	all := []string{"get", "create", "update", "patch", "delete"}
	w.put(t, &rbacv1.Role{ObjectMeta: at(guest, "writes"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "events"}, Verbs: all},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: all},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all}, widgets(all...),
	}})
	bound := &rbacv1.RoleBinding{ObjectMeta: at(guest, "writes"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writes"}}
	for _, account := range writersOf() {
		w.put(t, &corev1.ServiceAccount{ObjectMeta: account})
		bound.Subjects = append(bound.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name})
	}
	bound.Subjects = slices.Concat(bound.Subjects, user(certificateUser), user("system:addons:a"), user(tenant))
	w.put(t, bound)
	outbox := holding(agentsSecret(guest, "addon-out-writer", corev1.SecretTypeOpaque), "before")
	outbox.Labels, outbox.Annotations = map[string]string{"a": "label"}, map[string]string{"a": "note"}
	leaving := []client.Object{
		withFinalizers(secretOf(guest, "addon-out-leaving", corev1.SecretTypeOpaque), held, "example.com/other"),
		withFinalizers(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-leaving")}, held, "example.com/other"),
	}
	for _, object := range append([]client.Object{
		outbox, secretOf(guest, "addon-out-bare", corev1.SecretTypeOpaque), widget(guest, "existing"),
		withFinalizers(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-held")}, held),
		&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-report")}, &coordinationv1.Lease{ObjectMeta: at(guest, "addon-writer-lease")},
		&corev1.Event{ObjectMeta: at(guest, "told"), InvolvedObject: corev1.ObjectReference{Namespace: guest, Name: "x", Kind: "Pod"}},
	}, leaving...) {
		w.put(t, object)
	}
	for _, object := range leaving {
		expect.Delete(t, w.admin, object)
	}
}

// writersOf are accounts: the first is an agent's, the others' names are like those of agents only.
func writersOf() []metav1.ObjectMeta {
	return []metav1.ObjectMeta{at(guest, writer), at(guest, "writer"), at(guest, "an-addon-agent-writer"), at(agentPlace, "writer")}
}

// finalizing are tries at finalizers, which no agent gives to what Kubernetes itself has.
func finalizing() []try {
	const says = "agents can't set finalizers"
	patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, held)
	more := fmt.Sprintf(`{"metadata":{"finalizers":[%q,"example.com/more"]}}`, held)
	marked := map[string]any{"metadata": map[string]any{"finalizers": []any{held}}}
	reported := corev1.ObjectReference{Namespace: guest, Name: "x", Kind: "Pod"}
	report := &corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-report")}
	lease := &coordinationv1.Lease{ObjectMeta: at(guest, "addon-writer-lease")}
	event := &eventsv1.Event{
		ObjectMeta: at(guest, "new"), EventTime: metav1.NowMicro(), ReportingController: "example.com/agent", ReportingInstance: "a", Regarding: reported,
		Action: "Tell", Reason: "Told", Type: corev1.EventTypeNormal,
	}
	tries := []try{
		{what: "make a ConfigMap", do: creating(withFinalizers(&corev1.ConfigMap{ObjectMeta: at(guest, "new")}, held))},
		{what: "make a ConfigMap by apply", do: applying("v1", "ConfigMap", "new", marked)},
		{what: "apply a ConfigMap", do: applying("v1", "ConfigMap", report.Name, marked)},
		{what: "patch a ConfigMap", do: merging(report, patch)},
		{what: "one more than somebody gave", do: merging(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-held")}, more)},
		{what: "another than somebody gave", do: putting(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-held")}, func(found *corev1.ConfigMap) {
			found.Finalizers = []string{"example.com/more"}
		})},
		{what: "patch its outbox", do: merging(secretOf(guest, "addon-out-writer", ""), patch)},
		{what: "make a Lease", do: creating(withFinalizers(&coordinationv1.Lease{ObjectMeta: at(guest, "new")}, held))},
		{what: "renew a Lease", do: putting(lease, func(found *coordinationv1.Lease) {
			found.Finalizers, found.Spec.RenewTime = []string{held}, new(metav1.NewMicroTime(time.Now()))
		})},
		{what: "make an event", do: creating(withFinalizers(&corev1.Event{ObjectMeta: at(guest, "new"), InvolvedObject: reported}, held))},
		{what: "patch an event", do: merging(&corev1.Event{ObjectMeta: at(guest, "told")}, patch)},
		{what: "make an event of the other group", do: creating(withFinalizers(event.DeepCopy(), held))},
		{what: "patch an event of the other group", do: merging(&eventsv1.Event{ObjectMeta: at(guest, "told")}, patch)},
	}
	for i := range tries {
		tries[i].policy, tries[i].says = "agent-writes", says
	}
	return append(tries,
		try{what: "tell an event", do: creating(event)},
		try{what: "make an object of a custom kind", do: creating(withFinalizers(widget(guest, "new"), held))},
		try{what: "patch an object of a custom kind", do: merging(widget(guest, "existing"), patch)},
		try{what: "renew a Lease without", do: putting(lease, func(found *coordinationv1.Lease) {
			found.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
		})},
		try{what: "make a Lease by apply", do: applying("coordination.k8s.io/v1", "Lease", "new", map[string]any{
			"spec": map[string]any{"holderIdentity": "a"},
		})},
		try{what: "make a ConfigMap by apply, without", do: applying("v1", "ConfigMap", "new", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "data": map[string]any{"a": "b"},
		})},
		try{what: "write what somebody holds", do: putting(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-held")}, func(found *corev1.ConfigMap) {
			found.Data, found.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
		})},
		try{what: "let go of what leaves, by half", do: merging(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-leaving")}, patch)},
		try{what: "write what leaves", do: merging(&corev1.ConfigMap{ObjectMeta: at(guest, "addon-writer-leaving")}, `{"data":{"a":"b"}}`)},
		try{what: "let a Secret go", do: merging(secretOf(guest, "addon-out-leaving", ""), `{"metadata":{"finalizers":null}}`)},
		try{what: "write a Secret that leaves", do: merging(secretOf(guest, "addon-out-leaving", ""), `{"data":{"a":"eA=="}}`)},
	)
}

// outboxes are tries at Secrets, of which an agent changes the data.
func outboxes() []try {
	const data, none = "agents can change only the data of a Secret", "agents can't create Secrets"
	outbox, bare := secretOf(guest, "addon-out-writer", ""), secretOf(guest, "addon-out-bare", "")
	patch := func(what string, of client.Object, patch, says string) try {
		return try{what: what, do: merging(of, patch), policy: "agent-writes", says: says}
	}
	return []try{
		patch("change a label", outbox, `{"metadata":{"labels":{"a":"b"}}}`, data),
		patch("take a label off", outbox, `{"metadata":{"labels":{"a":null}}}`, data),
		patch("give the first label", bare, `{"metadata":{"labels":{"a":"b"}}}`, data),
		patch("give a label to what leaves", secretOf(guest, "addon-out-leaving", ""), `{"metadata":{"labels":{"a":"b"}}}`, data),
		patch("change an annotation", outbox, `{"metadata":{"annotations":{"a":"b"}}}`, data),
		patch("take all annotations off", outbox, `{"metadata":{"annotations":null}}`, data),
		patch("give the first annotation", bare, `{"metadata":{"annotations":{"a":"b"}}}`, data),
		patch("take its owner off", outbox, `{"metadata":{"ownerReferences":null}}`, data),
		patch("give the first owner", bare, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, data),
		patch("keep everybody from changing it", outbox, `{"immutable":true}`, data),
		{what: "write it without its marks", do: updating(holding(secretOf(guest, "addon-out-writer", corev1.SecretTypeOpaque), "new")),
			policy: "agent-writes", says: data},
		{what: "apply a label", policy: "agent-writes", says: data, do: applying("v1", "Secret", outbox.Name, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"mine": "b"}}, "data": map[string]any{"a": "eA=="},
		})},
		{what: "make a Secret", do: creating(secretOf(guest, "addon-out-new", corev1.SecretTypeOpaque)), policy: "agent-writes", says: none},
		{what: "make a Secret by apply", policy: "agent-writes", says: none, do: applying("v1", "Secret", "addon-out-new", map[string]any{
			"data": map[string]any{"a": "eA=="},
		})},

		{what: "patch its data", do: merging(outbox, `{"data":{"a":null},"stringData":{"b":"c"}}`)},
		{what: "apply its data", do: applying("v1", "Secret", outbox.Name, map[string]any{"data": map[string]any{"a": "eA=="}})},
		{what: "put its data", do: putting(outbox, func(found *corev1.Secret) { found.Data = map[string][]byte{"b": []byte("c")} })},
		{what: "patch the data of one without marks", do: merging(bare, `{"data":{"a":"eA=="}}`)},
		{what: "apply data to one without marks", do: applying("v1", "Secret", bare.Name, map[string]any{"data": map[string]any{"a": "eA=="}})},
	}
}

// working has what no policy refuses succeed: one that fails to decide answers as if an object were wrong.
func working(tries []try) []try {
	tries = slices.Clone(tries)
	for i, one := range tries {
		if one.policy != "" {
			continue
		}
		tries[i].do = func(ctx context.Context, who client.Client) error {
			if err := one.do(ctx, who); err != nil {
				return fmt.Errorf("it does not work: %s", err.Error()) // without its reason
			}
			return nil
		}
	}
	return tries
}

// Red when an agent can hold the end of a cluster namespace by a finalizer on what Kubernetes itself has, or change more of its outbox than what
// is in it; when it can't write its data, renew its Lease, tell an event or give its own kinds finalizers; and when users are held
// to that who are no agents.
func TestWhatAgentsWrite(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.writers(t)
		tries := slices.Concat(finalizing(), outboxes())
		accounts := writersOf()
		expectTries(t, w.bearer(t, accounts[0], ""), working(tries), false)
		expectTries(t, w.as(t, certificateUser), working(tries), false)
		others := map[string]client.Client{"tenant": w.as(t, tenant), "system:addons:a": w.as(t, "system:addons:a"), "admin": w.admin}
		for _, account := range accounts[1:] {
			others[account.Namespace+"/"+account.Name] = w.bearer(t, account, "")
		}
		for name, other := range others {
			free := slices.Clone(tries)
			for i := range free {
				free[i].what, free[i].policy = name+": "+free[i].what, ""
			}
			expectTries(t, other, working(free), false)
		}
	})
}
