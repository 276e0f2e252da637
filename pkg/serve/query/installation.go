package query

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
)

// installationAnswer is one installation: what its object says, for people.
type installationAnswer struct {
	view.Row
	// Target is the version that addonRef resolves to.
	Target     string            `json:"target,omitempty"`
	Conditions []conditionAnswer `json:"conditions"`
	// ObjectCounts and Unhealthy are those of the status.
	ObjectCounts *v1.ObjectCounts      `json:"objectCounts,omitempty"`
	Unhealthy    []v1.UnhealthyObject  `json:"unhealthy"`
	Applied      *appliedAnswer        `json:"applied,omitempty"`
	Release      *v1.HelmReleaseState  `json:"release,omitempty"`
	DependsOn    []v1.InstallationName `json:"dependsOn,omitempty"`
	Failures     int32                 `json:"failures,omitempty"`
	NextAttempt  *metav1.Time          `json:"nextAttempt,omitempty"`
	// Record is only there on request.
	Record *preview.History `json:"record,omitempty"`
}

// appliedAnswer is what was last applied.
type appliedAnswer struct {
	Version        string       `json:"version,omitempty"`
	Revision       string       `json:"revision,omitempty"`
	EntryDigest    string       `json:"entryDigest,omitempty"`
	ArtifactDigest string       `json:"artifactDigest,omitempty"`
	K8sVersion     string       `json:"k8sVersion,omitempty"`
	Time           *metav1.Time `json:"time,omitempty"`
}

// installation shows one installation to callers who may get it.
func (s *Server) installation(ctx context.Context, of *call) (*content, error) {
	namespace, err := name("namespace", of.path["namespace"])
	if err != nil {
		return nil, err
	}
	called, err := objectName(of.path["name"])
	if err != nil {
		return nil, err
	}
	may := Access{Namespace: namespace, Resource: ResourceInstallations, Verb: "get"}
	if err := s.Reviews.Authorise(ctx, of.identity, may); err != nil {
		return nil, err
	}
	one, err := s.existing(ctx, client.ObjectKey{Namespace: namespace, Name: called})
	switch {
	case err != nil:
		return nil, err
	case one == nil:
		return nil, &NotFoundError{}
	}
	shown := installationOfStatus(one)
	if of.given.revisions {
		if shown.Record, err = s.history(ctx, of, one); err != nil {
			return nil, err
		}
	}
	return answerOf(shown)
}

// history reads the record of an installation, in a turn of its namespace for previews, for callers who may see its preview.
func (s *Server) history(ctx context.Context, of *call, one *v1.AddonInstallation) (*preview.History, error) {
	if s.Previews == nil {
		return nil, &NotFoundError{}
	}
	if err := s.mayWrite(ctx, of, one.Namespace, "update"); err != nil {
		return nil, err
	}
	if err := s.leads(); err != nil {
		return nil, err
	}
	end, err := s.turns.take(ctx, previewing, one.Namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	found, err := s.Previews.History(ctx, one)
	if err != nil {
		return nil, fmt.Errorf("reading the record of AddonInstallation %q: %w", client.ObjectKeyFromObject(one), err)
	}
	return &found, nil
}

func installationOfStatus(one *v1.AddonInstallation) installationAnswer {
	status := &one.Status
	shown := installationAnswer{
		Row: view.RowOf(one, one.CreationTimestamp.Time), Target: status.Target, Conditions: []conditionAnswer{},
		ObjectCounts: status.Objects, Unhealthy: append([]v1.UnhealthyObject{}, status.Unhealthy...), Release: status.Release,
		DependsOn: one.Spec.DependsOn, Failures: status.Failures, NextAttempt: status.NextAttempt,
	}
	for _, condition := range status.Conditions {
		answer := shownCondition(condition)
		if condition.Status != metav1.ConditionTrue {
			answer.Do = view.AdviceOn(condition.Type, condition.Reason).Do
		}
		shown.Conditions = append(shown.Conditions, answer)
	}
	if applied := status.LastApplied; applied != nil {
		shown.Applied = &appliedAnswer{
			Version: applied.Version, EntryDigest: applied.EntryDigest, ArtifactDigest: applied.ArtifactDigest,
			K8sVersion: applied.K8sVersion, Time: applied.Time,
		}
		if status.Artifact != nil {
			shown.Applied.Revision = status.Artifact.Revision
		}
	}
	return shown
}
