package installing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/cmd/wiring"
)

// patience is how long a benchmark waits for what has to come.
const patience = 3 * time.Minute

// addonTemplate has the four objects of everything that is installed.
const addonTemplate = `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Variables.name }}, labels: {app: {{ .Variables.name }}}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Variables.name }}, labels: {app: {{ .Variables.name }}}}
spec: {selector: {app: {{ .Variables.name }}}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: {{ .Variables.name }}, labels: {app: {{ .Variables.name }}}}
spec:
  rules:
  - host: {{ .Variables.name }}.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: {{ .Variables.name }}, port: {name: http}}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Variables.name }}, labels: {app: {{ .Variables.name }}}}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ .Variables.name }}}}
  template:
    metadata: {labels: {app: {{ .Variables.name }}}}
    spec:
      serviceAccountName: {{ .Variables.name }}
      containers:
      - name: app
        image: registry.example.com/app:1.0.0
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
`

// ChartFiles are the four objects of addonTemplate as a chart of name "four" and version 1.0.0: each release has its own, by its name.
func ChartFiles() map[string]string {
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: four\nversion: 1.0.0\n", "values.yaml": "name: unset\n"}
	text := strings.ReplaceAll(addonTemplate, ".Variables.name", ".Release.Name")
	for i, one := range strings.Split(text, "---\n") {
		files[fmt.Sprintf("templates/object-%d.yaml", i)] = one
	}
	return files
}

// SettleDeployments stands in for what runs Deployments without replicas, in one namespace, until the test ends: it writes the status of
// each once, as of its generation. Kubernetes' own controllers write several objects more for each, which would hide what is measured.
func SettleDeployments(t testing.TB, config *rest.Config, namespace string) {
	t.Helper()
	writer, err := client.New(config, client.Options{Scheme: wiring.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	follow(t, config, namespace, &appsv1.Deployment{}, func(ctx context.Context, object any) {
		settle(ctx, writer, object.(*appsv1.Deployment))
	})
}

// settle says that a Deployment without replicas has what it wants.
func settle(ctx context.Context, writer client.Client, found *appsv1.Deployment) {
	if found.Status.ObservedGeneration == found.Generation {
		return
	}
	settled := found.DeepCopy()
	settled.Status = appsv1.DeploymentStatus{
		ObservedGeneration: found.Generation,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	go func() { _ = writer.Status().Update(ctx, settled) }() // one that changed meanwhile is seen again
}

// follow watches a kind in one namespace until the test ends.
func follow(t testing.TB, config *rest.Config, namespace string, kind client.Object, see func(ctx context.Context, object any)) {
	t.Helper()
	watched, err := cache.New(config, cache.Options{
		Scheme: wiring.Scheme(), DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- watched.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("watching: %v", err)
		}
	})
	informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { see(ctx, object) }, UpdateFunc: func(_, object any) { see(ctx, object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !watched.WaitForCacheSync(ctx) {
		t.Fatal("the watch does not begin")
	}
}
