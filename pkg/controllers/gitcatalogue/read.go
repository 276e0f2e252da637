package gitcatalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

// Reads says whether a file of a repository is read: other files need not be stored.
func Reads(name string) bool { return documents.IsRead(name) }

// read parses files into add-ons, and checks them as admission checks a catalogue.
func (r *Reconciler) read(ctx context.Context, f *facts) *loop.Outcome {
	content, err := readContent(ctx, f)
	if ctx.Err() != nil { // the result of this call may be wrong
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
	if err := content.Check(ctx, cmp.Or(f.object.Spec.Type, v1.CatalogueCustom)); err != nil {
		return nil, err
	}
	return content, nil
}

func (f *facts) refuse(invalid *documents.InvalidError) *loop.Outcome {
	return f.waiting(v1.ReasonInvalid, fmt.Sprintf("commit %s is refused: %v", f.snapshot.Revision, invalid))
}
