package apply

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

var ttlPath = []string{"spec", "ttlSecondsAfterFinished"}

// ttlOf is a Job's ttlSecondsAfterFinished. It is nil if the Job has none, or one that the API server refuses, which stays
// in the Job.
func ttlOf(object *unstructured.Unstructured) *int64 {
	if object.GroupVersionKind().GroupKind() != calls.JobGK {
		return nil
	}
	number := numberAt(object, ttlPath...)
	if number == nil || int32(*number) < 0 {
		return nil
	}
	return new(int64(int32(*number))) // as the API server reads it: without fractions and higher bits
}

// GiveTTL makes the user cluster delete Jobs that ended: each gets the ttlSecondsAfterFinished of its entry. Given are
// the Jobs that have it now or no longer exist; refused are those for which the user cluster refuses it. For all other
// Jobs there was no such answer: try again. Nothing is created, and no answer is quoted, since it may quote the Job.
func GiveTTL(
	ctx context.Context, target calls.Target, owner ownership.Owner, ended ownership.Inventory,
) (given []ownership.Key, refused []calls.Note, err error) {
	kinds, lock := &calls.Kinds{Mapper: target.Mapper}, sync.Mutex{}
	err = calls.Each(ctx, ended, func(ctx context.Context, job ownership.Entry) error {
		answer := giveTTL(ctx, target, kinds, owner, job)
		lock.Lock()
		defer lock.Unlock()
		switch {
		case answer == nil || apierrors.IsNotFound(answer):
			given = append(given, job.Key)
		case calls.IsRefusal(answer):
			refused = append(refused, calls.Note{Key: job.Key, Reason: kubermaticv1.EventJobKept, Message: calls.Said(answer)})
		case !calls.IsAnswer(answer):
			return answer
		}
		return nil
	})
	return given, refused, err
}

func giveTTL(ctx context.Context, target calls.Target, kinds *calls.Kinds, owner ownership.Owner, job ownership.Entry) error {
	where, served, err := kinds.Known(job.Key, job.Version)
	if err != nil || !served {
		return err
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{%q:%d}}`, job.UID, ttlPath[1], *job.TTL)
	client := calls.ClientOf(target, where, job.Namespace)
	_, err = client.Patch(ctx, job.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: owner.FieldManager()})
	if !isUIDMismatch(err) { // or a conflict with a write of its status
		return err
	}
	live, unread := client.Read(ctx, job.Key)
	if unread != nil || live != nil && live.UID == job.UID {
		return cmp.Or(unread, err)
	}
	return nil
}
