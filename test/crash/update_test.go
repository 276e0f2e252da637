package crash_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
)

// ledger is what a subject's controller writes, on both sides, without the subject's name.
type ledger struct {
	subject *subject
	mutex   sync.Mutex
	writes  []string
	events  int
}

// note has the gates tell the ledger from now on.
func (s *subject) note() *ledger {
	l := &ledger{subject: s}
	for side, at := range map[string]*gate.Gate{"seed": s.seedGate, "user": s.userGate} {
		at.Watch(s.name, gate.Guard{Before: func(call gate.Call) bool {
			l.mutex.Lock()
			defer l.mutex.Unlock()
			switch {
			case call.Writes():
				l.writes = append(l.writes, s.write(side, call))
			case call.Method != http.MethodGet && strings.Contains(call.Path, "/events"):
				l.events++
			}
			return true
		}})
	}
	return l
}

// page gives what was written since the page before, in order of the words, and how many events there were.
func (l *ledger) page() (writes []string, events int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	writes, events = l.writes, l.events
	l.writes, l.events = nil, 0
	slices.Sort(writes)
	return writes, events
}

// fifty is a chart of fifty objects, one of which has value size.
func fifty() map[string]string {
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: fifty\nversion: 1.0.0\n", "values.yaml": "size: one\nname: none\n",
		"templates/sized.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sized}\ndata: {size: '{{ .Values.size }}'}\n",
	}
	kinds := []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {level: info}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: NAME}\nstringData: {word: known}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {selector: {app: a}, ports: [{port: 80}]}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: NAME}\n" +
			"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n",
	}
	for i := range 49 {
		name := fmt.Sprintf("part-%d", i)
		files["templates/"+name+".yaml"] = strings.ReplaceAll(kinds[i%len(kinds)], "NAME", name)
	}
	return files
}

// One changed value of a chart of fifty objects costs six writes in all: the object, its revision's record as intended and as
// applied, Helm's copy of it and of the one before, and the status. From the sixth revision on the oldest record goes with one more.
// Red when an update writes every object, or is announced by its number of objects.
func TestUpdateWritesOneObjectOfFifty(t *testing.T) {
	p := newPlatform(t)
	expect.NoError(t, p.sources.Chart(fifty()))
	p.publish(t, "fifty", p.chart("1.0.0", "fifty"))
	s := p.newSubject(t, "update")
	s.install(t, "fifty", "1.0.0")
	begun, _ := s.serveHere(t)
	await(t, func() error { return s.unsettled(t, "1.0.0") })
	s.round(t, "warm", begun)
	written := s.note()
	for revision := 2; revision <= 7; revision++ {
		s.resize(t, revision)
		s.round(t, fmt.Sprint("revision-", revision), begun)
		writes, events := written.page()
		want := []string{
			"seed PATCH /apis/kubermatic.k8c.io/v1/namespaces/cluster-NAME/addoninstallations/NAME/status",
			"seed POST /api/v1/namespaces/cluster-NAME/secrets",
			fmt.Sprintf("seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-%d", revision),
			"user PATCH /api/v1/namespaces/NAME/configmaps/sized",
			"user POST /api/v1/namespaces/NAME/secrets",
			fmt.Sprintf("user PUT /api/v1/namespaces/NAME/secrets/sh.helm.release.v1.NAME.v%d", revision-1),
		}
		if revision > 5 {
			want = append(want, fmt.Sprintf("seed DELETE /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-%d", revision-5))
			slices.Sort(want)
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("writes of revision %d (-want +got):\n%s", revision, diff)
		}
		t.Logf("revision %d: %d writes and %d events", revision, len(writes), events)
	}
}

// resize changes the value and waits until the user cluster has it and the installation is well.
func (s *subject) resize(t *testing.T, size int) {
	t.Helper()
	expect.Merge(t, s.seed, s.installation(), fmt.Appendf(nil, `{"spec":{"values":{"size":"size-%d"}}}`, size))
	await(t, func() error {
		found := s.installation()
		if err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if found.Status.Release == nil || int(found.Status.Release.Revision) != size {
			return fmt.Errorf("the release is %v", found.Status.Release)
		}
		if found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("generation %d is not observed", found.Generation)
		}
		return ready(found)
	})
}
