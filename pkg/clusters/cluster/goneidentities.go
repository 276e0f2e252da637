package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const (
	// cleanupInterval is the time between two searches for ConfigMaps of Clusters that are gone.
	cleanupInterval = time.Hour
	// retention is how long such a ConfigMap is kept: a Cluster that returns within this time adopts the objects of
	// its previous installations.
	retention = 24 * time.Hour
	// annotationGone is the time when a Cluster was first found to be gone, in RFC 3339.
	annotationGone = v1.Prefix + "gone-since"
)

// Start removes ConfigMaps of gone Clusters until the context ends. It is a manager.Runnable.
func (i *Identities) Start(ctx context.Context) error {
	for {
		pause := cleanupInterval
		again, err := i.RemoveGone(ctx)
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "looking for identities of deleted Clusters; trying again later")
		}
		if again {
			pause = GoneInterval + time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait.Jitter(pause, 0.1)):
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (i *Identities) NeedLeaderElection() bool { return true }

// RemoveGone removes the ConfigMaps of Clusters that have been gone for a day and have no installations. Again
// reports that some need a second check, after GoneInterval.
func (i *Identities) RemoveGone(ctx context.Context) (again bool, err error) {
	var identities metav1.PartialObjectMetadataList
	identities.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := i.reader.List(ctx, &identities, client.InNamespace(i.namespace), client.HasLabels{v1.LabelUserCluster}); err != nil {
		return false, fmt.Errorf("listing the identities of Clusters: %w", err)
	}
	missing, err := i.missing(ctx, identities.Items)
	if err != nil || len(missing) == 0 {
		return false, err
	}
	busy, err := i.withInstallations(ctx)
	if err != nil {
		return false, err
	}
	var failures []error // each of one Cluster: the others are still checked
	for name, item := range missing {
		if busy[name] {
			continue
		}
		cluster, _ := identified(item)
		gone, err := i.finder.Gone(ctx, cluster)
		if gone && err == nil {
			err = i.expire(ctx, cluster, item)
		}
		again = again || !gone
		failures = append(failures, err)
	}
	return again, errors.Join(failures...)
}

// missing are those whose Cluster is not listed. Missing from a list alone is no reason to remove anything.
func (i *Identities) missing(ctx context.Context, items []metav1.PartialObjectMetadata) (map[string]*metav1.PartialObjectMetadata, error) {
	clusters, err := i.finder.List(ctx)
	if err != nil {
		return nil, err
	}
	missing := map[string]*metav1.PartialObjectMetadata{}
	for n := range items {
		if cluster, isIdentity := identified(&items[n]); isIdentity {
			missing[cluster.Key()] = &items[n]
		}
	}
	for n := range clusters {
		delete(missing, clusters[n].Key())
	}
	return missing, nil
}

func (i *Identities) withInstallations(ctx context.Context) (map[string]bool, error) {
	var installations v1.AddonInstallationList
	if err := i.client.List(ctx, &installations, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing installations: %w", err)
	}
	busy := map[string]bool{}
	for n := range installations.Items {
		one := &installations.Items[n]
		if one.Status.Cluster != nil {
			busy[target.Recorded(one.Namespace, *one.Status.Cluster).Key()] = true
		}
		if named := target.InstalledIn(one); named.Name != "" {
			named.Kind = target.KindClusterAPI
			busy[named.Key()] = true
		}
		if name, isCluster := strings.CutPrefix(one.Namespace, NamespacePrefix); isCluster {
			busy[name] = true
		}
	}
	return busy, nil
}

// expire records when a Cluster was found gone, and removes its ConfigMap after retention.
func (i *Identities) expire(ctx context.Context, cluster target.Ref, seen *metav1.PartialObjectMetadata) error {
	since, err := time.Parse(time.RFC3339, seen.Annotations[annotationGone])
	if err == nil && i.now().Sub(since) >= retention {
		return i.remove(ctx, cluster, seen)
	}
	if err == nil {
		return nil
	}
	i.claims.Lock()
	defer i.claims.Unlock()
	i.forget(cluster.Key()) // its resourceVersion changes from here on
	noted := &corev1.ConfigMap{}
	if err := i.reader.Get(ctx, client.ObjectKeyFromObject(seen), noted); err != nil {
		return client.IgnoreNotFound(err)
	}
	if noted.ResourceVersion != seen.ResourceVersion {
		return nil // the Cluster exists again
	}
	if noted.Annotations == nil {
		noted.Annotations = map[string]string{}
	}
	noted.Annotations[annotationGone] = i.now().Format(time.RFC3339)
	if err := i.client.Update(ctx, noted); err != nil {
		return fmt.Errorf("recording that Cluster %q is deleted: %w", cluster.Key(), err)
	}
	return nil
}

func (i *Identities) remove(ctx context.Context, cluster target.Ref, seen *metav1.PartialObjectMetadata) error {
	i.claims.Lock()
	defer i.claims.Unlock()
	if i.forgotten != nil {
		if err := i.forgotten(ctx, cluster); err != nil {
			return err
		}
	}
	err := i.client.Delete(ctx, seen, client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
	i.forget(cluster.Key())
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the identity of the deleted Cluster %q: %w", cluster.Key(), err)
	}
	return nil
}
