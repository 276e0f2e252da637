package gitcatalogue

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/access/rights"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue/documents"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Reads says whether a file of a repository is read: others need not be kept.
func Reads(name string) bool { return documents.IsRead(name) }

// read makes add-ons of files, and checks them as admission checks a catalogue.
func (r *Reconciler) read(ctx context.Context, f *facts) loop.Outcome {
	content, err := readContent(ctx, f)
	if ctx.Err() != nil { // what was found until now may be wrong
		return failed("reading the content", ctx.Err())
	}
	if invalid, ok := errors.AsType[*documents.InvalidError](err); ok {
		return f.refuse(invalid)
	}
	if err != nil { // the store's folder failed, not the repository
		log.FromContext(ctx).Error(err, "fetched content can't be read", "catalogue", f.object.Name)
		return f.waiting(v1.ReasonFetchFailed, "the fetched content can't be read; the log says why")
	}
	f.content = content
	return nil
}

func readContent(ctx context.Context, f *facts) (*documents.Content, error) {
	content, err := documents.Read(ctx, f.snapshot.FS)
	if err != nil {
		return nil, err
	}
	whole := &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Type: f.object.Spec.Type, Addons: content.Addons}}
	_, err = catalogue.Read(whole, values.CheckVersion, values.CheckTemplate, health.Check(ctx), rights.CheckVersion)
	wrong, ok := errors.AsType[*catalogue.InvalidError](err)
	if !ok {
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
