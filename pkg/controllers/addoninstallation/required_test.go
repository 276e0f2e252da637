package addoninstallation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// servedKinds is a mapper whose kinds can change; a reset makes it read them again.
type servedKinds struct {
	*meta.DefaultRESTMapper
	next   []schema.GroupVersionKind
	resets int
	err    error
}

func (s *servedKinds) Reset() {
	s.resets++
	s.DefaultRESTMapper = meta.NewDefaultRESTMapper(nil)
	for _, kind := range s.next {
		s.Add(kind, meta.RESTScopeNamespace)
	}
}

func (s *servedKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.DefaultRESTMapper.RESTMapping(kind, versions...)
}

// hearing is a Connections that records failures.
type hearing struct {
	Connections
	reported error
}

func (h *hearing) Get(target.Description, string, func()) (*cluster.Connection, error) {
	return nil, nil
}

func (h *hearing) Report(_ target.Ref, err error) { h.reported = err }

// TestRequiredResourceTypes fails if a missing kind ends the wait, if only the first one is named, if the answer is
// kept forever, or if an API server that does not answer counts as one that serves nothing.
func TestRequiredResourceTypes(t *testing.T) {
	rule := schema.GroupVersionKind{Group: "monitoring.example.com", Version: "v1", Kind: "Rule"}
	monitor := rule.GroupVersion().WithKind("Monitor")
	mapper := &servedKinds{}
	mapper.Reset()
	heard := &hearing{}
	r := New(Dependencies{Connections: heard})
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	f.run.Connection = &cluster.Connection{Mapper: mapper}
	template := &kubermaticv1.Template{Method: kubermaticv1.MethodHelm, RequiredResourceTypes: []kubermaticv1.ResourceType{
		{Group: rule.Group, Version: rule.Version, Kind: rule.Kind}, {Group: monitor.Group, Version: monitor.Version, Kind: monitor.Kind},
	}}
	f.choice = resolution.Choice{Version: &kubermaticv1.AddonVersion{Template: template}}
	missing := func(kinds string) *loop.Outcome {
		return &loop.Outcome{
			Kind: loop.Waiting, Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonKindNotServed, Recheck: requiredRecheck,
			Message: "the user cluster does not serve " + kinds + ", which this version needs: install its CRD or API server",
		}
	}
	for _, look := range []struct {
		why    string
		served []schema.GroupVersionKind
		want   *loop.Outcome
	}{
		{"nothing is served", nil, missing("monitoring.example.com/v1 Rule, monitoring.example.com/v1 Monitor")},
		{"another version comes", []schema.GroupVersionKind{rule.GroupKind().WithVersion("v2"), monitor}, missing("monitoring.example.com/v1 Rule")},
		{"all are served", []schema.GroupVersionKind{rule, monitor}, nil},
	} {
		mapper.next = look.served
		mapper.Reset()
		before := mapper.resets
		if diff := cmp.Diff(look.want, r.required(t.Context(), f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", look.why, diff)
		}
		if asked := mapper.resets > before; asked != (look.want != nil) {
			t.Errorf("%s: will the next look ask again? %v", look.why, asked)
		}
	}
	mapper.err = errors.New("no answer")
	if outcome := r.required(t.Context(), f); !outcome.Is(loop.RetryAt) || heard.reported == nil {
		t.Errorf("no answer: got %#v, reported %v", outcome, heard.reported)
	}
	f.run.Decision.Do = revision.Keep
	if outcome := r.required(t.Context(), f); outcome != nil {
		t.Errorf("what is installed needs nothing any more, got %v", outcome)
	}
}
