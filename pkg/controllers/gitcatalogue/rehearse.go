package gitcatalogue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

// rehearse tries every write as a dry run. If the API server refuses one, the commit is invalid; an add-on whose name
// a foreign object has is omitted.
func (r *Reconciler) rehearse(ctx context.Context, f *facts) *loop.Outcome {
	var mutex sync.Mutex
	var invalid documents.InvalidError
	taken := map[string]string{}
	err := each(ctx, f.plan.write, func(ctx context.Context, made child) error {
		_, err := r.put(ctx, f, made, metav1.DryRunAll)
		if apierrors.IsAlreadyExists(err) {
			isTaken, readErr := r.isTaken(ctx, f, made.name)
			if !isTaken {
				return cmp.Or(readErr, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			taken[made.name] = made.addon
			return nil
		}
		if err == nil || !isRefusal(err) {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		invalid.Problems = append(invalid.Problems, documents.Problem{
			Place: f.content.Place(made.addon, ""), Message: fmt.Sprintf("add-on %q: %s", made.addon, apiReason(err)),
		})
		return nil
	})
	if isBeyondQuota(err) {
		return r.beyondQuota(f, err)
	}
	if err != nil {
		return failed("writing generated catalogues as a dry run", err)
	}
	if len(invalid.Problems) > 0 {
		slices.SortFunc(invalid.Problems, func(a, b documents.Problem) int { return strings.Compare(a.String(), b.String()) })
		return r.refused(f, f.refuse(&invalid))
	}
	f.plan.without(taken)
	return nil
}

// isRefusal says whether the API server refuses an object for its content.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) && !isBeyondQuota(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}
