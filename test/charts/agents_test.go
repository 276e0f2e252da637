package charts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
)

// withAgents are values of a seed whose manager gives out credentials.
var withAgents = map[string]any{"agents": map[string]any{
	"enabled": true, "hub": map[string]any{"server": "https://hub.example.com:6443", "caConfigMap": "hub-ca"},
	"sharedNamespaces": true, "approve": []any{kubermaticv1.SignerAPIServer},
}}

// listedForAgents is a ClusterRole that lists a kind for agents, or for nobody.
func listedForAgents(name, whose, resource string) *rbacv1.ClusterRole {
	made := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"widgets.example.com"}, Resources: []string{resource}, Verbs: []string{"get", "patch"},
	}}}
	if whose != "" {
		made.Labels = map[string]string{kubermaticv1.LabelAgents: whose}
	}
	return made
}

// AG15: Red when a setting does not reach the manager, when the authorities are not mounted where the flag says, or when a right of agents
// is there without them.
func TestAgentsReachTheManager(t *testing.T) {
	for _, test := range []struct {
		why    string
		agents map[string]any
		flags  []string
		from   string
	}{
		{"off", map[string]any{"hub": map[string]any{"server": "https://a"}, "sharedNamespaces": true, "approve": []any{kubermaticv1.SignerAPIServer}}, nil, ""},
		{"with defaults", map[string]any{"enabled": true, "hub": map[string]any{"server": "https://[fd00::1]:6443/seed"}},
			[]string{"--hub-server=https://[fd00::1]:6443/seed", "--hub-ca-file=/etc/trellis/hub/ca.crt"}, "kube-root-ca.crt"},
		{"with all", map[string]any{
			"enabled": true, "hub": map[string]any{"server": "https://a", "caConfigMap": "b"}, "sharedNamespaces": true,
			"approve": []any{kubermaticv1.SignerAPIServer, "example.com/agents"},
		}, []string{
			"--hub-server=https://a", "--hub-ca-file=/etc/trellis/hub/ca.crt", "--agents-in-shared-namespaces",
			"--approve-signers=kubernetes.io/kube-apiserver-client,example.com/agents",
		}, "b"},
	} {
		_, objects := render(t, rendering{chart: "trellis-seed", why: test.why, values: map[string]any{"agents": test.agents}})
		spec := deployment(t, objects).Spec.Template.Spec
		var flags []string
		for _, argument := range spec.Containers[0].Args {
			if strings.HasPrefix(argument, "--hub-") || strings.HasPrefix(argument, "--agents-") || strings.HasPrefix(argument, "--approve-") {
				flags = append(flags, argument)
			}
		}
		if diff := cmp.Diff(test.flags, flags); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
		from := ""
		for _, volume := range spec.Volumes {
			if volume.ConfigMap == nil {
				continue
			}
			from = volume.ConfigMap.Name
			for _, mount := range spec.Containers[0].VolumeMounts {
				if mount.Name == volume.Name && (mount.MountPath != "/etc/trellis/hub" || !mount.ReadOnly) {
					t.Errorf("%s: mounted by %v", test.why, mount)
				}
			}
			if items := volume.ConfigMap.Items; len(items) != 1 || items[0].Key != "ca.crt" || items[0].Path != "ca.crt" {
				t.Errorf("%s: the volume has %v", test.why, items)
			}
		}
		if from != test.from {
			t.Errorf("%s: the authorities are from %q, want %q", test.why, from, test.from)
		}
	}
}

// Red when a seed without agents has anything of theirs, whatever else is said of them.
func TestSeedsWithoutAgentsHaveNothingOfThem(t *testing.T) {
	off := maps.Clone(withAgents["agents"].(map[string]any))
	off["enabled"] = false
	said, err := renderFiles(load(t, "trellis-seed"), map[string]any{"agents": off})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := renderFiles(load(t, "trellis-seed"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range plain {
		if diff := cmp.Diff(random.ReplaceAllString(text, ""), random.ReplaceAllString(said[file], "")); diff != "" {
			t.Errorf("%s (-plain +off):\n%s", file, diff)
		}
		if strings.Contains(text, "addon-agent-") || strings.Contains(text, "serviceaccounts/token") || strings.Contains(text, kubermaticv1.LabelAgents) {
			t.Errorf("%s has something of agents", file)
		}
	}
}

// AG02: The manager holds what ClusterRoles with the label list, of Core and of Custom, and nothing that one without it has.
func TestTheManagerHoldsWhatIsListedForAgents(t *testing.T) {
	const widgets = "widgets.example.com"
	r := rendering{chart: "trellis-seed", why: "with agents", values: withAgents}
	connect(t)
	c := platformClient(t)
	for name, whose := range map[string]string{"cogs": kubermaticv1.AgentsCore, "wheels": kubermaticv1.AgentsCustom, "levers": "", "bolts": "others"} {
		expect.Ensure(t, c, listedForAgents("listed-"+name, whose, name))
	}
	ask(t, r, []access{
		{"get", widgets, "cogs", "cluster-a", "", true, "it is listed for Core"},
		{"patch", widgets, "wheels", "cluster-a", "", true, "it is listed for Custom"},
		{"delete", widgets, "wheels", "cluster-a", "", false, "it is not listed"},
		{"get", widgets, "levers", "cluster-a", "", false, "it is not listed"},
		{"get", widgets, "bolts", "cluster-a", "", false, "it is listed for nobody"},
		{"create", "", "serviceaccounts", "cluster-a", "", true, "accounts of agents"},
		{"create", "", "serviceaccounts/token", "cluster-a", "", true, "their tokens"},
		{"impersonate", "", "serviceaccounts", "cluster-a", "", false, "it is nobody else"},
		{"update", rbacv1.GroupName, "roles", "cluster-a", "", true, "their rights"},
		{"delete", rbacv1.GroupName, "rolebindings", "cluster-a", "", true, "their rights"},
		{"escalate", rbacv1.GroupName, "roles", "cluster-a", "", false, "it gives what it holds"},
		{"bind", rbacv1.GroupName, "roles", "cluster-a", "", false, "it gives what it holds"},
		{"watch", rbacv1.GroupName, "clusterroles", "", "", true, "what is listed"},
		{"create", rbacv1.GroupName, "clusterroles", "", "", false, "the platform allows"},
		{"update", rbacv1.GroupName, "clusterroles", "", "listed-cogs", false, "the platform allows"},
		{"create", rbacv1.GroupName, "clusterrolebindings", "", "", false, "agents are in cluster namespaces"},
		{"patch", "", "secrets", "cluster-a", "addon-out-a", true, "what an agent may do with its outbox"},
		{"create", "certificates.k8s.io", "certificatesigningrequests", "", "", true, "certificates of agents"},
		{"update", "certificates.k8s.io", "certificatesigningrequests", "", "", false, "a request stays as it is"},
		{"update", "certificates.k8s.io", "certificatesigningrequests/approval", "", "", true, "it approves"},
		{"update", "certificates.k8s.io", "certificatesigningrequests/status", "", "", false, "it signs nothing"},
		{"approve", "certificates.k8s.io", "signers", "", "kubernetes.io/kube-apiserver-client", true, "it approves for this signer"},
		{"approve", "certificates.k8s.io", "signers", "", "kubernetes.io/kubelet-serving", false, "it approves for no other"},
		{"approve", "certificates.k8s.io", "signers", "", "kubernetes.io/*", false, "it approves for no other"},
		{"sign", "certificates.k8s.io", "signers", "", "kubernetes.io/kube-apiserver-client", false, "it signs nothing"},
	})
	// A list that goes takes the right away.
	expect.Delete(t, c, listedForAgents("listed-cogs", "", "cogs"))
	ask(t, r, []access{{"get", widgets, "cogs", "cluster-a", "", false, "it is listed no more"}})
	ask(t, rendering{chart: "trellis-seed", why: "with agents that somebody approves", values: map[string]any{
		"agents": map[string]any{"enabled": true, "hub": map[string]any{"server": "https://a"}},
	}}, []access{
		{"create", "certificates.k8s.io", "certificatesigningrequests", "", "", true, "certificates of agents"},
		{"update", "certificates.k8s.io", "certificatesigningrequests/approval", "", "", false, "somebody approves"},
		{"approve", "certificates.k8s.io", "signers", "", "kubernetes.io/kube-apiserver-client", false, "somebody approves"},
	})
}

var quotedWord = regexp.MustCompile(`'([^']+)'`)

// AG01, AG03: Code and policy deny agents the same groups. Red when one of both lacks some.
func TestTheFloorIsTheSameInCodeAndChart(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg", "clusters", "access", "rights", "groups.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); !is || spec.Names[0].Name != "denied" {
			return true
		}
		ast.Inspect(node, func(below ast.Node) bool {
			if word, is := below.(*ast.BasicLit); is {
				read, err := strconv.Unquote(word.Value)
				if err != nil {
					t.Fatal(err)
				}
				code = append(code, read)
			}
			return true
		})
		return false
	})
	_, objects := render(t, rendering{chart: "trellis-seed", why: "with agents", values: withAgents})
	var chart []string
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" || object.GetName() != namespace+".trellis-seed.agent-roles" {
			continue
		}
		for _, variable := range object.Object["spec"].(map[string]any)["variables"].([]any) {
			if variable := variable.(map[string]any); variable["name"] == "denied" {
				for _, match := range quotedWord.FindAllStringSubmatch(fmt.Sprint(variable["expression"]), -1) {
					chart = append(chart, match[1])
				}
			}
		}
	}
	if len(code) == 0 {
		t.Fatal("the code denies nothing")
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(code)), slices.Sorted(slices.Values(chart))); diff != "" {
		t.Errorf("-code +chart:\n%s", diff)
	}
}
