package survey_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestAMissingClaimIsReportedByThePod fails if a workload whose claim is missing is reported only with kstatus's message.
func TestAMissingClaimIsReportedByThePod(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	stuck := strings.Replace(lab.Deployment, "spec: {", `spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: nobody-made-it}}], `, 1)
	inventory := l.Install(l.Prepare(stuck), nil)
	health := l.Explained(inventory, `persistentvolumeclaim "nobody-made-it" not found`)
	if said := health.Unhealthy[0]; !strings.HasPrefix(said.Message, "pod web-") || said.Cause != v1.ReasonUnschedulable ||
		!strings.Contains(said.Message, " is not scheduled (Unschedulable): ") {
		t.Errorf("it says %+v", said)
	}
	if health.Failing != 0 {
		t.Error("a pod that waits for a place counts as failing: it may come")
	}
	asked := l.Calls.During("GET /api/v1", func() { survey.Explain(t.Context(), l.Target, health) })
	if len(asked) != 1 {
		t.Errorf("one workload was explained by %q, want one list", asked)
	}
}

// TestContainersAreReportedWithoutTheirMessages fails if reasons, exit codes and images are not reported, if a container's
// output or arguments are, if foreign text is repeated, or if a workload whose pods crash does not count as failing.
func TestContainersAreReportedWithoutTheirMessages(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(strings.Replace(lab.Deployment, "spec: {", "spec: "+nowhere, 1)), nil)
	pod := l.OnePod()
	for _, test := range []struct{ why, status, want string }{
		{
			"a crash loop has its exit code", `restartCount: 6, state: {waiting: {reason: CrashLoopBackOff, message: hunter2}}, ` +
				`lastState: {terminated: {exitCode: 137, reason: OOMKilled, message: "password=hunter2"}}`,
			`crashes: container "web" ended with exit code 137 (OOMKilled), started 7 times (CrashLoopBackOff)`,
		},
		{
			"an image has its name", `state: {waiting: {reason: ImagePullBackOff, message: "https://user:hunter2@registry"}}`,
			`waits: container "web" can't get image "example.com/web:1" (ImagePullBackOff)`,
		},
		{
			"what is missing is named", `state: {waiting: {reason: CreateContainerConfigError, message: "secret \"keys\" not found"}}`,
			`waits: container "web": CreateContainerConfigError: secret "keys" not found`,
		},
		{
			"a command line is not repeated", `state: {waiting: {reason: RunContainerError, message: "exec: --password=hunter2"}}`,
			`waits: container "web": RunContainerError`,
		},
		{
			"a reason is one word", `state: {waiting: {reason: "hunter2 is\nthe password"}}`, `waits: container "web": no reason given`,
		},
	} {
		l.Edit(lab.PodsOf, pod, `{status: {containerStatuses: [{name: web, image: "example.com/web:1", imageID: x, ready: false, `+
			`restartCount: 0, `+test.status+`}]}}`, "status")
		health := l.Explained(inventory, test.want)
		if said := health.Unhealthy[0].Message; said != "pod "+pod+" "+test.want || strings.Contains(said, "hunter2") {
			t.Errorf("%s: it says %q", test.why, said)
		}
		if health.Failing != 1 || health.Unhealthy[0].Reason != "Failed" {
			t.Errorf("%s: %d failing, %s", test.why, health.Failing, health.Unhealthy[0].Reason)
		}
	}
}

// TestRefusedPodsAreReported fails if a workload whose pods are refused does not report the reason, or repeats the refusal.
func TestRefusedPodsAreReported(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	lab.Must(l.Others.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Patch(l.Context(), l.Unique,
		types.MergePatchType, []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`), metav1.PatchOptions{}))(l)
	inventory := l.Install(l.Prepare(lab.Deployment), nil)
	health := l.Explained(inventory, "no pod can be created")
	if said := health.Unhealthy[0]; said.Message != `no pod can be created: FailedCreate: violates PodSecurity "restricted:latest"` ||
		said.Cause != v1.ReasonPodSecurity {
		t.Errorf("it says %+v", said)
	}
}

// TestRefusedPodsAreReportedNextToAnOldOne fails if a workload does not report why its new pods are refused, because one of
// the previous version is still healthy.
func TestRefusedPodsAreReportedNextToAnOldOne(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(strings.Replace(lab.Deployment, "spec: {", "spec: {schedulerName: nobody, ", 1)), nil)
	l.Edit(lab.PodsOf, l.OnePod(), `{status: {phase: Running, conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "True"}]}}`,
		"status")
	lab.Must(l.Others.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Patch(l.Context(), l.Unique,
		types.MergePatchType, []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`), metav1.PatchOptions{}))(l)
	l.Edit(lab.Deployments, "web", `{spec: {template: {metadata: {annotations: {next: "true"}}}}}`)
	health := l.Explained(inventory, "no further pod can be created")
	if said := health.Unhealthy[0]; said.Message != `no further pod can be created: FailedCreate: violates PodSecurity "restricted:latest"` ||
		said.Reason != "Failed" || health.Failing != 1 || said.Cause != v1.ReasonPodSecurity {
		t.Errorf("it says %+v", said)
	}
}

// TestAWebhookThatKeepsPodsOutIsNamed fails if a workload whose pods a webhook refuses does not name the webhook, or
// repeats its answer.
func TestAWebhookThatKeepsPodsOutIsNamed(t *testing.T) {
	denying := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct{ UID string }
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": %q, "allowed": false, `+
			`"status": {"message": "exceeded quota: hunter-two"}}}`, review.Request.UID)
	}))
	t.Cleanup(denying.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: denying.Certificate().Raw})
	denies := fmt.Sprintf("{url: %q, caBundle: %s}", denying.URL, base64.StdEncoding.EncodeToString(authority))
	for client, want := range map[string]string{
		denies: `admission webhook "guard.example.com" denied the request`,
		"{service: {namespace: kube-system, name: nobody}}": `Internal error occurred: failed calling webhook "guard.example.com"`,
	} {
		l := lab.New(t)
		l.Namespace()
		guard := l.Install(l.Prepare(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
- name: guard.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: `+client+`
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps, pods], operations: [CREATE]}]`), nil)
		l.Shut()
		inventory := l.Install(l.Prepare(lab.Deployment), nil)
		health := l.Explained(inventory, "no pod can be created")
		if said := health.Unhealthy[0]; said.Message != "no pod can be created: FailedCreate: "+want || said.Cause != v1.ReasonWebhookRefused {
			t.Errorf("it says %+v", said)
		}
		l.Remove(guard, removal.RemoveOptions{})
	}
}
