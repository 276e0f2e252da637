package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// SetPreviews says what an AddonSet would do on this seed. The live copy is nil if the seed has none. Errors: *addonset.InvalidError about
// the set.
type SetPreviews interface {
	Preview(ctx context.Context, live, asked *v1.AddonSet) (view.SetPreview, error)
}

// setTurn is the owner of the turns of sets among those of previews.
const setTurn = "sets"

// setPreview says what a set would do, to callers who may list sets, the catalogue and all installations: those tell the same.
func (s *Server) setPreview(ctx context.Context, of *call) (*content, error) {
	if s.Sets == nil {
		return nil, &NotFoundError{}
	}
	called, err := objectName(of.path["name"])
	if err != nil {
		return nil, err
	}
	for _, access := range []Access{s.setAccess("list"), s.everything(), {Resource: ResourceInstallations}} {
		if err := s.Reviews.Authorise(ctx, of.identity, access); err != nil {
			return nil, err
		}
	}
	if err := s.leads(); err != nil {
		return nil, err
	}
	endBody, err := s.turns.take(ctx, receiving, setTurn)
	if err != nil {
		return nil, err
	}
	defer endBody()
	asked, err := setOf(of.request, called)
	if err != nil {
		return nil, err
	}
	end, err := s.turns.take(ctx, previewing, setTurn)
	if err != nil {
		return nil, err
	}
	defer end()
	live, err := s.liveSet(ctx, called)
	if _, isMissing := errors.AsType[*NotFoundError](err); err != nil && !isMissing {
		return nil, err
	}
	made, err := s.Sets.Preview(ctx, live, asked)
	if wrong, isWrong := errors.AsType[*addonset.InvalidError](err); isWrong {
		return nil, &ParameterError{"body", wrong.Error()}
	} else if err != nil {
		return nil, &UnavailableError{"the sets can't be planned now", err}
	}
	return answerOf(made)
}

// setOf reads an AddonSet with this name, with known fields only. Errors: *ParameterError, *TooLargeError, *MediaTypeError.
func setOf(request *http.Request, called string) (*v1.AddonSet, error) {
	asked := &v1.AddonSet{}
	if err := body(request, asked); err != nil {
		return nil, err
	}
	kind := asked.GroupVersionKind()
	if kind.Kind != "" && kind.Kind != "AddonSet" || kind.Group != "" && kind.GroupVersion() != v1.GroupVersion ||
		asked.Name != "" && asked.Name != called {
		return nil, &ParameterError{"body", fmt.Sprintf("it is not AddonSet %q of %s", called, v1.GroupVersion)}
	}
	asked.Name, asked.Spec.Type = called, cmp.Or(asked.Spec.Type, v1.AddonSetCustom)
	return asked, checkSpec(resourceSets, &asked.Spec)
}
