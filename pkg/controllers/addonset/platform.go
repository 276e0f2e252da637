package addonset

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/values"
)

// defaultValuesKey is the key of the platform's values if an item names none.
const defaultValuesKey = "values.yaml"

// platformValues are the platform's values of one item, without their content.
type platformValues struct {
	secret, key string
	// content is their keyed digest; empty if they are unavailable, and problem says why.
	content, problem string
}

// platformSecrets is a cache of the platform's Secrets with values. The manager's own cache has only the metadata of
// Secrets.
func (r *Reconciler) platformSecrets(mgr ctrl.Manager) (cache.Cache, error) {
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{r.Options.CatalogueNamespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{v1.LabelUse: v1.UseValues}),
			Transform:  trimPlatformSecret,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of the platform's Secrets: %w", err)
	}
	r.secrets = made
	return made, mgr.Add(made)
}

// trimPlatformSecret cuts a value that is too large to one byte more than allowed, which marks it as too large.
func trimPlatformSecret(object any) (any, error) {
	secret, isSecret := object.(*corev1.Secret)
	if !isSecret {
		return object, nil
	}
	secret.ManagedFields = nil
	for key, value := range secret.Data {
		if len(value) > values.MaxBytes {
			secret.Data[key] = make([]byte, values.MaxBytes+1)
		}
	}
	return secret, nil
}

// readPlatformValues reads the values of all items that name some.
func (r *Reconciler) readPlatformValues(ctx context.Context, of *set) (map[string]platformValues, error) {
	found := map[string]platformValues{}
	for i := range of.items {
		reference := of.items[i].PlatformSecretRef
		if reference == nil {
			continue
		}
		one := platformValues{secret: reference.Name, key: cmp.Or(reference.Key, defaultValuesKey)}
		secret := &corev1.Secret{}
		err := r.secrets.Get(ctx, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: one.secret}, secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the platform's Secret %q: %w", one.secret, err)
		}
		data, hasKey := secret.Data[one.key]
		switch {
		case apierrors.IsNotFound(err):
			one.problem = fmt.Sprintf("the platform's Secret %q with label %s=%s is not on this seed", one.secret, v1.LabelUse, v1.UseValues)
		case !isFor(secret, of.name):
			one.problem = fmt.Sprintf("the platform's Secret %q is not for AddonSet %q: add %s to its annotation %s on the master",
				one.secret, of.name, catalogue.SetUserName(of.name), v1.AnnotationUsedBy)
		case !hasKey:
			one.problem = fmt.Sprintf("the platform's Secret %q has no key %q", one.secret, one.key)
		case len(data) > values.MaxBytes:
			one.problem = fmt.Sprintf("key %q of the platform's Secret %q has more than %d bytes", one.key, one.secret, values.MaxBytes)
		default:
			if one.content = r.Marks.ValuesDigest(one.secret, one.key, data); one.content == "" {
				one.problem = "the master has not written the key for the platform's Secrets to this seed yet, so none of these Secrets is granted"
			}
		}
		found[string(of.items[i].Name)] = one
	}
	return found, nil
}

// isFor reports whether a copy of a Secret is for a set. An earlier master does not write the annotation.
func isFor(secret *corev1.Secret, set string) bool {
	listed, annotated := secret.Annotations[v1.AnnotationUsedBy]
	return !annotated || catalogue.IsUsedBy(listed, catalogue.SetUserName(set))
}

// missing is the reason why the platform has no values for an item that names some; empty if it has, or if the item
// names none.
func (o *offers) missing(of *item) string {
	if of.PlatformSecretRef == nil {
		return ""
	}
	return o.platform[string(of.Name)].problem
}

// grant is an installation's right to the platform's values; empty if there are none. A new installation waits, and
// gets its grant when it has a UID.
func (o *offers) grant(of *item, by *step, in target.Ref) string {
	one, isGranted := o.platform[string(of.Name)]
	if !isGranted {
		return ""
	}
	wanted := by.intent(in)
	about := &v1.AddonInstallation{Spec: wanted.Spec}
	about.Namespace, about.Name, about.Labels = wanted.Namespace, wanted.Name, wanted.Labels
	if by.live != nil {
		about.UID = by.live.UID
	}
	return o.marks.Grant(installation.Grant{Secret: one.secret, Key: one.key, Content: one.content}, about)
}

// naming are the sets that name a Secret, according to all existing copies: a set that was not read yet may name it
// too.
func (r *Reconciler) naming(ctx context.Context, secret client.Object) []reconcile.Request {
	var copies v1.AddonSetList
	if err := r.Client.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the sets that name a Secret of the platform")
		return nil
	}
	var requests []reconcile.Request
	for i := range copies.Items {
		for j := range copies.Items[i].Spec.Addons {
			if named := copies.Items[i].Spec.Addons[j].PlatformSecretRef; named != nil && named.Name == secret.GetName() {
				requests = append(requests, requestOf(copies.Items[i].Name))
				break
			}
		}
	}
	return requests
}
