package kept_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/kept"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting is a renderer that calls its function, and counts.
type counting struct {
	count  atomic.Int32
	render func(input render.Input) (render.Result, error)
}

func (c *counting) Render(_ context.Context, input render.Input) (render.Result, error) {
	c.count.Add(1)
	return c.render(input)
}

func (c *counting) RenderValues(context.Context, render.ValuesInput) (map[string]any, error) {
	return map[string]any{"count": int64(c.count.Add(1))}, nil
}

// object is one with some text in it.
func object(name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "n"},
		"data": map[string]any{"text": text, "number": int64(7)},
	}}
}

func result(objects ...*unstructured.Unstructured) render.Result {
	return render.Result{Objects: objects}
}

type clock struct{ now time.Time }

// newRenders has a patience of an hour unless a test sets another one: on a busy machine no rendering takes that
// long.
func newRenders(renderer *counting, options kept.Options) *kept.Renders {
	if options.Patience == 0 {
		options.Patience = time.Hour
	}
	options.Methods, options.Values = map[string]render.Renderer{"m": renderer}, renderer
	return kept.New(options)
}

// words are the names of changed objects.
func words(changed []render.ObjectName) (texts []string) {
	for _, one := range changed {
		texts = append(texts, one.String())
	}
	return texts
}

func request(inputs string) render.Request { return render.Request{Method: "m", Inputs: inputs} }

func again(inputs string) render.Request {
	return render.Request{Method: "m", Inputs: inputs, Rerender: true}
}

func TestEqualInputsAreRenderedOnce(t *testing.T) {
	renderer := &counting{render: func(render.Input) (render.Result, error) {
		made := result(object("a", "b"))
		made.Chart = &render.Chart{Name: "c", Manifest: "m", Config: map[string]any{"x": int64(1)}}
		return made, nil
	}}
	renders := newRenders(renderer, kept.Options{})
	first, err := renders.Render(t.Context(), request("1"))
	if err != nil {
		t.Fatal(err)
	}
	first.Objects[0].SetName("changed by its owner")
	again, err := renders.Render(t.Context(), request("1"))
	if err != nil {
		t.Fatal(err)
	}
	want := result(object("a", "b"))
	want.Chart = &render.Chart{Name: "c", Manifest: "m", Config: map[string]any{"x": int64(1)}}
	if diff := cmp.Diff(want, again.Result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := renders.Render(t.Context(), request("2")); err != nil || renderer.count.Load() != 2 {
		t.Errorf("%d renderings for two inputs, %v", renderer.count.Load(), err)
	}
}

func TestAskersOfOneTimeShareARendering(t *testing.T) {
	release := make(chan struct{})
	renderer := &counting{render: func(render.Input) (render.Result, error) { <-release; return result(object("a", "")), nil }}
	renders := newRenders(renderer, kept.Options{Patience: time.Hour})
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if _, err := renders.Render(t.Context(), request("1")); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	asking.Wait()
	if count := renderer.count.Load(); count != 1 {
		t.Errorf("%d renderings, want 1", count)
	}
}

func TestALongRenderingWakes(t *testing.T) {
	release, woken := make(chan struct{}), make(chan struct{})
	renderer := &counting{render: func(render.Input) (render.Result, error) { <-release; return result(object("a", "")), nil }}
	renders := newRenders(renderer, kept.Options{Patience: time.Millisecond})
	asked := request("1")
	asked.Wake = func() { close(woken) }
	if _, err := renders.Render(t.Context(), asked); !errors.Is(err, render.ErrPending) {
		t.Fatalf("got %v, want ErrPending", err)
	}
	close(release)
	<-woken
	if _, err := renders.Render(t.Context(), request("1")); err != nil || renderer.count.Load() != 1 {
		t.Errorf("%d renderings, %v", renderer.count.Load(), err)
	}
}

func TestAnAskerWhoLeavesEndsNothing(t *testing.T) {
	release := make(chan struct{})
	renderer := &counting{render: func(render.Input) (render.Result, error) { <-release; return result(object("a", "")), nil }}
	renders := newRenders(renderer, kept.Options{Patience: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := renders.Render(ctx, request("1")); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want Canceled", err)
	}
	close(release)
	if _, err := renders.Render(t.Context(), request("1")); err != nil || renderer.count.Load() != 1 {
		t.Errorf("%d renderings, %v", renderer.count.Load(), err)
	}
}

func TestFailuresAreKept(t *testing.T) {
	for _, test := range []struct {
		why  string
		err  error
		want []int // renderings after: at once, 4 min, 6 min, 12 min, 17 min
	}{
		{"what comes with the input fails again", &render.TemplateError{File: "a", Problem: "b"}, []int{1, 1, 1, 1, 1}},
		{"what took a renderer is put off, longer each time", &render.ExhaustedError{Addon: "a", Limit: "cpu"}, []int{1, 1, 2, 2, 3}},
		{"a renderer that died", &render.DiedError{Addon: "a"}, []int{1, 1, 2, 2, 3}},
		{"the machine's trouble is not kept", errors.New("no process"), []int{2, 3, 4, 5, 6}},
	} {
		t.Run(test.why, func(t *testing.T) {
			now := &clock{now: time.Unix(0, 0)}
			renderer := &counting{render: func(render.Input) (render.Result, error) { return render.Result{}, test.err }}
			renders := newRenders(renderer, kept.Options{Now: func() time.Time { return now.now }})
			ask := func() error { _, err := renders.Render(t.Context(), request("1")); return err }
			if err := ask(); !errors.Is(err, test.err) {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			for i, minutes := range []int{0, 4, 6, 12, 17} {
				now.now = time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute)
				err := ask()
				if int(renderer.count.Load()) != test.want[i] {
					t.Errorf("after %d minutes: %d renderings, want %d", minutes, renderer.count.Load(), test.want[i])
				}
				var putOff *render.PutOffError
				if later := errors.As(err, &putOff); later != render.Costly(test.err) || later && !putOff.Until.After(now.now) {
					t.Errorf("after %d minutes: %v does not say when it is tried again", minutes, err)
				}
			}
		})
	}
}

func TestAskingAgainIgnoresAFailure(t *testing.T) {
	renderer := &counting{render: func(render.Input) (render.Result, error) { return render.Result{}, &render.DiedError{Addon: "a"} }}
	renders := newRenders(renderer, kept.Options{})
	_, _ = renders.Render(t.Context(), request("1"))
	_, _ = renders.Render(t.Context(), again("1"))
	if count := renderer.count.Load(); count != 2 {
		t.Errorf("%d renderings, want 2", count)
	}
}

// TestNonDeterministic: objects that differ for equal inputs are named, and the first ones stay.
func TestNonDeterministic(t *testing.T) {
	turn := 0
	renderer := &counting{}
	renderer.render = func(render.Input) (render.Result, error) {
		turn++
		return result(object("same", "x"), object("certificate", fmt.Sprint(turn)), object(fmt.Sprint("name-", turn), "")), nil
	}
	renders := newRenders(renderer, kept.Options{})
	first, err := renders.Render(t.Context(), request("1"))
	if err != nil || len(first.Changed) > 0 {
		t.Fatalf("%v changed, %v", first.Changed, err)
	}
	second, err := renders.Render(t.Context(), again("1"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap n/certificate", "ConfigMap n/name-1", "ConfigMap n/name-2"}
	if diff := cmp.Diff(want, words(second.Changed)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first.Result, second.Result); diff != "" {
		t.Errorf("the objects of the first rendering are lost:\n%s", diff)
	}
}

// TestSpace: the least recently used objects are dropped; a different result is still noticed.
func TestSpace(t *testing.T) {
	turn := 0
	renderer := &counting{}
	renderer.render = func(render.Input) (render.Result, error) {
		turn++
		return result(object("a", fmt.Sprint(turn)), object("large", strings.Repeat("x", 20_000))), nil
	}
	renders := newRenders(renderer, kept.Options{Bytes: 50_000})
	for _, inputs := range []string{"1", "2", "1", "3", "1"} {
		if _, err := renders.Render(t.Context(), request(inputs)); err != nil {
			t.Fatal(err)
		}
	}
	if turn != 3 {
		t.Errorf("%d renderings, want one of each", turn)
	}
	again, err := renders.Render(t.Context(), request("2"))
	if err != nil || turn != 4 {
		t.Fatalf("%d renderings, %v: the oldest should have made room", turn, err)
	}
	if diff := cmp.Diff([]string{"ConfigMap n/a"}, words(again.Changed)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

// TestSparingRenderingsDisplaceNoOthers turns red when renderings for previews use the space of others (limitSpare), or when one that was
// asked for since by others is dropped as spare.
func TestSparingRenderingsDisplaceNoOthers(t *testing.T) {
	renderer := &counting{render: func(render.Input) (render.Result, error) {
		return result(object("large", strings.Repeat("x", 20_000))), nil
	}}
	renders := newRenders(renderer, kept.Options{Bytes: 400_000})
	ask := func(ctx context.Context, inputs string) {
		t.Helper()
		if _, err := renders.Render(ctx, request(inputs)); err != nil {
			t.Fatal(err)
		}
	}
	sparing := render.Sparing(t.Context())
	ask(t.Context(), "other")
	ask(sparing, "installed")
	ask(t.Context(), "installed")
	for i := range 100 {
		ask(sparing, fmt.Sprint("spare ", i))
	}
	for _, inputs := range []string{"other", "installed", "spare 99"} {
		ask(t.Context(), inputs)
	}
	if count := renderer.count.Load(); count != 102 {
		t.Errorf("%d renderings, want one of each", count)
	}
}

func TestMoreThanThereIsSpaceFor(t *testing.T) {
	renderer := &counting{render: func(render.Input) (render.Result, error) {
		return result(object("large", strings.Repeat("x", 20_000))), nil
	}}
	renders := newRenders(renderer, kept.Options{Bytes: 100})
	for range 2 {
		if _, err := renders.Render(t.Context(), request("1")); err != nil {
			t.Fatal(err)
		}
	}
	if count := renderer.count.Load(); count != 2 {
		t.Errorf("%d renderings, want 2: nothing fits", count)
	}
}

func TestValuesAreKept(t *testing.T) {
	renders := newRenders(&counting{}, kept.Options{})
	asked := render.ValuesInput{Addon: "a", Template: "t"}
	for _, want := range []int64{1, 1} {
		if values, err := renders.RenderValues(t.Context(), asked, nil); err != nil || values["count"] != want {
			t.Errorf("got %v, %v, want %d", values, err, want)
		}
	}
	asked.Data.Cluster.Name = "another"
	if values, err := renders.RenderValues(t.Context(), asked, nil); err != nil || values["count"] != int64(2) {
		t.Errorf("got %v, %v for other data", values, err)
	}
	for i, seen := range []string{"one", "one", "two"} { // fails when the template's view of Cluster API is no part of the key
		asked.CAPI = map[string]any{"Cluster": map[string]any{"spec": seen}}
		want := []int64{3, 3, 4}[i]
		if values, err := renders.RenderValues(t.Context(), asked, nil); err != nil || values["count"] != want {
			t.Errorf("got %v, %v, want %d of %s", values, err, want, seen)
		}
	}
}

// TestHooksAreKept fails when hooks are not cached, or when a hook that differs is not reported: its object would
// change unnoticed.
func TestHooksAreKept(t *testing.T) {
	text := "one"
	renderer := &counting{render: func(render.Input) (render.Result, error) {
		made := result(object("a", "same"))
		made.Chart = &render.Chart{Name: "c", Hooks: []render.Hook{{
			Path: "c/h.yaml", Events: []string{"pre-install"}, Weight: -1, DeletePolicies: []string{"hook-failed"}, Object: object("h", text),
		}}}
		return made, nil
	}}
	renders := newRenders(renderer, kept.Options{})
	first, err := renders.Render(t.Context(), request("1"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := renderer.render(render.Input{})
	if diff := cmp.Diff(want, first.Result); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	text = "two"
	second, err := renders.Render(t.Context(), again("1"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, second.Result); diff != "" {
		t.Errorf("what was rendered first stays (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"hook ConfigMap n/h of c/h.yaml"}, words(second.Changed)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}
