package gitcatalogue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// betweenRequests is the shortest time between two fetches that annotation reconcile-at requests: the same as the shortest interval.
const betweenRequests = 10 * time.Second

// fetch reads the content from the store, which enqueues the catalogue when there is other content.
func (r *Reconciler) fetch(ctx context.Context, f *facts) *loop.Outcome {
	reference, err := r.reference(ctx, f.object)
	if err != nil {
		return fetchOutcome(ctx, f, err)
	}
	key := client.ObjectKeyFromObject(f.object)
	if asked := f.object.Annotations[v1.AnnotationReconcileAt]; asked != f.memory.asked {
		if left := betweenRequests - r.options.Clock.Since(f.memory.askedAt); left > 0 {
			r.queue.AddAfter(reconcile.Request{NamespacedName: key}, left)
		} else {
			f.memory.asked, f.memory.askedAt = asked, r.options.Clock.Now()
			r.store.Refresh(reference)
		}
	}
	f.snapshot, err = r.store.Get(reference, "catalogue "+key.String(), func() {
		r.queue.Add(reconcile.Request{NamespacedName: key})
	})
	if err != nil {
		return fetchOutcome(ctx, f, err)
	}
	return nil
}

func (r *Reconciler) reference(ctx context.Context, object *v1.AddonCatalogue) (fetch.Reference, error) {
	git := object.Spec.Git
	reference, err := r.kinds.Reference(git.Source(), func(name string) (*corev1.Secret, error) {
		secret, err := r.sourceSecret(ctx, name)
		if err == nil && git.SecretRef != nil && name == git.SecretRef.Name {
			err = r.mayUse(ctx, secret, object)
		}
		return secret, err
	})
	if err != nil {
		return reference, err
	}
	reference.Owner = object.Name
	if git.Interval != nil {
		reference.Interval = git.Interval.Duration
	}
	if reference.Credentials.IsSecret() && len(reference.Credentials.Hosts) == 0 {
		return reference, &fetch.RefusedError{
			Subject: fmt.Sprintf("Secret %q", git.SecretRef.Name),
			Rule:    "it has no annotation " + v1.AnnotationHosts + " with the hosts that may get its credentials",
		}
	}
	return reference, nil
}

// sourceSecret reads a Secret in the catalogue's namespace, past the cache, which has only metadata.
func (r *Reconciler) sourceSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, &fetch.NotFoundError{What: fmt.Sprintf("Secret %q in namespace %q", name, r.options.Namespace)}
	}
	if err != nil {
		return nil, err
	}
	if !cluster.IsForSources(secret) {
		return nil, &fetch.RefusedError{
			Subject: fmt.Sprintf("Secret %q", name), Rule: fmt.Sprintf("it has no label %s=%s", v1.LabelUse, v1.UseSource),
		}
	}
	return secret, nil
}

// mayUse refuses Secrets that the catalogue may not use. Until the distributor has noted their earlier users, the error is temporary.
func (r *Reconciler) mayUse(ctx context.Context, secret *corev1.Secret, object *v1.AddonCatalogue) error {
	user, kept := catalogue.CatalogueUser(object), &corev1.ConfigMap{}
	if _, refusal := (catalogue.PreviousUsers{}).MayUse(secret, user); refusal == nil {
		return nil
	}
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: v1.ConfigMapSeeds}, kept)
	text, noted := kept.Data[v1.PreviousSecretUsers]
	if err == nil && !noted {
		err = apierrors.NewNotFound(corev1.Resource("configmaps"), v1.ConfigMapSeeds)
	}
	if err != nil {
		return err
	}
	if _, refusal := catalogue.ReadPreviousUsers(text).MayUse(secret, user); refusal != nil {
		return &fetch.RefusedError{Subject: "the repository's credentials", Rule: refusal.Error()}
	}
	return nil
}

// fetchOutcome counts no attempts: the store retries and enqueues the catalogue.
func fetchOutcome(ctx context.Context, f *facts, err error) *loop.Outcome {
	var (
		missing      *fetch.NotFoundError
		refused      *fetch.RefusedError
		unauthorized *fetch.UnauthorizedError
		unavailable  *fetch.UnavailableError
		answer       apierrors.APIStatus
	)
	if errors.As(err, &answer) {
		return failed("reading a Secret", err)
	}
	reason, message := v1.ReasonFetchFailed, "the repository can't be read"
	switch {
	case errors.Is(err, fetch.ErrPending):
		reason, message = v1.ReasonFetching, "the repository is being read"
	case errors.As(err, &missing):
		reason, message = v1.ReasonArtifactNotFound, missing.Error()
	case errors.As(err, &refused):
		reason, message = v1.ReasonArtifactRefused, refused.Error()
	case errors.As(err, &unauthorized):
		message = unauthorized.Error()
	case errors.As(err, &unavailable):
		message = unavailable.Subject + ": " + cause(unavailable.Err)
	default:
		log.FromContext(ctx).Error(err, "repository can't be read", "catalogue", f.object.Name)
	}
	return f.waiting(reason, message)
}

// cause omits the addresses in errors of the network, so that equal problems are written once.
func cause(err error) string {
	var operation *net.OpError
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return "the host's name is not found"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the host does not answer in time"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}

// lastGood is the commit of the generated catalogues.
func (f *facts) lastGood() string {
	if f.isCurrent {
		return f.snapshot.Revision
	}
	return f.object.Status.Revision
}

// waiting ends a reconciliation that changed nothing.
func (f *facts) waiting(reason, message string) *loop.Outcome {
	if reason != v1.ReasonFetching && len(f.have) > 0 {
		message += "; the add-ons of commit " + f.lastGood() + " stay"
	}
	return loop.Wait(v1.ConditionFetched, reason, message, recheck)
}
