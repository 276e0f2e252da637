package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Seed is a seed cluster, as the master sees it.
type Seed struct {
	Name        string
	Annotations map[string]string
	Deleted     bool
	// KKPVersion of the seed; empty while unknown.
	KKPVersion string
	// Initialised reports whether the seed is usable. A Seed without conditions was not created by KKP.
	Initialised bool
	// Secret and SecretKey are where the seed's kubeconfig is.
	Secret    client.ObjectKey
	SecretKey string
}

// SeedObject is an empty object of the kind of seeds, for watches.
func SeedObject() client.Object { return &kkpv1.Seed{} }

// ListSeeds lists the seeds of a namespace for controllers with a --worker-name, by name. The
// result shares data with the cache: don't change it.
func ListSeeds(ctx context.Context, reader client.Reader, namespace, workerName string) ([]Seed, error) {
	var list kkpv1.SeedList
	if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Seeds: %w", err)
	}
	var seeds []Seed
	for i := range list.Items {
		if list.Items[i].Labels[kkpv1.LabelWorkerName] == workerName {
			seeds = append(seeds, describeSeed(&list.Items[i]))
		}
	}
	slices.SortFunc(seeds, func(a, b Seed) int { return cmp.Compare(a.Name, b.Name) })
	return seeds, nil
}

// describeSeed applies KKP's defaults (pkg/provider/kubernetes/seed.go).
func describeSeed(seed *kkpv1.Seed) Seed {
	kubeconfig := seed.Spec.Kubeconfig
	return Seed{
		Name: seed.Name, Annotations: seed.Annotations, Deleted: seed.DeletionTimestamp != nil,
		KKPVersion: seed.Status.Versions.Kubermatic,
		Initialised: len(seed.Status.Conditions) == 0 ||
			seed.Status.Conditions[kkpv1.SeedConditionInitialized].Status == metav1.ConditionTrue,
		Secret:    client.ObjectKey{Namespace: cmp.Or(kubeconfig.Namespace, seed.Namespace), Name: kubeconfig.Name},
		SecretKey: cmp.Or(kubeconfig.FieldPath, KubeconfigKey),
	}
}

// IsForSources reports whether a Secret is marked for sources, by our label or by KKP's annotation.
func IsForSources(secret metav1.Object) bool {
	_, byKKP := secret.GetAnnotations()[kkpv1.AnnotationSecretType]
	return byKKP || secret.GetLabels()[v1.LabelUse] == v1.UseSource
}
