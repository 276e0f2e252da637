package crash_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// publishPlain publishes add-on plain, of settings and webhooks, whose contents have the version.
func (p *platform) publishPlain(t *testing.T) {
	t.Helper()
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
}

// RS05: The etcd of a user cluster is full: the object that could not be written is named with what
// etcd says, which is not the object's fault, nothing of a later stage is tried
// (TestFailedCallIsTriedEveryFiveMinutes of the controller has the waits), and with room again the
// upgrade ends. Red when what calls.IsUnexplained finds is a refusal whatever a dry run says.
func TestUpgradeEndsAfterEtcdWasFull(t *testing.T) {
	small, user := fleet.Small(t, "full")
	p := newStocked(t)
	p.userGate, p.user = gate.New(t, user), newClient(t, user)
	p.publishPlain(t)
	s, process := p.installed(t, "plain", "1.0.0")
	var webhooks atomic.Int32
	p.userGate.Watch(s.name, gate.Guard{Before: func(call gate.Call) bool {
		if call.Writes() && strings.Contains(call.Path, "/validatingwebhookconfigurations/") {
			webhooks.Add(1)
		}
		return true
	}})

	expect.NoError(t, small.FillEtcd(t.Context()))
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
	expect.NoError(t, small.FreeEtcd(t.Context()))
	s.edit(t, `{"metadata":{"annotations":{"addons.kubermatic.k8c.io/reconcile-at":"now"}}}`)
	s.settle(t, process, "2.0.0")
	if value := s.value(t); value != "2.0.0" || webhooks.Load() != 1 {
		t.Errorf("with room again the settings are %q, and the later stage had %d writes", value, webhooks.Load())
	}
}

// RS05: The etcd of a seed is full as two upgrades begin: the manager writes nothing to a user cluster that it can't record, and pauses between
// tries; the leader exits when it can't renew its lease, and the next process waits. Once etcd has space, both upgrades finish on their
// own. Red when an intent that could not be saved ends no pass, and when errors have no pause.
func TestASeedGoesOnAfterItsEtcdWasFull(t *testing.T) {
	small, seed := fleet.Small(t, "full-seed")
	p := newPlatformOn(t, seed)
	p.publishPlain(t)
	alone, process := p.installed(t, "plain", "1.0.0")
	led := p.newSubject(t, "led")
	first, second := led.name+"-first", led.name+"-second"
	leader := led.compete(t, first)
	led.install(t, "plain", "1.0.0")
	led.settle(t, leader, "1.0.0")

	filled := make(chan struct{})
	held := map[string]*recorder{alone.name: {filled: filled}, first: {filled: filled}}
	var written atomic.Int32
	for who, one := range held {
		p.seedGate.Watch(who, gate.Guard{Before: one.hold})
	}
	for _, one := range []*subject{alone, led} {
		p.userGate.Watch(one.name, gate.Guard{Before: func(call gate.Call) bool {
			if call.Writes() {
				written.Add(1)
			}
			return true
		}})
		one.want(t, "2.0.0")
	}
	await(t, func() error { return errors.Join(held[alone.name].isReached(), held[first].isReached()) })
	expect.NoError(t, small.FillEtcd(t.Context()))
	close(filled)

	await(t, func() error {
		if leader.Failure() == nil {
			return errors.New("the leader goes on")
		}
		return process.Failure()
	})
	next := led.compete(t, second)
	await(t, func() error {
		if tries := held[alone.name].tries.Load(); tries < 8 {
			return fmt.Errorf("%d tries", tries)
		}
		return errors.Join(process.Failure(), next.Failure())
	})
	if tries := held[alone.name].tries.Load(); tries > 20 { // the last of twenty would come after hours
		t.Errorf("it tried %d times", tries)
	}
	if writes := written.Load(); writes > 0 || alone.value(t) != "1.0.0" || led.value(t) != "1.0.0" {
		t.Errorf("%d writes to the user cluster: the settings are %q and %q", writes, alone.value(t), led.value(t))
	}
	expect.NoError(t, small.FreeEtcd(t.Context()))
	alone.settle(t, process, "2.0.0")
	led.settle(t, next, "2.0.0")
}

// recorder counts the tries of a process to save an intent, and holds them until etcd is full.
type recorder struct {
	filled <-chan struct{}
	tries  atomic.Int32
}

func (r *recorder) hold(call gate.Call) bool {
	if call.Method == http.MethodPost && strings.HasSuffix(call.Path, "/secrets") {
		r.tries.Add(1)
		<-r.filled
	}
	return true
}

func (r *recorder) isReached() error {
	if r.tries.Load() == 0 {
		return errors.New("no intent is saved yet")
	}
	return nil
}
