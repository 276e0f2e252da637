package addoninstallation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
)

// servedKinds is a mapper of which the kinds can be changed; a reset is what has it look again.
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

// hearing is a Connections that hears of failures.
type hearing struct {
	Connections
	reported error
}

func (h *hearing) Get(target.Description, string, func()) (*cluster.Connection, error) {
	return nil, nil
}

func (h *hearing) Report(_ target.Ref, err error) { h.reported = err }

// Red when a missing kind ends the wait, when only the first one is named, when the answer is kept for ever, or when an API
// server that does not answer is taken for one that serves nothing.
func TestRequiredResourceTypes(t *testing.T) {
	rule := schema.GroupVersionKind{Group: "monitoring.example.com", Version: "v1", Kind: "Rule"}
	monitor := rule.GroupVersion().WithKind("Monitor")
	mapper := &servedKinds{}
	mapper.Reset()
	heard := &hearing{}
	r := New(Dependencies{Connections: heard})
	f := passOver(&kubermaticv1.AddonInstallation{}, &memory{})
	f.pass.Connection = &cluster.Connection{Mapper: mapper}
	template := &kubermaticv1.Template{Method: kubermaticv1.MethodHelm, RequiredResourceTypes: []kubermaticv1.ResourceType{
		{Group: rule.Group, Version: rule.Version, Kind: rule.Kind}, {Group: monitor.Group, Version: monitor.Version, Kind: monitor.Kind},
	}}
	f.choice = resolution.Choice{Version: &kubermaticv1.AddonVersion{Template: template}}
	missing := func(kinds string) loop.Outcome {
		return loop.Waiting{
			Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonKindNotServed, Recheck: requiredRecheck,
			Message: "the user cluster does not serve " + kinds + ", which this version needs: install what brings it",
		}
	}
	for _, look := range []struct {
		why    string
		served []schema.GroupVersionKind
		want   loop.Outcome
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
	if outcome, ok := r.required(t.Context(), f).(loop.RetryAt); !ok || heard.reported == nil {
		t.Errorf("no answer: got %#v, reported %v", outcome, heard.reported)
	}
	f.pass.Decision.Do = revision.Keep
	if outcome := r.required(t.Context(), f); outcome != nil {
		t.Errorf("what is installed needs nothing any more, got %v", outcome)
	}
}
