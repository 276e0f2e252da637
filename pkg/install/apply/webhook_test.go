package apply_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// gate is the backend of a validating webhook, in the test's process.
type gate struct {
	*httptest.Server
	lock sync.Mutex
	// down is the body of the answers of a broken backend; denial is its reason for refusing objects.
	down, denial string
}

func newGate(t *testing.T) *gate {
	g := &gate{}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.answer))
	t.Cleanup(g.Close)
	return g
}

// turn changes its answers; both empty allows everything.
func (g *gate) turn(down, denial string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.down, g.denial = down, denial
}

func (g *gate) answer(writer http.ResponseWriter, request *http.Request) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.down != "" {
		http.Error(writer, g.down, http.StatusInternalServerError)
		return
	}
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(writer, "no review", http.StatusBadRequest)
		return
	}
	answer := map[string]any{"uid": review.Request.UID, "allowed": g.denial == "", "status": map[string]any{"message": g.denial}}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": answer})
}

// manifest is the webhook's configuration: it reads the ConfigMaps and Secrets of the lab's namespace and fails closed.
func (g *gate) manifest() string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
- name: gate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 10
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps, secrets], operations: [CREATE, UPDATE], scope: Namespaced}]
  clientConfig: {url: "` + g.URL + `/", caBundle: ` + base64.StdEncoding.EncodeToString(authority) + `}`
}

// RS26: An add-on whose own webhook answers only once its workload runs gets installed. It fails if webhook
// configurations are of stageRest (the ConfigMap comes after them), if a call that failed because of the webhook is a
// refusal instead of an error that is retried, or if each stage stops at it: the rest of the stage is applied.
func TestWebhookOfTheAddonItselfComesLast(t *testing.T) {
	l, g := lab.New(t), newGate(t)
	l.Namespace()
	addon := g.manifest() + "\n---\n" + lab.Settings + "\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}"
	g.turn("it starts", "")
	var inventory ownership.Inventory
	writes := l.Calls.During("PATCH", func() { inventory = l.Install(l.Prepare(addon), nil) })
	if last := writes[len(writes)-1]; !strings.HasSuffix(last, "/validatingwebhookconfigurations/"+l.Unique) {
		t.Errorf("the webhook's configuration was not written last: %q", writes)
	}
	defer l.Remove(inventory, removal.RemoveOptions{})
	l.Shut()

	upgrade := strings.Replace(strings.Replace(addon, "green", "blue", 1), "port: 80", "port: 81", 1)
	rollout := apply.NewRollout(l.Owner, l.Prepare(upgrade), inventory, apply.RolloutOptions{})
	progress, err := rollout.Advance(t.Context(), l.Target)
	if err == nil || progress.Complete || len(progress.Refused) > 0 {
		t.Fatalf("got %v and %+v, want an error to be tried again", err, progress)
	}
	for _, word := range []string{"ConfigMap " + l.Unique + "/settings", "gate.example.com"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %s: %v", word, err)
		}
	}
	if progress.Written != 1 {
		t.Errorf("%d objects were written, want the Service", progress.Written)
	}

	g.turn("", "")
	progress, err = rollout.Advance(t.Context(), l.Target)
	if err != nil || !progress.Complete || progress.Written != 2 {
		t.Errorf("got %v and %+v once the backend is up, want the rollout at its end and nothing written twice", err, progress)
	}
}

// AC45: A webhook's answer about an object repeats no value of a Secret. It fails, in the order of the cases, if
// problemOf repeats an answer about a Secret; if maskValues ignores data, labels and annotations, lines, or quoted
// forms; if failed calls are not masked, about a Secret or others.
func TestAnswersOfWebhooksAreNotRepeated(t *testing.T) {
	l, g := lab.New(t), newGate(t)
	l.Namespace()
	configuration := l.Install(l.Prepare(g.manifest()), nil)
	defer l.Remove(configuration, removal.RemoveOptions{})
	g.turn("it starts", "")
	l.Shut()
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {key: hunter-two}}`
	for name, test := range map[string]struct{ manifest, down, denial, says string }{
		"secret":       {manifest: secret, denial: "key hunter-two (aHVudGVyLXR3bw==) is bad", says: "Secret NAME/keys"},
		"value":        {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: hunter-two}}`, denial: "no hunter-two", says: "no ***"},
		"annotation":   {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, annotations: {k: hunter-two}}}`, denial: "no hunter-two", says: "no ***"},
		"label":        {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m, labels: {k: hunter-two}}}`, denial: "no hunter-two", says: "no ***"},
		"line":         {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: "a: b\n  hunter-two\n"}}`, denial: "no hunter-two", says: "no ***"},
		"quoted":       {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: "hunter\"two"}}`, denial: `no "hunter\"two"`, says: `no "***"`},
		"failed":       {manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: hunter-two}}`, down: "no hunter-two", says: "no ***"},
		"failed, with": {manifest: secret, down: "no hunter-two", says: "Secret NAME/keys"},
	} {
		t.Run(name, func(t *testing.T) {
			g.turn(test.down, test.denial)
			rollout := apply.NewRollout(l.Owner, l.Prepare(test.manifest), nil, apply.RolloutOptions{})
			progress, err := rollout.Advance(t.Context(), l.Target)
			var said string
			switch {
			case err != nil && test.down != "":
				said = err.Error()
			case err == nil && len(progress.Refused) == 1:
				if said = progress.Refused[0].Message; progress.Refused[0].Cause != kubermaticv1.ReasonWebhookRefused {
					t.Errorf("the cause is %q", progress.Refused[0].Cause)
				}
			default:
				t.Fatalf("got %v and %+v, want it refused", err, progress)
			}
			says := strings.ReplaceAll(test.says, "NAME", l.Unique)
			if strings.Contains(said, "hunter") || strings.Contains(said, "aHVud") || !strings.Contains(said, says) {
				t.Errorf("it repeats a value, or does not say %q: %s", says, said)
			}
		})
	}
}
