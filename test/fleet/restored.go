package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// tidyDeadline is how long controllers and API server may take to follow; a variable, since a test shows what
// happens after it.
var tidyDeadline = time.Minute

// listsAtOnce are as many as one API server answers well.
const listsAtOnce = 8

// leftShown are the keys that an error names.
const leftShown = 10

// restore makes the cluster as it was when the pool started it, in etcd, past finalizers and webhooks. It is done
// when etcd has what it had, and the API server, which follows etcd, has in its caches what etcd has and serves what
// it served. What comes again meanwhile, as a controller writes it that did not see yet that its reason is gone, is
// removed again.
func (l *lease) restore(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, tidyDeadline, true, func(ctx context.Context) (bool, error) {
		found, err := l.compare(ctx)
		if err != nil {
			return false, err
		}
		if err := l.write(ctx, found.undo); err != nil {
			return false, err
		}
		if len(found.left) > 0 {
			some := found.left[:min(len(found.left), leftShown)]
			last = fmt.Errorf("%d keys, such as %s", len(found.left), strings.Join(some, ", "))
			return false, nil
		}
		last = l.follows(ctx, found.revisions)
		return last == nil, nil
	})
	if err != nil && wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// follows is an error where the API server has other objects in its caches than those of the revisions, which are
// sorted, or serves other kinds than at its start.
func (l *lease) follows(ctx context.Context, revisions []int64) error {
	served, err := servedBy(l.config)
	if err != nil {
		return err
	}
	if !slices.Equal(served, l.Served) {
		return fmt.Errorf("the API server serves %d kinds; at its start %d", len(served), len(l.Served))
	}
	inCaches, err := listed(ctx, l.config, served)
	if err != nil {
		return err
	}
	for revision, name := range inCaches {
		if _, isStored := slices.BinarySearch(revisions, revision); !isStored {
			return fmt.Errorf("the API server lists %s, which etcd has no more", name)
		}
	}
	for _, revision := range revisions {
		if _, isListed := inCaches[revision]; !isListed {
			return fmt.Errorf("the API server does not list yet what etcd has in revision %d", revision)
		}
	}
	return nil
}

// servedBy are the resources that can be listed, each in the version that the API server prefers, sorted.
func servedBy(config *rest.Config) ([]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	var served []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				served = append(served, list.GroupVersion+"/"+resource.Name)
			}
		}
	}
	slices.Sort(served)
	return served, nil
}

// listed are the objects in the API server's caches by their revisions, but for those that change by themselves.
// Several that were written in one transaction have one revision.
func listed(ctx context.Context, config *rest.Config, served []string) (map[int64]string, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	var mutex sync.Mutex
	found := map[int64]string{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	for _, one := range served {
		at := strings.LastIndex(one, "/")
		version, err := schema.ParseGroupVersion(one[:at])
		if err != nil {
			return nil, err
		}
		resource := version.WithResource(one[at+1:])
		if resource.Resource == "events" || resource.Resource == "componentstatuses" { // the latter are stored nowhere
			continue
		}
		group.Go(func() error {
			list, err := client.Resource(resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return fmt.Errorf("listing %s: %w", resource, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			for _, item := range list.Items {
				name := "/" + resource.Resource + "/" + item.Namespace + "/" + item.Name
				revision, err := strconv.ParseInt(item.ResourceVersion, 10, 64)
				if err != nil {
					return fmt.Errorf("reading the revision of %s: %w", name, err)
				}
				if !changesByItself(name) {
					found[revision] = name
				}
			}
			return nil
		})
	}
	return found, group.Wait()
}
