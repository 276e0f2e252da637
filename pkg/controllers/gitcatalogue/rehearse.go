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

	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue/documents"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// rehearse makes every write as a dry run. What the API server refuses makes the commit invalid; an
// add-on whose name another's object has is left out.
func (r *Reconciler) rehearse(ctx context.Context, f *facts) loop.Outcome {
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
		return f.beyondQuota(err)
	}
	if err != nil {
		return failed("trying the writes of generated catalogues", err)
	}
	if len(invalid.Problems) > 0 {
		slices.SortFunc(invalid.Problems, func(a, b documents.Problem) int { return strings.Compare(a.String(), b.String()) })
		return f.refuse(&invalid)
	}
	f.plan.without(taken)
	return nil
}

// isRefusal says whether the API server refuses an object for its content.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) && !isBeyondQuota(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}
