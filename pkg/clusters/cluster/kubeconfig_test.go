package cluster

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const canary = "canary-5f0c"

// plainKubeconfig is a kubeconfig as KKP writes it, as a tree that tests change.
func plainKubeconfig() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "preferences": map[string]any{}, "current-context": "default",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "https://192.0.2.1:6443"}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": canary}}},
		"contexts": []any{map[string]any{"name": "default", "context": map[string]any{"cluster": "c", "user": "u"}}},
	}
}

func part(tree map[string]any, list, item string) map[string]any {
	return tree[list].([]any)[0].(map[string]any)[item].(map[string]any)
}

func TestParseKubeconfigRefuses(t *testing.T) {
	cluster := func(field string, value any) func(map[string]any) {
		return func(tree map[string]any) { part(tree, "clusters", "cluster")[field] = value }
	}
	user := func(field string, value any) func(map[string]any) {
		return func(tree map[string]any) { part(tree, "users", "user")[field] = value }
	}
	double := func(list string) func(map[string]any) {
		return func(tree map[string]any) { tree[list] = append(tree[list].([]any), tree[list].([]any)[0]) }
	}
	for _, test := range []struct {
		why   string
		spoil func(map[string]any)
		field string
	}{
		{"exec runs a program", user("exec", map[string]any{"command": canary}), "users[].user.exec"},
		{"auth providers run plugins", user("auth-provider", map[string]any{"name": canary}), "users[].user.auth-provider"},
		{"a token file is read from our disk", user("tokenFile", "/"+canary), "users[].user.tokenFile"},
		{"so is a certificate", user("client-certificate", "/"+canary), "users[].user.client-certificate"},
		{"and its key", user("client-key", "/"+canary), "users[].user.client-key"},
		{"and a CA", cluster("certificate-authority", "/"+canary), "clusters[].cluster.certificate-authority"},
		{"a proxy sees everything", cluster("proxy-url", "http://"+canary), "clusters[].cluster.proxy-url"},
		{"an unproven server may be anybody", cluster("insecure-skip-tls-verify", true), "clusters[].cluster.insecure-skip-tls-verify"},
		{"impersonation hides who acts", user("as", canary), "users[].user.as"},
		{"by UID too", user("as-uid", canary), "users[].user.as-uid"},
		{"by groups too", user("as-groups", []any{canary}), "users[].user.as-groups"},
		{"by extras too", user("as-user-extra", map[string]any{"a": canary}), "users[].user.as-user-extra"},
		{"passwords are of the past", user("password", canary), "users[].user.password"},
		{"what is unknown may come to mean something", user(canary, "x"), "users[].user"},
		{"plain http shows the token", cluster("server", "http://"+canary), "clusters[].cluster.server"},
		{"a user part is a second credential", cluster("server", "https://u:"+canary+"@192.0.2.1"), "clusters[].cluster.server"},
		{"no host, no server", cluster("server", "https://:6443"), "clusters[].cluster.server"},
		{"a CA that is none would mean the system's", cluster("certificate-authority-data", "bm9wZQ=="),
			"clusters[].cluster.certificate-authority-data"},
		{"data is base64", cluster("certificate-authority-data", "%%"+canary), "clusters[].cluster.certificate-authority-data"},
		{"a server name is a name", cluster("tls-server-name", canary+"/.."), "clusters[].cluster.tls-server-name"},
		{"a certificate needs its key", user("client-certificate-data", "bm9wZQ=="), "users[].user.client-certificate-data"},
		{"a token goes into a header", user("token", canary+"\r\nX: y"), "users[].user.token"},
		{"a number is no token", user("token", 7), "users[].user.token"},
		{"nobody is nobody", user("token", ""), "users[].user"},
		{"two contexts leave a choice", double("contexts"), "contexts"},
		{"so do two clusters", double("clusters"), "clusters"},
		{"so do two users", double("users"), "users"},
		{"the context must be the one", func(tree map[string]any) { tree["current-context"] = canary }, "current-context"},
		{"and be named", func(tree map[string]any) { delete(tree, "current-context") }, "current-context"},
		{"it joins what there is", func(tree map[string]any) { part(tree, "contexts", "context")["user"] = canary }, "contexts[].context.user"},
		{"users are a list", func(tree map[string]any) { tree["users"] = canary }, "users"},
	} {
		t.Run(test.why, func(t *testing.T) {
			tree := plainKubeconfig()
			test.spoil(tree)
			data, err := yaml.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseKubeconfig(data)
			var refused *KubeconfigError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want a KubeconfigError", err)
			}
			if diff := cmp.Diff(test.field, refused.Field); diff != "" {
				t.Errorf("field (-want +got):\n%s", diff)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error shows what the file holds: %v", err)
			}
		})
	}
}

func TestParseKubeconfigTakesKKPs(t *testing.T) {
	tree := plainKubeconfig()
	part(tree, "clusters", "cluster")["tls-server-name"] = "apiserver.example.com"
	part(tree, "clusters", "cluster")["insecure-skip-tls-verify"] = false
	data, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	config, err := ParseKubeconfig(data)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{config.Host, config.BearerToken, config.ServerName}
	if diff := cmp.Diff([]string{"https://192.0.2.1:6443", canary, "apiserver.example.com"}, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestParseKubeconfigHasALimit(t *testing.T) {
	_, err := ParseKubeconfig([]byte(strings.Repeat("#", KubeconfigLimit+1)))
	if diff := cmp.Diff("kubeconfig is larger than 256 KiB", err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestKubeconfigsAreBounded: the size of a small file with its aliases expanded is counted before they are expanded.
// The test fails when a kubeconfig is decoded by anything but strictyaml, or without its limits.
func TestKubeconfigsAreBounded(t *testing.T) {
	for why, text := range map[string]string{
		"aliases of a text": "a: &a " + strings.Repeat("x", 120<<10) + "\nb: [" + strings.Repeat("*a,", 20_000) + "*a]\n",
		"aliases in lists": "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n",
		"lists": "a: [" + strings.Repeat("[],", 80_000) + "[]]\n",
		"depth": "a: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseKubeconfig([]byte(text))
		runtime.ReadMemStats(&after)
		var refused *KubeconfigError
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "xx") {
			t.Errorf("%s: got %.200v, want KubeconfigError", why, err)
		}
		if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 48 {
			t.Errorf("%s: %d MiB were allocated", why, taken)
		}
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	data, err := yaml.Marshal(plainKubeconfig())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("users: [{name: u, user: {exec: {command: sh}}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := ParseKubeconfig(data)
		var refused *KubeconfigError
		switch {
		case err != nil && !errors.As(err, &refused):
			t.Fatalf("got %T, want a KubeconfigError", err)
		case err == nil && (config.ExecProvider != nil || config.AuthProvider != nil || config.Insecure ||
			config.BearerTokenFile != "" || config.CertFile != "" || config.KeyFile != "" || config.CAFile != ""):
			t.Fatalf("a refused feature got through")
		}
	})
}
