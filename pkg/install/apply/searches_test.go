package apply_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// many repeats a text, with its number for #.
func many(count int, text string) string {
	list := make([]string, count)
	for i := range list {
		list[i] = strings.ReplaceAll(text, "#", strconv.Itoa(i))
	}
	return strings.Join(list, ", ")
}

func variables(source string) string {
	return container(`env: [` + many(25, `{name: E#, valueFrom: {`+source+`}}`) + `]`)
}

func volumes(count int, source string) string {
	return workload("Deployment", "replicas: 0, ", main+`, volumes: [`+many(count, `{name: d#`+source+`}`)+`]`)
}

// probes are three of each of seven containers.
func probes(handler string) string {
	return workload("Deployment", "replicas: 0, ", `containers: [`+many(7, `{name: c#, image: "registry.example.com/a:1", `+
		`livenessProbe: {`+handler+`}, readinessProbe: {`+handler+`}, startupProbe: {`+handler+`}}`)+`]`)
}

// copies are the same object under a number of names.
func copies(count int, manifest string) string {
	list := make([]string, count)
	for i := range list {
		list[i] = strings.Replace(manifest, "metadata: {name: u}", fmt.Sprintf("metadata: {name: u%d}", i), 1)
	}
	return lab.Manifests(list...)
}

// TestManyFieldsThatAreRefusedTogetherGo fails if a search has 40 dry runs, which are enough for 20 fields, and if
// fields of one name are not tried together (probes: 130 patches and more).
func TestManyFieldsThatAreRefusedTogetherGo(t *testing.T) {
	byHand := func(list string) func(*lab.Lab, string) {
		return edit(lab.Deployments, "kubectl-edit", string(types.StrategicMergePatchType), `{"spec":{"template":{"spec":{"containers":[`+list+`]}}}}`)
	}
	secret, get, socket := variables("secretKeyRef: {name: x, key: k}"), probes("httpGet: {path: /, port: 80}"), probes("tcpSocket: {port: 80}")
	const byExec = `{"httpGet":null,"exec":{"command":["a"]}}`
	valuesByHand := byHand(`{"name":"main","env":[` + many(25, `{"name":"E#","value":"by hand","valueFrom":null}`) + `]}`)
	probesByHand := byHand(many(7, `{"name":"c#","livenessProbe":`+byExec+`,"readinessProbe":`+byExec+`,"startupProbe":`+byExec+`}`))
	for _, test := range []struct {
		union
		edit  func(*lab.Lab, string)
		taken string
	}{
		{union{"25 volumes", volumes(25, ""), volumes(25, ", configMap: {name: x}")}, nil, ""},
		{union{"25 variables", variables("fieldRef: {fieldPath: metadata.namespace}"), secret}, nil, ""},
		{union{"25 variables that an editor wrote", secret, secret}, valuesByHand, "env[name="},
		{union{"21 probes", get, socket}, nil, ""},
		{union{"21 probes that an editor wrote", get, socket}, probesByHand, "Probe.exec"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := lab.New(t)
			l.Namespace()
			inventory := l.Install(l.Prepare(test.before), nil)
			if test.edit != nil {
				test.edit(l, "u")
			}
			after := l.Prepare(test.after)
			var progress apply.Progress
			tries := l.Calls.During("PATCH", func() {
				progress = l.Rollout(after, apply.Planned(after, inventory.Unconfirmed()), apply.RolloutOptions{})
			})
			t.Logf("%d patches, taken %v", len(tries), progress.Taken)
			if !progress.Complete || len(tries) > 80 {
				t.Fatalf("%d patches, refused %v", len(tries), progress.Refused)
			}
			if said := fmt.Sprint(progress.Taken); (test.taken == "") != (len(progress.Taken) == 0) || !strings.Contains(said, test.taken) {
				t.Errorf("taken %s, want %s", said, test.taken)
			}
			content, managed := readUnion(l, after)
			fresh := lab.New(t)
			fresh.Namespace()
			again := fresh.Prepare(test.after)
			fresh.Install(again, nil)
			wantContent, wantManaged := readUnion(fresh, again)
			if diff := cmp.Diff(wantContent, content); diff != "" {
				t.Errorf("content (-fresh +got):\n%s", diff)
			}
			if diff := cmp.Diff(entryOf(wantManaged), entryOf(managed)); diff != "" {
				t.Errorf("our fields (-fresh +got):\n%s", diff)
			}
			if drift := l.Drift(progress.Inventory); len(drift) > 0 {
				t.Errorf("drift %v", drift)
			}
		})
	}
}

// TestObjectsWaitForTheirTurnToBeSearched fails if an object is refused because of the number of others (limit by
// objects), if one that uses most of a reconciliation is given up because of others' earlier use, and if a
// reconciliation makes as many dry runs as there are objects.
func TestObjectsWaitForTheirTurnToBeSearched(t *testing.T) {
	for _, test := range []struct {
		union
		count, rounds int
	}{
		{union{"12 Deployments to Recreate", strategy("Deployment", "replicas: 0, "), strategy("Deployment", "replicas: 0, strategy: {type: Recreate}, ")}, 12, 1},
		{union{"8 times 40 volumes", volumes(40, ""), volumes(40, ", configMap: {name: x}")}, 8, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := lab.New(t)
			l.Namespace()
			inventory := l.Install(l.Prepare(copies(test.count, test.before)), nil)
			after := l.Prepare(copies(test.count, test.after))
			rollout := apply.NewRollout(l.Owner, after, apply.Planned(after, inventory), apply.RolloutOptions{})
			var progress apply.Progress
			for round := 1; !progress.Complete; round++ {
				left := rollout.Remaining()
				tries := l.Calls.During("PATCH", func() { progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t) })
				t.Logf("pass %d: %d patches, %d of %d objects left", round, len(tries), rollout.Remaining(), left)
				if len(progress.Refused) > 0 || len(tries) > 300+4*test.count || rollout.Remaining() == left {
					t.Fatalf("pass %d: %d patches, refused %v, waiting %v", round, len(tries), progress.Refused, progress.Waiting)
				}
				for _, note := range progress.Waiting {
					if note.Reason != "Progressing" {
						t.Errorf("it waits for %+v", note)
					}
				}
				if isEnd := progress.Complete; isEnd && round < test.rounds {
					t.Errorf("it took %d passes, want %d at least", round, test.rounds)
				}
			}
			if drift := l.Drift(progress.Inventory); len(drift) > 0 {
				t.Errorf("drift %v", drift)
			}
		})
	}
}
