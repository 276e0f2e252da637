package manager

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// TestMetricsAreForWhoMayGetThem: a manager serves its metrics, and several ask. Red when who shows no token, or may not get the path, is
// answered, when who may is not, and when there is an answer without TLS.
func TestMetricsAreForWhoMayGetThem(t *testing.T) {
	config := rest.CopyConfig(fleet.Shared().Cluster(bare).Config)
	admin, err := client.New(config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(t, err)
	tokens := map[string]string{"nobody": "", "stranger": "invented", "other": tokenOf(t, admin, "other"), "reader": tokenOf(t, admin, "reader")}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
		},
	} {
		expect.Create(t, admin, object)
	}
	address := freeAddress(t, "127.0.0.1:0")
	serve(t, config, nil, "--metrics-bind-address="+address, "--metrics-secure")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is self-signed
	t.Cleanup(web.CloseIdleConnections)
	for who, want := range map[string]int{"nobody": 401, "stranger": 401, "other": 403, "reader": 200} {
		expect.Eventually(t, expect.Patience, func() error { // a role takes a moment
			code, body, err := get(t, web, "https://"+address+"/metrics", tokens[who])
			if err == nil && (code != want || (want == 200) != strings.Contains(body, "trellis_build_info")) {
				return fmt.Errorf("%s gets %d, want %d: %.200s", who, code, want, body)
			}
			return err
		})
	}
	if code, body, err := get(t, web, "http://"+address+"/metrics", tokens["reader"]); err == nil && code == http.StatusOK {
		t.Errorf("without TLS: %d %.100s", code, body)
	}
}

func get(t *testing.T, web *http.Client, address, token string) (code int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	expect.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := web.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

// tokenOf a ServiceAccount, which is made.
func tokenOf(t *testing.T, admin client.Client, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	expect.Eventually(t, time.Minute, func() error { return client.IgnoreAlreadyExists(admin.Create(t.Context(), account)) })
	return expect.Token(t, admin, account)
}
