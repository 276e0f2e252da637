package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestAnswersAboutHooksAreMasked fails if an answer about a hook is reported with the hook's content.
func TestAnswersAboutHooksAreMasked(t *testing.T) {
	l := lab.New(t)
	config := rest.CopyConfig(fleet.Shared().Cluster("user").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return lab.RoundTripper(func(request *http.Request) (*http.Response, error) {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"reason":"ServiceUnavailable","message":"can't take swordfish"}`
			return &http.Response{
				StatusCode: http.StatusServiceUnavailable, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewBufferString(body)),
			}, nil
		})
	})
	l.Target.Dynamic = lab.Must(dynamic.NewForConfig(config))(t)
	hook := apply.Hook{Object: l.Prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {password: swordfish}}`)[0], Run: "1"}
	_, _, err := apply.CreateHook(t.Context(), l.Target, l.Owner, hook)
	dropped := apply.DeleteHook(t.Context(), l.Target, hook, "uid")
	for _, failure := range []error{err, dropped} {
		if failure == nil || strings.Contains(failure.Error(), "swordfish") || !strings.Contains(failure.Error(), "can't take ***") {
			t.Errorf("got %v", failure)
		}
	}
}

// TestHookBecomesAnObject fails if an object that was created as a hook, and is now an object of the add-on, is refused
// or conflicts with itself; if its hook annotations stay; and if a field that the add-on dropped stays.
func TestHookBecomesAnObject(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	hook := l.Prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {helm.sh/hook: pre-install}}, ` +
		`data: {old: "1", color: blue}}`)[0]
	uid, _, err := apply.CreateHook(t.Context(), l.Target, l.Owner, apply.Hook{Object: hook, Run: "1"})
	if err != nil {
		t.Fatal(err)
	}
	inventory := l.Install(l.Prepare(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}`), nil)
	live := l.Get(lab.ConfigMaps, l.Unique, "settings")
	if inventory[0].UID != uid || live.GetUID() != uid {
		t.Errorf("the object was made anew: %v", inventory)
	}
	if len(live.GetAnnotations()) != 0 {
		t.Errorf("it is still a hook: %v", live.GetAnnotations())
	}
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); len(data) != 1 || data["color"] != "red" {
		t.Errorf("its data is %v", data)
	}
}

// TestAccountsOfHooksAreLookedFor fails if a Pod's account is only read from one of its two fields, if an existing
// account, or none, counts as missing, and if the Pod of a Job is not checked.
func TestAccountsOfHooksAreLookedFor(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.Install(l.Prepare(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent}}`), nil)
	for spec, isMissing := range map[string]bool{
		"serviceAccountName: agent": false, "serviceAccount: agent": false, "hostNetwork: false": false, "serviceAccountName: default": false,
		"serviceAccountName: gone": true, "serviceAccount: gone": true,
	} {
		for _, manifest := range []string{
			`{apiVersion: v1, kind: Pod, metadata: {name: work}, spec: {` + spec + `}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: work}, spec: {template: {spec: {` + spec + `}}}}`,
		} {
			hook := apply.Hook{Object: l.Prepare(manifest)[0], TargetNamespace: l.Unique, Run: "1"}
			_, found := errors.AsType[*apply.NoPlaceError](apply.CheckAccount(t.Context(), l.Target, hook))
			if found != isMissing {
				t.Errorf("%s: missing is %t, want %t", manifest, found, isMissing)
			}
		}
	}
}

// TestHooksOfHelmAreKeptFromThoseOfTemplates fails if a hook of go-template, which has no release, replaces Helm's
// hooks as its own.
func TestHooksOfHelmAreKeptFromThoseOfTemplates(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	stranger := ownership.Owner{ClusterUID: "elsewhere", Installation: "stranger"}
	theirs := l.Prepare(`{apiVersion: v1, kind: Pod, metadata: {name: work, annotations: {helm.sh/hook: pre-install}}, ` +
		`spec: {containers: [{name: work, image: work}]}}`)[0]
	theirs.SetLabels(nil)
	if _, err := l.Target.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(l.Unique).Create(
		t.Context(), theirs, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	for release, want := range map[*ownership.HelmMarks]string{
		nil: "it is a hook of a Helm release", {ReleaseName: "work", ReleaseNamespace: l.Unique}: "",
	} {
		seen, err := apply.ReadHook(t.Context(), l.Target, stranger, apply.Hook{Object: theirs, TargetNamespace: l.Unique, Release: release})
		if err != nil || seen.Obstacle != want {
			t.Errorf("the obstacle is %q, want %q: %v", seen.Obstacle, want, err)
		}
	}
}

// TestAJobWithoutAPodSaysWhy fails if a Job without a Pod is not recognized by its status, if the Job controller's
// event about it, or its account, is not reported, or if more of an event is reported than text that can't contain a
// secret.
func TestAJobWithoutAPodSaysWhy(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	lab.Must(l.Others.Resource(lab.Namespaces).Patch(l.Context(), l.Unique, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`), metav1.PatchOptions{}))(l)
	const safe = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, "
	const safeContainer = ", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
	hookOf := func(name, job, pod, container string) apply.Hook {
		return apply.Hook{TargetNamespace: l.Unique, Run: "1", Object: l.Prepare(`{apiVersion: batch/v1, kind: Job, metadata: {name: ` + name +
			`}, spec: {` + job + `template: {spec: {` + pod + `restartPolicy: Never, containers: [{name: work, image: work` + container + `}]}}}}`)[0]}
	}
	for _, test := range []struct {
		hook        apply.Hook
		hasPod      bool
		words, said string
	}{
		{hookOf("refused", "", "", ""), false, "it runs", `it has no Pod: FailedCreate: violates PodSecurity "restricted:latest"`},
		{hookOf("homeless", "", safe+"serviceAccountName: gone, ", safeContainer), false, "it runs", `it has no Pod: FailedCreate: serviceaccount "gone" not found`},
		{hookOf("suspended", "suspend: true, ", safe, safeContainer), true, "it is suspended", ""},
		{hookOf("works", "", safe, safeContainer), true, "it runs", ""},
	} {
		uid, refused, err := apply.CreateHook(t.Context(), l.Target, l.Owner, test.hook)
		if err != nil || refused.Text != "" {
			t.Fatal(refused, err)
		}
		name, reported := test.hook.Object.GetName(), ""
		l.Eventually(name+" is looked at by its controller", func() bool {
			seen := lab.Must(apply.ReadHook(t.Context(), l.Target, l.Owner, test.hook))(l)
			if test.hasPod {
				return !seen.IsWithoutPod && (seen.Ended || seen.Message == test.words)
			}
			if !seen.IsWithoutPod || seen.Message != test.words {
				return false
			}
			why := apply.WithoutPod(t.Context(), l.Target, test.hook, uid)
			reported = why.Text
			return reported == test.said && (why.Cause == kubermaticv1.ReasonPodSecurity) == strings.Contains(reported, "PodSecurity")
		})
	}
}

// TestEventsAboutPodsAreReportedByWhatIsKnown fails if an event's text is repeated, an event about another object counts,
// or the newest does not; and if a Job without events does not name the deleted account.
func TestEventsAboutPodsAreReportedByWhatIsKnown(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	hook := apply.Hook{TargetNamespace: l.Unique, Object: l.Prepare(`{apiVersion: batch/v1, kind: Job, metadata: {name: work}, ` +
		`spec: {template: {spec: {serviceAccountName: gone}}}}`)[0]}
	expectReported := func(want string) {
		t.Helper()
		if reported := apply.WithoutPod(t.Context(), l.Target, hook, "1"); reported.Text != want || (reported.Cause == kubermaticv1.ReasonWebhookRefused) != strings.Contains(want, "webhook") {
			t.Errorf("told is %q, want %q", reported, want)
		}
	}
	event := func(name, uid, reason, message, at string) {
		l.Create(corev1.SchemeGroupVersion.WithResource("events"), l.Unique, `{apiVersion: v1, kind: Event, metadata: {name: `+name+
			`, namespace: NAME}, involvedObject: {kind: Job, namespace: NAME, name: work, uid: "`+uid+`"}, reason: `+reason+
			`, message: '`+message+`', lastTimestamp: "`+at+`"}`)
	}
	account := fmt.Sprintf(`it has no Pod: its service account "gone" is not in namespace %q`, l.Unique)
	expectReported(account)
	event("another", "2", "FailedCreate", `exceeded quota: other`, "2026-01-01T00:00:03Z")
	event("better", "1", "SuccessfulCreate", `exceeded quota: other`, "2026-01-01T00:00:03Z")
	expectReported(account)
	event("a", "1", "FailedCreate", `Error creating: admission webhook "guard.example.com" denied the request: hunter2`, "2026-01-01T00:00:02Z")
	event("b", "1", "FailedCreate", `Error creating: hunter2`, "2026-01-01T00:00:01Z")
	expectReported(`it has no Pod: FailedCreate: admission webhook "guard.example.com" denied the request`)
	event("c", "1", "FailedCreate", `Error creating: hunter2`, "2026-01-01T00:00:04Z")
	expectReported(`it has no Pod: FailedCreate; its events say why`)
}
