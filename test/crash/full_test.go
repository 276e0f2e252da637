package crash_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// smallQuota is what the etcd of a user cluster holds here: enough for an API server, and soon full.
const smallQuota = 32 << 20

// database is an etcd, called by its JSON gateway.
type database struct{ url string }

// call gives the answer of a method, or what etcd says against it.
func (s database) call(t *testing.T, method string, message map[string]any) (map[string]any, error) {
	t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v3/"+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %v", method, answer["message"])
	}
	return answer, nil
}

func (s database) must(t *testing.T, method string, message map[string]any) map[string]any {
	t.Helper()
	answer, err := s.call(t, method, message)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func keyOf(name string) string { return base64.StdEncoding.EncodeToString([]byte(name)) }

// fill writes until nothing more is taken.
func (s database) fill(t *testing.T) {
	t.Helper()
	value := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 1<<20))
	for i := range smallQuota >> 20 {
		if _, err := s.call(t, "kv/put", map[string]any{"key": keyOf(fmt.Sprint("ballast-", i)), "value": value}); err != nil {
			return
		}
	}
	t.Fatal("etcd took more than its quota")
}

// free makes room again, and tells etcd that there is.
func (s database) free(t *testing.T) {
	t.Helper()
	answer := s.must(t, "kv/deleterange", map[string]any{"key": keyOf("ballast-"), "range_end": keyOf("ballast.")})
	header, _ := answer["header"].(map[string]any)
	s.must(t, "kv/compaction", map[string]any{"revision": header["revision"], "physical": true})
	s.must(t, "maintenance/defragment", map[string]any{})
	s.must(t, "maintenance/alarm", map[string]any{"action": "DEACTIVATE", "memberID": header["member_id"], "alarm": "NOSPACE"})
}

// RS05: The etcd of a user cluster is full: the object that could not be written is named with what
// etcd says, which is not the object's fault, nothing of a later stage is tried
// (TestFailedCallIsTriedEveryFiveMinutes of the controller has the waits), and with room again the
// upgrade ends. Red when what calls.IsUnexplained finds is a refusal whatever a dry run says.
func TestUpgradeEndsAfterEtcdWasFull(t *testing.T) {
	small, err := fleet.Start(t.Context(), fleet.Options{Clusters: []fleet.ClusterOptions{{Name: "full"}}, EtcdQuota: smallQuota})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Stop)
	p := newStocked(t)
	p.userGate, p.user = gate.New(t, small.Cluster("full")), newClient(t, small.Cluster("full"))
	files := map[string]string{}
	for _, version := range []string{"1.0.0", "2.0.0"} {
		for name, content := range map[string]string{"settings.yaml": probeSettings, "webhooks.yaml": probeWebhooks} {
			files[version+"/"+name] = strings.ReplaceAll(content, "VALUE", version)
		}
	}
	if _, err := p.sources.Commit("plain", files); err != nil {
		t.Fatal(err)
	}
	p.publish(t, "plain", p.templates("1.0.0", "plain", "1.0.0"), p.templates("2.0.0", "plain", "2.0.0"))
	s, process := p.installed(t, "plain", "1.0.0")
	var webhooks atomic.Int32
	p.userGate.Watch(s.name, gate.Guard{Before: func(call gate.Call) bool {
		if call.Writes() && strings.Contains(call.Path, "/validatingwebhookconfigurations/") {
			webhooks.Add(1)
		}
		return true
	}})

	etcd := database{small.EtcdURL()}
	etcd.fill(t)
	s.want(t, "2.0.0")
	message := s.expectReady(t, "False", kubermaticv1.ReasonFailed)
	if !strings.Contains(message, "ConfigMap "+s.name+"/settings") || !strings.Contains(message, "database space exceeded") {
		t.Errorf("the condition says %q", message)
	}
	if webhooks.Load() > 0 {
		t.Errorf("%d writes of a later stage", webhooks.Load())
	}
	if value := s.value(t); value != "1.0.0" {
		t.Errorf("the settings are %q", value)
	}
	etcd.free(t)
	s.edit(t, `{"metadata":{"annotations":{"addons.kubermatic.k8c.io/reconcile-at":"now"}}}`)
	s.settle(t, process, "2.0.0")
	if value := s.value(t); value != "2.0.0" || webhooks.Load() != 1 {
		t.Errorf("with room again the settings are %q, and the later stage had %d writes", value, webhooks.Load())
	}
}
