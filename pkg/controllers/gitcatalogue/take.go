package gitcatalogue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue/documents"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/values"
)

// read makes add-ons of files, and checks them as admission checks a catalogue that lists them.
func (r *Reconciler) read(ctx context.Context, f *facts) loop.Outcome {
	content, err := readContent(f)
	var invalid *documents.InvalidError
	switch {
	case errors.As(err, &invalid):
		return f.refuse(invalid)
	case err != nil: // The store's folder, not the repository.
		log.FromContext(ctx).Error(err, "fetched content can't be read", "catalogue", f.object.Name)
		return f.waiting(v1.ReasonFetchFailed, "the fetched content can't be read; the log says why")
	}
	f.content = content
	return nil
}

func readContent(f *facts) (*documents.Content, error) {
	content, err := documents.Read(f.snapshot.FS)
	if err != nil {
		return nil, err
	}
	whole := &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Type: f.object.Spec.Type, Addons: content.Addons}}
	var wrong *catalogue.InvalidError
	if _, err := catalogue.Read(whole, values.CheckVersion, values.CheckTemplate); !errors.As(err, &wrong) {
		return content, err
	}
	invalid := &documents.InvalidError{}
	for _, problem := range wrong.Problems {
		invalid.Problems = append(invalid.Problems, documents.Problem{
			Place: content.Place(problem.Addon, problem.Version), Message: problem.String(),
		})
	}
	return nil, invalid
}

func (f *facts) refuse(invalid *documents.InvalidError) loop.Outcome {
	return f.waiting(v1.ReasonInvalid, fmt.Sprintf("commit %s is not taken: %v", f.snapshot.Revision, invalid))
}

func (r *Reconciler) plan(_ context.Context, f *facts) loop.Outcome {
	todo, err := planChildren(f.object, f.content.Addons, f.have)
	if err != nil {
		return f.refuse(&documents.InvalidError{Problems: []documents.Problem{{Message: err.Error()}}})
	}
	f.plan = todo
	return nil
}

// approve holds a commit that takes much away until an admin names it, and says what installations would lose by it.
func (r *Reconciler) approve(ctx context.Context, f *facts) loop.Outcome {
	removed, approved := len(f.plan.remove), f.object.Annotations[v1.AnnotationApproveRevision]
	if !needsApproval(removed, len(f.have)) || approved == f.snapshot.Revision {
		return nil
	}
	hint := ""
	if approved != "" && strings.HasPrefix(f.snapshot.Revision, approved) {
		hint = "; it has the first characters of it only, which another commit could be made to have too"
	}
	return f.waiting(v1.ReasonRevisionNeedsApproval, fmt.Sprintf(
		"commit %s takes %d of %d add-ons out: annotate the catalogue with %s=%s if that is meant%s; %s",
		f.snapshot.Revision, removed, len(f.have), v1.AnnotationApproveRevision, f.snapshot.Revision, hint, r.used(ctx, f)))
}
