package installer

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// recordsByName has the record of each installation, or an error for an unreadable one.
type recordsByName struct {
	RecordReader
	records map[string]*revision.Record
	damaged map[string]bool
}

// Load returns the record of one.
func (r recordsByName) Load(_ context.Context, _ string, owner ownership.Owner) (*revision.Record, error) {
	if r.damaged[owner.Installation] {
		return nil, &revision.DamagedError{}
	}
	return r.records[owner.Installation], nil
}

// TestNamespaceStaysForThoseThatMayHaveObjects fails if a namespace is removed although an installation may have
// objects in it: if a status without applied objects has priority over a recorded intent (usersOf leaves out idle
// ones), or an unreadable record counts as none; and if it stays for one without a record.
func TestNamespaceStaysForThoseThatMayHaveObjects(t *testing.T) {
	reads := recordsByName{
		records: map[string]*revision.Record{"begun": {State: revision.StateIntent}}, damaged: map[string]bool{"damaged": true},
	}
	p := (&Installer{Reads: reads}).NewRun(&State{}, "cluster-a", Asked{}, Seed{Others: func(context.Context) ([]Other, error) {
		return []Other{
			{Name: "applied", TargetNamespace: "shop"},
			{Name: "begun", TargetNamespace: "shop", Idle: true},
			{Name: "damaged", TargetNamespace: "shop", Idle: true},
			{Name: "elsewhere", TargetNamespace: "other"},
			{Name: "never", TargetNamespace: "shop", Idle: true},
		}, nil
	}})
	users, err := p.usersOf(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	if diff := cmp.Diff([]string{"applied", "begun", "damaged"}, names); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
}

// TestFirstRolloutWaitsForRemovalsOfItsNamespace fails if a first rollout writes while a reconciliation that may not
// know of it removes an installation with the same namespace (Advance without awaitRemovals), and if it waits for other
// clusters, for other namespaces, or with a record of its own.
func TestFirstRolloutWaitsForRemovalsOfItsNamespace(t *testing.T) {
	amber, basil := target.Ref{Namespace: "clusters", Name: "amber", UID: "a"}, target.Ref{Namespace: "clusters", Name: "basil", UID: "b"}
	i := &Installer{}
	end := i.handovers.begin(amber)
	waits := func(of func(*Run, context.Context) *loop.Outcome, cluster target.Ref, namespace, from string) bool {
		state := &State{Loaded: true, Record: &revision.Record{State: revision.StateIntent, From: from}}
		p := i.NewRun(state, cluster.Namespace, Asked{TargetNamespace: namespace}, Seed{Others: func(context.Context) ([]Other, error) {
			return []Other{{Name: "old", TargetNamespace: "shop", Leaving: true}, {Name: "stays", TargetNamespace: "mail"}}, nil
		}})
		p.Cluster = cluster
		stop := of(&p, t.Context())
		return stop != nil && stop.Reason == v1.ReasonWaitingForStage && stop.Recheck > 0
	}
	if !waits((*Run).Advance, amber, "shop", "") {
		t.Error("it does not wait for the removal under way")
	}
	for why, waiting := range map[string]bool{
		"another cluster":   waits((*Run).awaitRemovals, basil, "shop", ""),
		"another namespace": waits((*Run).awaitRemovals, amber, "mail", ""),
		"no namespace":      waits((*Run).awaitRemovals, amber, "", ""),
		"an upgrade":        waits((*Run).awaitRemovals, amber, "shop", "1.0.0"),
	} {
		if waiting {
			t.Errorf("%s: it waits", why)
		}
	}
	if end(); waits((*Run).awaitRemovals, amber, "shop", "") {
		t.Error("it waits after the removal's pass")
	}
}
