package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
)

// Previews makes previews of installations as they would be. With isLive, the user cluster checks the objects.
type Previews interface {
	Preview(ctx context.Context, installation *v1.AddonInstallation, isLive bool) (preview.Preview, error)
	// History has the revisions on record of an installation.
	History(ctx context.Context, installation *v1.AddonInstallation) (preview.History, error)
}

var errFollows = errors.New("this replica does not lead")

// preview says what an installation would change, to users who may create it or, if it exists, update it. Rights are checked for the
// namespace, before the body is read: callers without any use no turn of others.
func (s *Server) preview(ctx context.Context, of *call) (*content, error) {
	namespace, err := name("namespace", of.path["namespace"])
	if err != nil {
		return nil, err
	}
	rights := writeRights{create: s.mayWrite(ctx, of, namespace, "create"), update: s.mayWrite(ctx, of, namespace, "update")}
	if rights.create != nil && rights.update != nil {
		return nil, rights.create
	}
	if s.Previews == nil {
		return nil, &NotFoundError{}
	}
	if err := s.leads(); err != nil {
		return nil, err
	}
	endBody, err := s.turns.take(ctx, receiving, namespace)
	if err != nil {
		return nil, err
	}
	defer endBody()
	written, err := installationOf(of.request, namespace)
	if err != nil {
		return nil, err
	}
	end, err := s.turns.take(ctx, previewing, namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	asked, err := s.asWritten(ctx, written, rights)
	if err != nil {
		return nil, err
	}
	made, err := s.Previews.Preview(ctx, asked, of.given.live)
	if err != nil {
		return nil, fmt.Errorf("previewing AddonInstallation %q: %w", client.ObjectKeyFromObject(asked), err)
	}
	answer, err := answerOf(made)
	if err == nil {
		answer.retryAfter = made.RetryAfter
	}
	return answer, err
}

// writeRights are the refusals of the rights to write installations; nil: the caller has the right.
type writeRights struct{ create, update error }

// asWritten is the installation of a body as the seed would have it then.
func (s *Server) asWritten(ctx context.Context, asked *v1.AddonInstallation, rights writeRights) (*v1.AddonInstallation, error) {
	live, err := s.existing(ctx, client.ObjectKeyFromObject(asked))
	switch {
	case err != nil:
		return nil, err
	case live == nil && rights.create != nil:
		return nil, rights.create
	case live != nil && rights.update != nil:
		return nil, rights.update
	}
	return changed(live, asked)
}

func (s *Server) mayWrite(ctx context.Context, of *call, namespace, verb string) error {
	return s.Reviews.Authorise(ctx, of.identity, Access{Namespace: namespace, Resource: ResourceInstallations, Verb: verb})
}

// leads is nil if this replica makes previews.
func (s *Server) leads() error {
	select {
	case <-s.Elected:
		return nil
	default:
		return &UnavailableError{"another replica of the manager makes previews", errFollows}
	}
}

// existing is the installation that the seed has; nil if there is none.
func (s *Server) existing(ctx context.Context, key client.ObjectKey) (*v1.AddonInstallation, error) {
	live := &v1.AddonInstallation{}
	err := s.Installations.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading AddonInstallation %q: %w", key, err)
	}
	return live, nil
}

// changeable are the annotations that a preview takes from its caller: they change what a reconciliation does, and users may write them.
var changeable = []string{
	v1.AnnotationAllowDowngrade, v1.AnnotationAdopt, v1.AnnotationAdoptManagers, v1.AnnotationPruneApproved, v1.AnnotationAllowPrune,
}

// changed is an installation with the spec and annotations of the request. All else, such as the labels and annotations of
// AddonSets, is the live one's. Errors: *ParameterError if the API server would refuse the change.
func changed(live, asked *v1.AddonInstallation) (*v1.AddonInstallation, error) {
	object := &v1.AddonInstallation{}
	object.Namespace, object.Name = asked.Namespace, asked.Name
	if live != nil {
		object = live.DeepCopy()
	}
	if err := checkChange(live, asked); err != nil {
		return nil, err
	}
	object.Spec = asked.Spec
	for _, key := range changeable {
		value, isGiven := asked.Annotations[key]
		if !isGiven {
			delete(object.Annotations, key)
			continue
		}
		if object.Annotations == nil {
			object.Annotations = map[string]string{}
		}
		object.Annotations[key] = value
	}
	return object, nil
}

// checkChange refuses what the rules of the CRD about changes refuse.
func checkChange(live, asked *v1.AddonInstallation) error {
	if live == nil {
		if asked.Spec.CoreAddon {
			return &ParameterError{"body", "spec.coreAddon: only the core add-on controller sets it"}
		}
		return nil
	}
	if budget.IsStub(live) { // only its size is known
		return nil
	}
	was, is := live.Spec, asked.Spec
	for _, one := range []struct {
		field, was, is string
		isFixed        bool
	}{
		{"coreAddon", strconv.FormatBool(was.CoreAddon), strconv.FormatBool(is.CoreAddon), true},
		{"addonRef.name", string(was.AddonRef.Name), string(is.AddonRef.Name), true},
		{"releaseName", was.ReleaseName, is.ReleaseName, true},
		{"clusterName", was.ClusterName, is.ClusterName, was.ClusterName != ""},
		{"targetNamespace", was.TargetNamespace, is.TargetNamespace, was.TargetNamespace != ""},
	} {
		if one.isFixed && one.was != one.is {
			return &ParameterError{"body", fmt.Sprintf("spec.%s can't be changed: delete the installation and create it again", one.field)}
		}
	}
	return nil
}
