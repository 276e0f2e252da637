package distributor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// kubeconfigs remembers parsed kubeconfigs by Secret and version.
type kubeconfigs map[string]knownKubeconfig

type knownKubeconfig struct {
	version string
	config  *rest.Config
	id      string
	problem string
}

// foreignSecretInterval is how often a kubeconfig is read outside of the platform namespace, unwatched.
const foreignSecretInterval = 30 * time.Second

func (r *Reconciler) discover(ctx context.Context, f *facts) loop.Outcome {
	var list kkpv1.SeedList
	if err := r.cached.List(ctx, &list, client.InNamespace(r.options.Namespace)); err != nil {
		return failed(fmt.Errorf("listing Seeds: %w", err))
	}
	// A cache lists in any order; rows of a status must not change places.
	slices.SortFunc(list.Items, func(a, b kkpv1.Seed) int { return strings.Compare(a.Name, b.Name) })
	fresh := kubeconfigs{}
	for i := range list.Items {
		object := &list.Items[i]
		if object.DeletionTimestamp != nil || object.Labels[kkpv1.LabelWorkerName] != r.options.WorkerName {
			continue
		}
		f.targets = append(f.targets, r.target(ctx, f, object, fresh))
		if secretOf(object).Namespace != r.options.Namespace {
			f.recheck = foreignSecretInterval
		}
	}
	r.kubeconfigs = fresh
	return nil
}

func (r *Reconciler) target(ctx context.Context, f *facts, object *kkpv1.Seed, fresh kubeconfigs) seed.Target {
	found := seed.Target{
		Name: object.Name, KKPVersion: cmp.Or(r.options.KKPVersion, object.Status.Versions.Kubermatic),
		Confirmed: object.Annotations[v1.AnnotationConfirmSeed],
	}
	if !isInitialised(object) {
		found.Problem = "KKP has not initialised the seed yet: its condition ClusterInitialized is not True"
		return found
	}
	known, err := r.kubeconfig(ctx, object)
	f.trouble(err)
	fresh[object.Name] = known
	found.Config, found.ConfigID, found.Problem = known.config, known.id, known.problem
	return found
}

// isInitialised says whether a seed can be used. One without conditions is not from KKP.
func isInitialised(seed *kkpv1.Seed) bool {
	conditions := seed.Status.Conditions
	return len(conditions) == 0 || conditions[kkpv1.SeedConditionInitialized].Status == metav1.ConditionTrue
}

// secretOf is the Secret with a seed's kubeconfig. The defaults are KKP's
// (pkg/provider/kubernetes/seed.go).
func secretOf(seed *kkpv1.Seed) client.ObjectKey {
	at := seed.Spec.Kubeconfig
	return client.ObjectKey{Namespace: cmp.Or(at.Namespace, seed.Namespace), Name: at.Name}
}

func keyOf(seed *kkpv1.Seed) string {
	return cmp.Or(seed.Spec.Kubeconfig.FieldPath, cluster.KubeconfigKey)
}

// kubeconfig reads a seed's kubeconfig, unless the Secret is known at its present version. The
// error is what may pass; its words are in the problem too.
func (r *Reconciler) kubeconfig(ctx context.Context, object *kkpv1.Seed) (knownKubeconfig, error) {
	key := secretOf(object)
	if key.Name == "" {
		return knownKubeconfig{problem: "spec.kubeconfig names no Secret"}, nil
	}
	place := key.String() + "/" + keyOf(object) + "/"
	version := r.secretVersion(ctx, key)
	if known := r.kubeconfigs[object.Name]; version != "" && known.version == place+version {
		return known, nil
	}
	secret := &corev1.Secret{}
	err := r.direct.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return knownKubeconfig{problem: fmt.Sprintf("Secret %q with the kubeconfig does not exist", key)}, nil
	}
	if err != nil {
		problem := fmt.Sprintf("Secret %q with the kubeconfig can't be read: %s", key, seed.Describe(err))
		return knownKubeconfig{problem: problem}, fmt.Errorf("reading Secret %q: %w", key, err)
	}
	found := parse(secret, keyOf(object))
	found.version = place + secret.ResourceVersion
	return found, nil
}

// secretVersion is a Secret's resourceVersion where it is watched; else empty.
func (r *Reconciler) secretVersion(ctx context.Context, key client.ObjectKey) string {
	if key.Namespace != r.options.Namespace {
		return ""
	}
	about, err := r.secretMetadata(ctx, key)
	if err != nil {
		return ""
	}
	return about.ResourceVersion
}

func parse(secret *corev1.Secret, key string) knownKubeconfig {
	name := client.ObjectKeyFromObject(secret)
	data, ok := secret.Data[key]
	if !ok {
		return knownKubeconfig{problem: fmt.Sprintf("Secret %q has no key %q with the kubeconfig", name, key)}
	}
	config, err := cluster.ParseKubeconfig(data)
	if err != nil { // It names fields, never values.
		return knownKubeconfig{problem: fmt.Sprintf("the kubeconfig in Secret %q is refused: %v", name, err)}
	}
	sum := sha256.Sum256(data)
	return knownKubeconfig{config: config, id: hex.EncodeToString(sum[:])}
}
