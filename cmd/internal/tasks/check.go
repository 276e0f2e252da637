package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/crds"
)

// ErrUnsound says that a check found a problem.
var ErrUnsound = errors.New("the check found problems")

// check does all checks, and reports each.
func (w Work) check(ctx context.Context) error {
	unsound := false
	for _, one := range []struct {
		about string
		found func(context.Context) error
	}{
		{"kinds", w.checkKinds}, {"rights", w.checkRights}, {"leader", w.checkLeader}, {"webhooks", w.checkWebhooks},
	} {
		if err := one.found(ctx); err != nil {
			unsound = true
			fmt.Fprintf(w.Out, "%s: %v\n", one.about, err)
			continue
		}
		fmt.Fprintf(w.Out, "%s: ok\n", one.about)
	}
	if unsound {
		return ErrUnsound
	}
	return nil
}

// checkKinds compares the CRDs with those of this program.
func (w Work) checkKinds(ctx context.Context) error {
	wanted, err := w.crds()
	if err != nil {
		return err
	}
	for _, crd := range wanted {
		found, err := crds.Get(ctx, w.Client, crd.GetName())
		switch {
		case err != nil:
			return err
		case found == nil:
			return fmt.Errorf("CRD %s does not exist", crd.GetName())
		case !crds.IsServed(found):
			return fmt.Errorf("CRD %s is not served", crd.GetName())
		}
		if missing := crds.Missing(crd, found); len(missing) > 0 {
			return fmt.Errorf("CRD %s is older than this program: it lacks %s", crd.GetName(), text.First(missing, mostNames))
		}
	}
	return nil
}

// checkRights checks some rights of the manager, without which it would do nothing.
func (w Work) checkRights(ctx context.Context) error {
	kinds := []string{"addoncatalogues", "addonsets"}
	if w.OnSeed {
		kinds = append(kinds, "addoninstallations")
	}
	for _, kind := range kinds {
		for _, verb := range []string{"list", "watch"} {
			asked := authorizationv1.ResourceAttributes{Verb: verb, Group: kubermaticv1.GroupVersion.Group, Resource: kind}
			if err := w.may(ctx, asked); err != nil {
				return err
			}
		}
	}
	return w.may(ctx, authorizationv1.ResourceAttributes{
		Verb: "update", Group: coordinationv1.GroupName, Resource: "leases", Namespace: w.Namespace, Name: w.Lease,
	})
}

func (w Work) may(ctx context.Context, what authorizationv1.ResourceAttributes) error {
	user := "system:serviceaccount:" + w.Namespace + ":" + w.Account
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + w.Namespace, "system:authenticated"},
		ResourceAttributes: &what,
	}}
	if err := w.Client.Create(ctx, review); err != nil {
		return fmt.Errorf("asking for rights: %w", err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not %s %s", user, what.Verb, schema.GroupResource{Group: what.Group, Resource: what.Resource})
	}
	return nil
}

// checkLeader looks for a manager that holds the lease and renewed it in time.
func (w Work) checkLeader(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Lease}, lease)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("lease %q does not exist: no manager has become leader yet", w.Lease)
	case err != nil:
		return fmt.Errorf("reading the lease: %w", err)
	case lease.Spec.HolderIdentity == nil, *lease.Spec.HolderIdentity == "", lease.Spec.RenewTime == nil,
		lease.Spec.LeaseDurationSeconds == nil:
		return fmt.Errorf("no process holds lease %q", w.Lease)
	}
	ends := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
	if time.Now().After(ends) {
		return fmt.Errorf("lease %q of %q expired at %s: no manager leads", w.Lease, *lease.Spec.HolderIdentity, ends.UTC().Format(time.RFC3339))
	}
	return nil
}

// mistake is invalid in a way that no schema detects, but every webhook for catalogues: it has a version twice.
func (w Work) mistake() *kubermaticv1.AddonCatalogue {
	return &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Name: "trellis-check", Namespace: w.Namespace},
		Spec: kubermaticv1.AddonCatalogueSpec{Addons: []kubermaticv1.Addon{{
			Name: "trellis-check", Versions: []kubermaticv1.AddonVersion{{Version: "1.0.0"}, {Version: "v1.0"}},
		}}},
	}
}

// checkWebhooks makes the API server call a webhook about a mistake, by a request that writes nothing.
func (w Work) checkWebhooks(ctx context.Context) error {
	if !w.Webhooks {
		return nil
	}
	err := w.Client.Create(ctx, w.mistake(), client.DryRunAll)
	switch {
	case err == nil:
		return errors.New("the API server got no answer from the webhook for catalogues, and accepts requests without it: " +
			"check the manager's Service, its endpoints and NetworkPolicies")
	case strings.Contains(err.Error(), "is the same version"):
		return nil
	}
	return fmt.Errorf("trying the webhook for catalogues: %w", err)
}
