package charts

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// canary is in Secrets that the user of these tests did not write.
const canary = "canary-of-another"

const written = "cluster-w"

// TestUsersWriteValuesThatTheyCanNotRead: red when role values-writer can't keep a Secret with values, reaches any other Secret, or is answered
// with what others wrote.
func TestUsersWriteValuesThatTheyCanNotRead(t *testing.T) {
	c := withRoles(t)
	expect.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: written}})
	name := bind(t, c, "trellis-seed", "values-writer", written)
	user := asUser(t, name)
	plain := valuesSecret("user-values-plain")
	plain.Labels = nil
	expect.Eventually(t, expect.Patience, func() error { // policies and rights are followed by watches
		return refusal(user.Create(t.Context(), plain.DeepCopy(), client.DryRunAll), "use=values: give")
	})
	t.Run("own", func(t *testing.T) { testOwnValues(t, user) })
	t.Run("refused", func(t *testing.T) { testRefusedValues(t, c, user) })
	t.Run("answers", func(t *testing.T) { testAnswers(t, c, name) })
	t.Run("others are not limited", func(t *testing.T) {
		admin := given.Secret(written, "any", map[string][]byte{"a": []byte("b")})
		admin.Finalizers = []string{"example.com/held"}
		if err := c.Create(t.Context(), admin, client.DryRunAll); err != nil {
			t.Error(err)
		}
	})
}

func valuesSecret(name string) *corev1.Secret {
	made := given.Secret(written, name, map[string][]byte{"values.yaml": []byte("db: {password: mine}")})
	made.Labels = map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseValues, "team": "a"}
	return made
}

// testOwnValues makes, changes and deletes a Secret.
func testOwnValues(t *testing.T, user client.Client) {
	mine := valuesSecret("user-values-db")
	expect.Create(t, user, mine)
	mine = valuesSecret("user-values-db") // without a resourceVersion, as kubectl replace sends it
	mine.Data["values.yaml"] = []byte("db: {password: next}")
	if err := user.Update(t.Context(), mine); err != nil {
		t.Error(err)
	}
	if err := user.Delete(t.Context(), mine); err != nil {
		t.Error(err)
	}
	generated := valuesSecret("")
	generated.GenerateName = "user-values-"
	if err := user.Create(t.Context(), generated, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

func testRefusedValues(t *testing.T, c, user client.Client) {
	changed := func(change func(*corev1.Secret)) *corev1.Secret {
		made := valuesSecret("user-values-x")
		change(made)
		return made
	}
	for words, refused := range map[string]*corev1.Secret{
		"begin with user-values-":     changed(func(s *corev1.Secret) { s.Name = "w-ca" }),
		"have names with this ending": changed(func(s *corev1.Secret) { s.Name = "user-values-x-ca" }),
		"with a prefix are for":       changed(func(s *corev1.Secret) { s.Annotations = map[string]string{"replicator.example.com/from": "a/b"} }),
		"use=values: give":            changed(func(s *corev1.Secret) { s.Labels = map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseSource} }),
		"are for controllers": changed(func(s *corev1.Secret) {
			s.Annotations = map[string]string{"addons.kubermatic.k8c.io/access-of": "x"}
		}),
		"type Opaque":                   changed(func(s *corev1.Secret) { s.Type = "example.com/other" }),
		"ownerReferences or finalizers": changed(func(s *corev1.Secret) { s.Finalizers = []string{"example.com/held"} }),
		"more than 256 KiB":             changed(func(s *corev1.Secret) { s.Data["a"] = bytes.Repeat([]byte("x"), 300<<10) }),
		"have ownerReferences": changed(func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
		}),
	} {
		if err := refusal(user.Create(t.Context(), refused), words); err != nil {
			t.Errorf("create %s: %v", refused.Name, err)
		}
	}
	// What somebody else made: a name of a controller, a finalizer, an owner, a mark, no label.
	for i, change := range []func(*corev1.Secret){
		func(s *corev1.Secret) { s.Name = "admin-kubeconfig" },
		func(s *corev1.Secret) { s.Finalizers = []string{"example.com/held"} },
		func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
		},
		func(s *corev1.Secret) { s.Annotations = map[string]string{"addons.kubermatic.k8c.io/role": "copy"} },
		func(s *corev1.Secret) { s.Labels = nil },
	} {
		theirs := valuesSecret(fmt.Sprintf("user-values-theirs-%d", i))
		change(theirs)
		expect.Create(t, c, theirs)
		t.Cleanup(func() {
			theirs.Finalizers = nil
			if err := client.IgnoreNotFound(c.Update(context.WithoutCancel(t.Context()), theirs)); err != nil { // owners that are not there have it collected
				t.Error(err)
			}
		})
		mine := valuesSecret(theirs.Name)
		if err := refusal(user.Update(t.Context(), mine), `Secret "cluster-w/`+theirs.Name); err != nil {
			t.Errorf("update: %v", err)
		}
		if err := refusal(user.Delete(t.Context(), mine), `Secret "cluster-w/`+theirs.Name); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
}

// testAnswers sends all that the role may send, and what it may not, about a Secret of another user with the role.
func testAnswers(t *testing.T, c client.Client, user string) {
	theirs := valuesSecret("user-values-theirs")
	theirs.Data = map[string][]byte{"values.yaml": []byte(canary)}
	path := "/api/v1/namespaces/" + written + "/secrets"
	one := path + "/" + theirs.Name
	mine := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + theirs.Name + `","labels":{"addons.kubermatic.k8c.io/use":"values"}}}`
	for _, call := range []request{
		{http.MethodPost, path, "application/json", mine},
		{http.MethodPut, one + "?dryRun=All", "application/json", mine},
		{http.MethodPut, one, "application/json", mine},
		{http.MethodPut, one, "application/json", strings.Replace(mine, `"metadata":{`, `"immutable":true,"type":"example.com/x","metadata":{`, 1)},
		{http.MethodPatch, one, "application/merge-patch+json", `{}`},
		{http.MethodPatch, one + "?fieldManager=x&force=true", "application/apply-patch+yaml", mine},
		{http.MethodGet, one, "", ""},
		{http.MethodGet, path, "", ""},
		{http.MethodGet, path + "?watch=true&timeoutSeconds=1", "", ""},
		{http.MethodDelete, path, "", ""},
		{http.MethodDelete, one + "?dryRun=All", "", ""},
		{http.MethodDelete, one + "?propagationPolicy=Foreground", "", ""},
		{http.MethodDelete, one + "?propagationPolicy=Orphan", "", ""},
		{http.MethodDelete, one + "?orphanDependents=true", "", ""},
		{http.MethodDelete, one, "application/json", `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground"}`},
		{http.MethodDelete, one, "application/json", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":100}`},
		{http.MethodDelete, one, "", ""},
	} {
		expect.Ensure(t, c, theirs.DeepCopy())
		status, answer := send(t, configOf(user), call)
		for _, hidden := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(answer, hidden) {
				t.Errorf("%s %s %s: answered %d with what another wrote:\n%s", call.method, call.path, call.body, status, answer)
			}
		}
		if status >= http.StatusInternalServerError {
			t.Errorf("%s %s: %d: %s", call.method, call.path, status, answer)
		}
		expect.NoError(t, client.IgnoreNotFound(c.Delete(t.Context(), theirs.DeepCopy())))
	}
}

// request is one call, with the media type and content of its body.
type request struct{ method, path, kind, body string }

func send(t *testing.T, config *rest.Config, call request) (status int, answer string) {
	t.Helper()
	through, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	sent, err := http.NewRequestWithContext(t.Context(), call.method, config.Host+call.path, strings.NewReader(call.body))
	expect.NoError(t, err)
	if call.kind != "" {
		sent.Header.Set("Content-Type", call.kind)
	}
	response, err := through.Do(sent)
	expect.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	return response.StatusCode, string(content)
}
