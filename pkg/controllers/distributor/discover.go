package distributor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
)

type kubeconfigs map[string]knownKubeconfig

type knownKubeconfig struct {
	version string
	config  *rest.Config
	id      string
	problem string
}

// foreignSecretInterval is how often a kubeconfig of another namespace, which is not watched, is read.
const foreignSecretInterval = 30 * time.Second

func (r *Reconciler) discover(ctx context.Context, f *facts) *loop.Outcome {
	seeds, err := cluster.ListSeeds(ctx, r.cached, r.options.Namespace, r.options.WorkerName)
	if err != nil {
		return failed(err)
	}
	fresh := kubeconfigs{}
	for _, listed := range seeds {
		if listed.Deleted {
			continue
		}
		f.targets = append(f.targets, r.target(ctx, f, listed, fresh))
		if listed.Secret.Namespace != r.options.Namespace {
			f.recheckIn(foreignSecretInterval)
		}
	}
	r.kubeconfigs = fresh
	return nil
}

func (r *Reconciler) target(ctx context.Context, f *facts, listed cluster.Seed, fresh kubeconfigs) seed.Target {
	found := seed.Target{
		Name: listed.Name, KKPVersion: cmp.Or(listed.KKPVersion, r.options.KKPVersion), Confirmed: listed.Annotations[v1.AnnotationConfirmSeed],
	}
	if !listed.Initialised {
		found.Problem = "KKP has not initialised the seed yet: condition ClusterInitialized of the Seed is not True"
		return found
	}
	known, err := r.kubeconfig(ctx, listed)
	f.trouble(err)
	fresh[listed.Name] = known
	found.Config, found.ConfigID, found.Problem = known.config, known.id, known.problem
	return found
}

// kubeconfig reads a seed's kubeconfig, unless the Secret's present version is known. The error may be temporary; the
// problem describes it too.
func (r *Reconciler) kubeconfig(ctx context.Context, listed cluster.Seed) (knownKubeconfig, error) {
	key := listed.Secret
	if key.Name == "" {
		return knownKubeconfig{problem: "spec.kubeconfig names no Secret"}, nil
	}
	place := key.String() + "/" + listed.SecretKey + "/"
	version := r.secretVersion(ctx, key)
	if known := r.kubeconfigs[listed.Name]; version != "" && known.version == place+version {
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
	found := parse(secret, listed.SecretKey)
	found.version = place + secret.ResourceVersion
	return found, nil
}

// secretVersion is a Secret's resourceVersion if it is watched; otherwise empty.
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
	if err != nil { // it names fields, never values
		return knownKubeconfig{problem: fmt.Sprintf("the kubeconfig in Secret %q is refused: %v", name, err)}
	}
	sum := sha256.Sum256(data)
	return knownKubeconfig{config: config, id: hex.EncodeToString(sum[:])}
}
