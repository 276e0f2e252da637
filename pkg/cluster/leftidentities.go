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
)

const (
	// leftInterval is the time between two looks for ConfigMaps of Clusters that are gone.
	leftInterval = time.Hour
	// leftKept is how long such a ConfigMap stays: what the installations of a deleted Cluster left in the user cluster is
	// that of a Cluster which comes back.
	leftKept = 24 * time.Hour
	// annotationGone is when a Cluster was first found to be gone, as in RFC 3339.
	annotationGone = v1.Prefix + "gone-since"
)

// Start removes ConfigMaps of Clusters that are gone, until the context ends. It is a manager.Runnable.
func (i *Identities) Start(ctx context.Context) error {
	for {
		pause := leftInterval
		again, err := i.RemoveLeft(ctx)
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "looking for identities of Clusters that are gone; tried again later")
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

// NeedLeaderElection says yes: who leads writes.
func (i *Identities) NeedLeaderElection() bool { return true }

// RemoveLeft removes the ConfigMaps of Clusters that have been gone for a day and have no installations: one that comes back goes
// on with what is installed. Again says that some are to be looked at once more, after GoneInterval.
func (i *Identities) RemoveLeft(ctx context.Context) (again bool, err error) {
	var kept metav1.PartialObjectMetadataList
	kept.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := i.reader.List(ctx, &kept, client.InNamespace(i.namespace), client.HasLabels{v1.LabelUserCluster}); err != nil {
		return false, fmt.Errorf("listing the identities of Clusters: %w", err)
	}
	missing, err := i.missing(ctx, kept.Items)
	if err != nil || len(missing) == 0 {
		return false, err
	}
	busy, err := i.withInstallations(ctx)
	if err != nil {
		return false, err
	}
	var failures []error // of one Cluster: the others are looked at all the same
	for name, item := range missing {
		if busy[name] {
			continue
		}
		gone, err := i.finder.Gone(ctx, identified(name))
		if gone && err == nil {
			err = i.leave(ctx, name, item)
		}
		again = again || !gone
		failures = append(failures, err)
	}
	return again, errors.Join(failures...)
}

// missing are those whose Cluster the finder does not list, by its name. That is no reason yet to remove anything.
func (i *Identities) missing(ctx context.Context, items []metav1.PartialObjectMetadata) (map[string]*metav1.PartialObjectMetadata, error) {
	clusters, err := i.finder.List(ctx)
	if err != nil {
		return nil, err
	}
	missing := map[string]*metav1.PartialObjectMetadata{}
	for n := range items {
		if name, isIdentity := strings.CutPrefix(items[n].Name, identityPrefix); isIdentity {
			missing[name] = &items[n]
		}
	}
	for n := range clusters {
		delete(missing, identityName(clusters[n].Ref))
	}
	return missing, nil
}

// withInstallations are the names of Clusters that installations were made for.
func (i *Identities) withInstallations(ctx context.Context) (map[string]bool, error) {
	var installations v1.AddonInstallationList
	if err := i.client.List(ctx, &installations, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing installations: %w", err)
	}
	busy := map[string]bool{}
	for n := range installations.Items {
		one := &installations.Items[n]
		if one.Status.Cluster != nil {
			busy[one.Status.Cluster.Name] = true
		}
		if name, isCluster := strings.CutPrefix(one.Namespace, NamespacePrefix); isCluster {
			busy[name] = true
		}
	}
	return busy, nil
}

// leave notes on the ConfigMap of a Cluster that is gone since when that is known, and removes it once its time is over.
func (i *Identities) leave(ctx context.Context, name string, seen *metav1.PartialObjectMetadata) error {
	since, err := time.Parse(time.RFC3339, seen.Annotations[annotationGone])
	if err == nil && i.now().Sub(since) >= leftKept {
		return i.remove(ctx, name, seen)
	}
	if err == nil {
		return nil
	}
	i.claims.Lock()
	defer i.claims.Unlock()
	i.forget(name) // its resourceVersion is another one from here on
	noted := &corev1.ConfigMap{}
	if err := i.reader.Get(ctx, client.ObjectKeyFromObject(seen), noted); err != nil {
		return client.IgnoreNotFound(err)
	}
	if noted.ResourceVersion != seen.ResourceVersion {
		return nil // a Cluster came back
	}
	if noted.Annotations == nil {
		noted.Annotations = map[string]string{}
	}
	noted.Annotations[annotationGone] = i.now().Format(time.RFC3339)
	if err := i.client.Update(ctx, noted); err != nil {
		return fmt.Errorf("noting that Cluster %q is gone: %w", name, err)
	}
	return nil
}

// remove takes a ConfigMap away as it was seen: one that was written meanwhile, or made anew, stays.
func (i *Identities) remove(ctx context.Context, name string, seen *metav1.PartialObjectMetadata) error {
	i.claims.Lock()
	defer i.claims.Unlock()
	err := i.client.Delete(ctx, seen, client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
	i.forget(name)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the identity of Cluster %q, which is gone: %w", name, err)
	}
	return nil
}
