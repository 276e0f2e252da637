package traces

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/collector"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/long"
)

// A pass of an installation is told step by step and call by call, its fetch by itself, and nothing that people wrote is told.
func TestAnInstallationIsTracedStepByStep(t *testing.T) {
	long.Skip(t, "endtoend", "tests of single packages have what a trace says")
	w, to := newWorld(t), collector.Start(t)
	w.offer(t)
	seed := w.start(t, "seed-controller-manager", "--tracing-endpoint", to.URL, "--tracing-sampling-ratio", "1", "--query-bind-address", "0")
	request := installation()
	expect.Create(t, w.client, request)
	expect.HasCondition(t, w.client, request, expect.Is(kubermaticv1.ConditionReady, "True", ""))
	_ = seed.Signal(syscall.SIGTERM)
	select {
	case <-seed.Done():
	case <-time.After(patience):
		t.Errorf("the manager has not ended %s after SIGTERM", patience)
	}

	spans := to.Spans(t)
	story := golden.NewStory("An installation, as its traces tell it", w.host(t), "GIT")
	story.Add("the pass that installs", collector.Tree(spans, traceWith(t, spans, "render go-template"))...)
	story.Add("the fetch of what it installs", collector.Tree(spans, traceWith(t, spans, "fetch git"))...)
	story.Match(t, "testdata/installation.txt")

	resource := []string{"service.name=trellis-seed", "service.version="}
	for _, prefix := range resource {
		if !slices.ContainsFunc(spans[0].Resource, func(one string) bool { return strings.HasPrefix(one, prefix) }) {
			t.Errorf("resource %q has no %s", spans[0].Resource, prefix)
		}
	}
	expectNothing(t, to, planted, w.both.Config.BearerToken, "Authorization", "kubeconfig")
}

// The master's manager is traced, too.
func TestTheMasterIsTraced(t *testing.T) {
	long.Skip(t, "endtoend", "tests of single packages have what a trace says")
	w, to := newWorld(t), collector.Start(t)
	source := &kubermaticv1.Source{Git: &kubermaticv1.GitSource{Remote: "https://git.example.com/" + planted}}
	expect.Create(t, w.client, given.Catalogue(platformNamespace, "ours", given.Addon("one", given.Version("1.0.0", source))))
	w.start(t, "master-controller-manager", "--tracing-endpoint", to.URL, "--tracing-sampling-ratio", "1")
	spans := to.Await(t, patience, func(spans []collector.Span) bool {
		return slices.ContainsFunc(spans, func(span collector.Span) bool { return span.Name == "pass distributor" })
	})
	if !slices.Contains(spans[0].Resource, "service.name=trellis-master") {
		t.Errorf("resource is %q", spans[0].Resource)
	}
	expectNothing(t, to, planted)
}

// traceWith is the trace of the first span of a name.
func traceWith(t *testing.T, spans []collector.Span, name string) string {
	t.Helper()
	for _, span := range spans {
		if span.Name == name {
			return span.Trace
		}
	}
	t.Fatalf("no span %q among %d", name, len(spans))
	return ""
}

// expectNothing fails where a text is in the bytes that the collector was sent.
func expectNothing(t *testing.T, to *collector.Collector, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, message := range to.Messages() {
			if at := bytes.Index(message, []byte(text)); text != "" && at >= 0 {
				t.Errorf("the collector was sent %q: %q", text, message[max(0, at-100):min(len(message), at+100)])
			}
		}
	}
}
