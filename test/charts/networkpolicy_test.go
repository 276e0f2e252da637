package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// anybody is whom a port is open to that the policy names nobody for.
	anybody = "anybody"
	// oneApp is whom networkPolicy names in these tests, as the policy has it.
	oneApp = `[{"podSelector":{"matchLabels":{"app":"one"}}}]`
)

// from are peers of networkPolicy with a label of their own.
func from(app string) []any {
	return []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": app}}}}
}

// opened are the ports that a manager with a NetworkPolicy is reached at, with whom, for some values.
type opened struct {
	why            string
	policy, values map[string]any
	// shut is what is served to nobody, although it would be reached.
	shut string
	// narrowed are ports that are open to whom the values name.
	narrowed string
}

var policies = []opened{
	{why: "as it is"},
	{why: "metrics inside the pod", policy: map[string]any{"metricsFrom": from("one")}},
	{
		why: "metrics inside the pod, by IPv6", policy: map[string]any{"metricsFrom": from("one")},
		values: map[string]any{"metricsBindAddress": "[::1]:9090"},
	},
	{why: "metrics for nobody", values: map[string]any{"metricsBindAddress": ":8085"}, shut: "metrics"},
	{
		why: "metrics off", policy: map[string]any{"metricsFrom": from("one")}, values: map[string]any{"metricsBindAddress": "0"},
	},
	{
		why: "metrics, plain, at another address", policy: map[string]any{"metricsFrom": from("one")},
		values:   map[string]any{"metricsBindAddress": "[::]:9090", "metrics": map[string]any{"secure": false}},
		narrowed: "metrics",
	},
	{
		why: "metrics by a Service, with a certificate given", policy: map[string]any{"metricsFrom": from("one")},
		values: map[string]any{"metricsBindAddress": ":8085", "metrics": map[string]any{
			"tlsSecret": "metrics-tls", "service": map[string]any{"enabled": true},
		}},
		narrowed: "metrics",
	},
	{why: "without webhooks", values: map[string]any{"webhook": map[string]any{"enabled": false}}},
	{why: "webhooks by cert-manager", values: certManager},
	{
		why: "webhooks for the API server", policy: map[string]any{"webhookFrom": from("one")},
		narrowed: "webhook",
	},
	{
		why:    "debug, with labels that others select by",
		values: map[string]any{"debugBindAddress": "127.0.0.1:6060", "podLabels": map[string]any{"app.kubernetes.io/name": "other"}},
	},
}

// policiesOfSeeds are about the query endpoint.
var policiesOfSeeds = []opened{
	{why: "without queries", values: map[string]any{"query": map[string]any{"enabled": false}}},
	{
		why: "queries of some, with a certificate given", policy: map[string]any{"queryFrom": from("one")},
		values:   map[string]any{"query": map[string]any{"tlsSecret": "query-tls", "service": map[string]any{"port": 8444}}},
		narrowed: "query",
	},
}

// TestPoliciesAreOpenWhereManagersListen: for each set of values, what the container's arguments have the manager listen on, or its
// defaults where they say nothing, is what the NetworkPolicy opens. Red when a port that is served is shut, when one is open that nobody
// listens at from outside, or to others than were named, when a name is of no port of the container, and when a manager listens at
// something new that nobody decided about.
func TestPoliciesAreOpenWhereManagersListen(t *testing.T) {
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		byDefault := listening(usageOf(t, chart))
		tests := policies
		if chart == "trellis-seed" {
			tests = slices.Concat(policies, policiesOfSeeds)
		}
		for _, test := range tests {
			t.Run(chart+", "+test.why, func(t *testing.T) {
				_, objects := render(t, test.of(chart))
				manager := deployment(t, objects)
				listens := maps.Clone(byDefault)
				maps.Copy(listens, listening(strings.Join(manager.Spec.Template.Spec.Containers[0].Args, "\n")))
				want := map[int32]string{}
				for name, address := range listens {
					if port, outside := portOf(t, address); outside && name != test.shut {
						want[port] = anybody
						if name == test.narrowed {
							want[port] = oneApp
						}
					}
				}
				policy := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
				if diff := cmp.Diff(want, open(t, policy, manager)); diff != "" {
					t.Errorf("listens at %v, open (-want +got):\n%s", listens, diff)
				}
				expectSelected(t, policy, manager, objects)
				expectServicesOpen(t, want, manager, objects)
			})
		}
	}
}

func (o opened) of(chart string) rendering {
	policy := map[string]any{"enabled": true}
	maps.Copy(policy, o.policy)
	values := map[string]any{"networkPolicy": policy}
	maps.Copy(values, o.values)
	return rendering{chart: chart, why: o.why, values: withLeast(chart, values)}
}

// usageOf is what a manager tells of its flags.
func usageOf(t *testing.T, chart string) string {
	t.Helper()
	output, _ := exec.CommandContext(t.Context(), program(t, chart), "-h").CombinedOutput() // it ends with a code
	usage := string(output)
	if shown, known := strings.Count(usage, "-bind-address string"), len(listening(usage)); shown == 0 || shown != known {
		t.Fatalf("%s has %d flags for addresses that it listens at, of which %d show their default", chart, shown, known)
	}
	return usage
}

// listensAt is a flag's line in a manager's usage, with its default below, or an argument.
var listensAt = regexp.MustCompile(`(?m)^ *--?([a-z-]+)-bind-address(?:=(.*)| string\n.*\(default "(.*)"\))$`)

// listening are addresses by the flag's name.
func listening(text string) map[string]string {
	found := map[string]string{}
	for _, match := range listensAt.FindAllStringSubmatch(text, -1) {
		found[match[1]] = match[2] + match[3]
	}
	return found
}

// portOf an address, and whether it is reached from outside the pod.
func portOf(t *testing.T, address string) (port int32, outside bool) {
	t.Helper()
	if address == "0" {
		return 0, false
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(number), host != "localhost" && !net.ParseIP(host).IsLoopback()
}

// open are the ports that a policy opens of a Deployment's pods, and to whom.
func open(t *testing.T, policy networkingv1.NetworkPolicy, of appsv1.Deployment) map[int32]string {
	t.Helper()
	found := map[int32]string{}
	for _, rule := range policy.Spec.Ingress {
		whom := anybody
		if len(rule.From) > 0 {
			text, err := json.Marshal(rule.From)
			if err != nil {
				t.Fatal(err)
			}
			whom = string(text)
		}
		if len(rule.Ports) == 0 {
			t.Errorf("all ports are open to %s", whom)
		}
		for _, one := range rule.Ports {
			port := resolved(t, *one.Port, of)
			if found[port] != "" || one.EndPort != nil || one.Protocol == nil || *one.Protocol != corev1.ProtocolTCP {
				t.Errorf("port %d is open twice, or is not one of TCP: %v", port, policy.Spec.Ingress)
			}
			found[port] = whom
		}
	}
	return found
}

// resolved is the number of a port of a Deployment's container; one that it does not name is as good as shut.
func resolved(t *testing.T, port intstr.IntOrString, of appsv1.Deployment) int32 {
	t.Helper()
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, one := range of.Spec.Template.Spec.Containers[0].Ports {
		if one.Name == port.StrVal {
			return one.ContainerPort
		}
	}
	t.Errorf("port %q is none of the container", port.StrVal)
	return 0
}

// expectSelected holds that a policy is about the manager's pods, and about no pod of a Job, and lets everything out.
func expectSelected(
	t *testing.T, policy networkingv1.NetworkPolicy, manager appsv1.Deployment, objects []*unstructured.Unstructured,
) {
	t.Helper()
	selects := labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels)
	if policy.Namespace != manager.Namespace || selects.Empty() || !selects.Matches(labels.Set(manager.Spec.Template.Labels)) {
		t.Errorf("pods with %v are not those with %v", manager.Spec.Template.Labels, policy.Spec.PodSelector)
	}
	for i, object := range objects {
		if object.GetKind() != "Job" {
			continue
		}
		if job := typed[batchv1.Job](t, objects[i:], "Job"); selects.Matches(labels.Set(job.Spec.Template.Labels)) {
			t.Errorf("the policy is about Job %s", job.Name)
		}
	}
	// DNS, API servers, sources and a collector of traces are reached as without the policy.
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) || policy.Spec.Egress != nil {
		t.Errorf("what goes out is limited although nobody said how: %v %v", policy.Spec.PolicyTypes, policy.Spec.Egress)
	}
}

// expectServicesOpen holds that each Service of a manager leads to a port that is open.
func expectServicesOpen(t *testing.T, ports map[int32]string, manager appsv1.Deployment, objects []*unstructured.Unstructured) {
	t.Helper()
	for i, object := range objects {
		if object.GetKind() != "Service" {
			continue
		}
		service := typed[corev1.Service](t, objects[i:], "Service")
		for _, one := range service.Spec.Ports {
			if port := resolved(t, one.TargetPort, manager); ports[port] == "" {
				t.Errorf("Service %s leads to port %d, and open are %v", service.Name, port, ports)
			}
		}
	}
}

// What goes out is limited to what networkPolicy.egress has, as it is: only who installs the chart knows the addresses. Red when a rule is
// left out, changed or added, so that a manager does not reach what was named, or reaches more.
func TestPoliciesLetOutWhatIsNamed(t *testing.T) {
	port := func(protocol string, number int) map[string]any {
		return map[string]any{"protocol": protocol, "port": number}
	}
	block := func(range_ string, except ...any) map[string]any {
		return map[string]any{"ipBlock": map[string]any{"cidr": range_, "except": except}}
	}
	egress := []any{
		map[string]any{"ports": []any{port("UDP", 53), port("TCP", 53)}},
		map[string]any{"ports": []any{port("TCP", 443), port("TCP", 6443)}, "to": []any{block("0.0.0.0/0", "169.254.169.254/32")}},
		map[string]any{"ports": []any{port("TCP", 4318)}, "to": []any{map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}},
		}}},
	}
	for _, chart := range []string{"trellis-master", "trellis-seed", webChart} {
		_, objects := render(t, opened{why: "limited", policy: map[string]any{"egress": egress}}.of(chart))
		policy := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
		types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
		if !slices.Equal(policy.Spec.PolicyTypes, types) {
			t.Errorf("%s limits %v", chart, policy.Spec.PolicyTypes)
		}
		if diff := cmp.Diff(texts(t, egress), texts(t, policy.Spec.Egress)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", chart, diff)
		}
	}
}

// texts are a value as JSON reads it.
func texts(t *testing.T, value any) (read any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("reading %v: %w", value, err))
	}
	return read
}
