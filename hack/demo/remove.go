package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// snapshot is every object of a cluster, as kind namespace/name, with its UID.
type snapshot map[string]types.UID

// remove deletes the installations of both clusters and compares the clusters with what they held before.
func (s *story) remove(ctx context.Context) error {
	group, deleting := errgroup.WithContext(ctx)
	for _, cluster := range s.both() {
		bystander := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bystander", Namespace: "default"}}
		if err := s.box.Client(cluster.Name).Create(ctx, bystander); err != nil {
			return fmt.Errorf("creating a bystander: %w", err)
		}
		s.before[cluster.Name]["configmaps default/bystander"] = bystander.UID
		for _, name := range []string{"web", "greeter"} {
			group.Go(func() error {
				begin := time.Now()
				if err := s.delete(deleting, cluster, name); err != nil {
					return err
				}
				s.progress.Printf("  %s: installation %s is gone after %.1f s", cluster.Name, name, time.Since(begin).Seconds())
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return each(ctx, s.both(), func(ctx context.Context, cluster sandbox.UserCluster) error {
		if err := s.awaitAsBefore(ctx, cluster); err != nil {
			return err
		}
		s.progress.Printf("  %s holds the %d objects of before the installations, and no other",
			cluster.Name, len(s.before[cluster.Name]))
		return nil
	})
}

// noteBefore keeps what clusters hold now, for awaitAsBefore.
func (s *story) noteBefore(ctx context.Context, clusters ...sandbox.UserCluster) error {
	var mutex sync.Mutex
	return each(ctx, clusters, func(ctx context.Context, cluster sandbox.UserCluster) error {
		found, err := s.snapshot(ctx, cluster.Name)
		mutex.Lock()
		defer mutex.Unlock()
		s.before[cluster.Name] = found
		return err
	})
}

func (s *story) delete(ctx context.Context, cluster sandbox.UserCluster, name string) error {
	installation := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace()}}
	seed := s.box.Client(cluster.Seed)
	if err := seed.Delete(ctx, installation); err != nil {
		return fmt.Errorf("deleting installation %q in %s: %w", name, cluster.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := seed.Get(ctx, client.ObjectKeyFromObject(installation), installation)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("installation %q in %s does not go: %w; conditions %+v",
			name, cluster.Name, err, installation.Status.Conditions)
	}
	return nil
}

// awaitAsBefore waits until the cluster holds what it held, since what Kubernetes itself collects goes a little later.
func (s *story) awaitAsBefore(ctx context.Context, cluster sandbox.UserCluster) error {
	var differences []string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := s.snapshot(ctx, cluster.Name)
		if err != nil {
			return false, err
		}
		differences = compare(s.before[cluster.Name], now)
		return len(differences) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not as before: %w: %s", cluster.Name, err, strings.Join(differences, "; "))
	}
	return nil
}

func compare(before, after snapshot) []string {
	var differences []string
	for _, object := range slices.Sorted(maps.Keys(before)) {
		if after[object] != before[object] {
			differences = append(differences, "lost "+object)
		}
	}
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if _, known := before[object]; !known {
			differences = append(differences, "left "+object)
		}
	}
	return differences
}

// transient are resources that Kubernetes makes and drops by itself.
var transient = map[string]bool{"events": true, "leases": true, "componentstatuses": true}

// snapshot lists the metadata of everything that can be listed.
func (s *story) snapshot(ctx context.Context, name string) (snapshot, error) {
	config := rest.CopyConfig(s.box.Fleet.Cluster(name).Config)
	config.WarningHandler = rest.NoWarnings{} // of deprecated kinds, which are listed all the same
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	lister, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	lists, err := discovery.ServerPreferredResources(finder)
	if err != nil {
		return nil, fmt.Errorf("asking %s for its resources: %w", name, err)
	}
	found := snapshot{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the resources of %s: %w", name, err)
		}
		for _, kind := range list.APIResources {
			if transient[kind.Name] {
				continue
			}
			if err := found.add(ctx, lister, group.WithResource(kind.Name)); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func (s snapshot) add(ctx context.Context, lister metadata.Interface, resource schema.GroupVersionResource) error {
	objects, err := lister.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) { // the kind went after discovery
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	for _, object := range objects.Items {
		s[resource.GroupResource().String()+" "+object.Namespace+"/"+object.Name] = object.UID
	}
	return nil
}
