package addoninstallation_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/rendering"
)

// bombs are charts of one template that use memory in one piece and in many, time, endless calls, and much output.
var bombs = map[string]string{
	"ac01-memory": `{{ $x := repeat 1000000000 "a" }}`,
	"ac01-pieces": `{{ $x := list 1 2 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}`,
	"ac01-time":   `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`,
	"ac01-output": `{{ range until 100 }}{{ repeat 10000000 "a" }}{{ end }}`,
	"ac02-calls":  `{{ $_ := set .Values "self" "{{ tpl .Values.self . }}" }}{{ tpl .Values.self . }}`,
}

// newBombed is a world that renders in child processes, with two other clusters, the neighbours of the cluster with the
// bombs.
func newBombed(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	pool := rendering.Pool(t, child.Options{CPU: 2 * time.Second})
	w.renderers = map[string]render.Renderer{
		rendering.GoTemplate: pool.Renderer(rendering.GoTemplate, child.AllFiles), rendering.Helm: pool.Renderer(rendering.Helm, child.AllFiles),
	}
	w.concurrency = 10 // the manager's default
	w.addNeighbour()
	w.addNeighbour()
	files := map[string]string{}
	for name, template := range bombs {
		files[name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.2.3\n"
		files[name+"/templates/a.yaml"] = template
	}
	if _, err := w.sources.Commit("bombs", files); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.publish("harmless", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	for name := range bombs {
		made := w.version(offered{version: "1.0.0"})
		made.Template.Method = kubermaticv1.MethodHelm
		made.Source.Git.Remote, made.Source.Git.Path = kubermaticv1.GitRemote(w.sources.GitURL+"/bombs.git"), name
		w.create(given.Merged(w.catalogue, kubermaticv1.CatalogueCustom, given.Addon(name, made)))
	}
	return w
}

// explode waits until the bomb has failed, and changes its values so that it is rendered once more.
func (w *world) explode(ctx context.Context, bomb *kubermaticv1.AddonInstallation, turn int) error {
	before := bomb.DeepCopy()
	bomb.Spec.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"turn":%d}`, turn)}
	if err := w.seed.Patch(ctx, bomb, client.MergeFrom(before)); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := w.seed.Get(ctx, client.ObjectKeyFromObject(bomb), bomb); err != nil {
			return false, err
		}
		if expect.Condition(bomb, kubermaticv1.ConditionReady, "True", "") == nil {
			return false, fmt.Errorf("bomb %s rendered", bomb.Name)
		}
		rendered := meta.FindStatusCondition(bomb.Status.Conditions, kubermaticv1.ConditionRendered)
		return rendered != nil && rendered.ObservedGeneration == bomb.Generation && rendered.Reason == kubermaticv1.ReasonLimitExceeded, nil
	})
}

// suffered are the measured effects on neighbours' installations.
type suffered struct {
	// took is the time from creation to Ready.
	took []time.Duration
	// peak is the highest anonymous memory of the controller's process, here the test, in bytes.
	peak int64
}

func (s *suffered) add(more suffered) {
	s.took, s.peak = append(s.took, more.took...), max(s.peak, more.peak)
}

func (s *suffered) percentile(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[(len(sorted)-1)*percent/100]
}

var neighbourly int

// installNeighbours creates a number of installations, one after the other, of the neighbours in turns. None may fail.
func (w *world) installNeighbours(count int) (seen suffered) {
	w.t.Helper()
	for range count {
		neighbourly++
		name := fmt.Sprintf("harmless-%d", neighbourly)
		object := given.Installation(w.neighbours[neighbourly%len(w.neighbours)], name, "harmless", name, given.NewNamespace)
		begun := time.Now()
		w.create(object)
		expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
			rendered := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionRendered)
			if rendered != nil && rendered.Status == metav1.ConditionFalse && rendered.Reason != kubermaticv1.ReasonRendering {
				w.t.Fatalf("%s fails: %+v", name, rendered)
			}
			return expect.Condition(object, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
		})
		seen.add(suffered{[]time.Duration{time.Since(begun)}, ownMemory(w.t)})
	}
	return seen
}

// ownMemory is this process's memory without files.
func ownMemory(t testing.TB) int64 {
	t.Helper()
	content, err := os.ReadFile("/proc/self/statm")
	expect.NoError(t, err)
	fields := strings.Fields(string(content))
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	file, _ := strconv.ParseInt(fields[2], 10, 64)
	return (resident - file) * int64(os.Getpagesize())
}

// besideBombs installs neighbours' add-ons while bombs are rendered: each of the lists in its own goroutine, one after
// the other.
func (w *world) besideBombs(count int, lists ...[]*kubermaticv1.AddonInstallation) (seen suffered, exploded int) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	var bombing sync.WaitGroup
	var mutex sync.Mutex
	for _, list := range lists {
		bombing.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				neverTwice := int(time.Now().UnixNano())
				err := w.explode(ctx, list[turn%len(list)], neverTwice)
				if err != nil && ctx.Err() == nil {
					w.t.Error(err)
					return
				}
				mutex.Lock()
				if err == nil {
					exploded++
				}
				mutex.Unlock()
			}
		})
	}
	seen = w.installNeighbours(count)
	stop()
	bombing.Wait()
	return seen, exploded
}

// besideBusy installs neighbours' add-ons while a number of harmless processes use a processor each.
func (w *world) besideBusy(count, processes int) suffered {
	w.t.Helper()
	for i := range processes {
		busy, err := fleet.Shared().Run(fleet.Command{
			Name: fmt.Sprintf("busy-%d", i), Path: os.Args[0], Environment: []string{spinVariable + "=1", "GOMAXPROCS=1"},
		})
		expect.NoError(w.t, err)
		defer func() {
			busy.Kill()
			<-busy.Done()
		}()
	}
	return w.installNeighbours(count)
}

// AC01, AC02: While endless templates are rendered for one cluster, those of others become Ready as fast as before.
// While all bombs are rendered repeatedly in one cluster, two at a time, installations of others become Ready in about
// the time that they need with as many harmless busy processes, and the controller's own memory does not grow. It fails
// if a tenant may use all renderers, or if charts are rendered in process.
func TestBombsLeaveOtherClustersAlone(t *testing.T) {
	// Not parallel: it measures the memory of the process, and times.
	w := newBombed(t)
	w.installNeighbours(2) // warming up
	busy := w.besideBusy(4, 2)
	var lists [][]*kubermaticv1.AddonInstallation
	for _, name := range slices.Sorted(maps.Keys(bombs)) {
		lists = append(lists, []*kubermaticv1.AddonInstallation{w.install(name, "")})
	}
	bombed, exploded := w.besideBombs(12, lists...)
	busy.add(w.besideBusy(4, 2))
	t.Logf("beside %d bombs: p50 %s, worst %s, memory %d MiB; beside busy processes: p50 %s, worst %s, memory %d MiB", exploded,
		bombed.percentile(50), bombed.percentile(100), bombed.peak>>20, busy.percentile(50), busy.percentile(100), busy.peak>>20)
	if ratio := bombed.percentile(50).Seconds() / busy.percentile(50).Seconds(); ratio > 15 {
		t.Errorf("bombs make installations of other clusters take %.1f times as long", ratio)
	}
	// One bomb in process takes a gigabyte in one piece; garbage that is not collected yet is far less.
	if space := int64(384 << 20); bombed.peak > busy.peak+space {
		t.Errorf("bombs take %d MiB of the controller's memory, %d MiB without", bombed.peak>>20, busy.peak>>20)
	}
	for _, list := range lists {
		bomb := list[0]
		expect.Eventually(t, 3*expect.Patience, func() error {
			if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(bomb), bomb); err != nil {
				return err
			}
			return expect.Condition(bomb, kubermaticv1.ConditionRendered, "False", kubermaticv1.ReasonLimitExceeded)
		})
		if said := meta.FindStatusCondition(bomb.Status.Conditions, kubermaticv1.ConditionRendered); len(said.Message) > 1024 {
			t.Errorf("%s says %d bytes", bomb.Name, len(said.Message))
		}
	}
}

// BenchmarkBombs prints the effects of a bomb on installations and their limits: the p99 of the time to Ready in other
// clusters is at most 1.6 times that with a harmless busy process, none fails, and the process's memory stays within 10
// %.
func BenchmarkBombs(b *testing.B) {
	w := newBombed(b)
	var list []*kubermaticv1.AddonInstallation
	for _, name := range slices.Sorted(maps.Keys(bombs)) {
		list = append(list, w.install(name, ""))
	}
	w.besideBombs(10, list) // warming up
	for b.Loop() {
		var bombed, busy suffered
		exploded := 0
		for range 4 { // in turns, so that other load of the machine affects both
			busy.add(w.besideBusy(25, 1))
			seen, count := w.besideBombs(25, list)
			bombed.add(seen)
			exploded += count
		}
		p99, against := bombed.percentile(99), busy.percentile(99)
		memory := float64(bombed.peak) / float64(busy.peak)
		b.ReportMetric(p99.Seconds()*1000, "p99-bombs-ms")
		b.ReportMetric(against.Seconds()*1000, "p99-busy-ms")
		b.ReportMetric(p99.Seconds()/against.Seconds(), "p99-ratio")
		b.ReportMetric(memory, "memory-ratio")
		b.Logf("%d installations beside %d bombs: p50 %s, p99 %s; beside a busy process: p50 %s, p99 %s: p99 %.2f times (1.6 at most); "+
			"the process's memory %.2f times (1.1 at most: %d MiB and %d MiB)", len(bombed.took), exploded,
			bombed.percentile(50), p99, busy.percentile(50), against, p99.Seconds()/against.Seconds(),
			memory, bombed.peak>>20, busy.peak>>20)
	}
}
