package removal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// keepsNamespace says whether a Namespace stays: it is not ours, another installation targets it, or somebody's object is
// in it. Where not everything that may be in it can be listed, it stays.
func (r removal) keepsNamespace(ctx context.Context, entry ownership.Entry) (bool, error) {
	if !entry.Created || slices.Contains(r.options.KeepNamespaces, entry.Name) || r.target.Served == nil {
		return true, nil
	}
	r.target.Mapper.Reset() // kinds may have come since it last asked
	kinds, complete, err := r.namespacedKinds()
	if err != nil || !complete {
		return true, err
	}
	census := &census{
		target: r.target, kinds: r.kinds, namespace: entry.Name, owner: r.owner, uids: map[types.UID]bool{},
		hasReleases: entry.Name == r.options.Namespace,
	}
	if err := calls.Each(ctx, kinds, census.count); err != nil {
		return true, err
	}
	if !census.stays {
		if foreign, err := census.hasForeign(ctx); !foreign || err != nil {
			return foreign, err
		}
	}
	if r.options.Kept != nil {
		r.options.Kept(entry.Name, cmp.Or(census.because, "something is in it that belongs to somebody else"))
	}
	return true, nil
}

// endpoints are deprecated shadows of Services and come and go with them; asking for them makes the API server warn.
var endpoints = schema.GroupResource{Resource: "endpoints"}

var volumeClaims = schema.GroupResource{Resource: "persistentvolumeclaims"}

// namespacedKinds are all kinds of which objects may stand in a namespace, each in one version. They are not complete while
// a group can't be asked.
func (r removal) namespacedKinds() (found []calls.Resource, complete bool, err error) {
	served := r.target.Served.APIVersions()
	if len(served) == 0 || len(r.target.Served.MissingGroups()) > 0 {
		return nil, false, nil
	}
	seen := map[schema.GroupKind]bool{}
	for _, text := range served {
		gvk, isKind := parseKind(text)
		if !isKind || seen[gvk.GroupKind()] {
			continue
		}
		where, known, err := r.kinds.Find(gvk)
		if err != nil {
			return nil, false, fmt.Errorf("looking up kind %q: %w", gvk.Kind, err)
		}
		if known && where.Namespaced && where.GroupResource() != endpoints {
			found = append(found, where)
		}
		seen[gvk.GroupKind()] = true
	}
	return found, true, nil
}

// parseKind reads "apps/v1/Deployment" and "v1/Pod"; "apps/v1" and "v1" are no kinds.
func parseKind(text string) (schema.GroupVersionKind, bool) {
	words := strings.Split(text, "/")
	last := words[len(words)-1]
	if len(words) < 2 || len(words) > 3 || last == "" || strings.ToLower(last[:1]) == last[:1] {
		return schema.GroupVersionKind{}, false
	}
	if len(words) == 2 {
		return schema.GroupVersionKind{Version: words[0], Kind: last}, true
	}
	return schema.GroupVersionKind{Group: words[0], Version: words[1], Kind: last}, true
}

const (
	// maxCounted is how many objects of a namespace are counted before it is left alone.
	maxCounted = 100_000
	// maxOwners is how many owners outside of the lists are asked for, each by a call of its own, before a namespace is left alone.
	maxOwners = 1000
)

type census struct {
	target    calls.Target
	kinds     *calls.Kinds
	namespace string
	// owner is the installation whose hooks may have left objects here, and, where it hasReleases, whose release Secrets may be here.
	owner       ownership.Owner
	hasReleases bool

	lock sync.Mutex
	uids map[types.UID]bool
	// owners are those of the objects that have some, each once.
	owners map[types.UID]metav1.OwnerReference
	// stays says that the namespace does, whatever else is found: an object has no owner, there is more than is counted, or a kind
	// could not be looked at, since what serves or converts it is down, and the namespace could not end either.
	stays bool
	// because says why, where one thing is the reason.
	because string
}

// count lists one kind. Kinds that can't be listed (reviews, bindings) hold no objects.
func (c *census) count(ctx context.Context, where calls.Resource) error {
	if c.isDecided() {
		return nil
	}
	client := c.target.Metadata.Resource(where.GroupVersionResource).Namespace(c.namespace)
	err := calls.EachPage(ctx, "", func(ctx context.Context, options metav1.ListOptions) (calls.Page, error) {
		page, err := client.List(ctx, options)
		if err != nil {
			return calls.Page{}, err
		}
		if settled := c.add(where, page.Items); settled {
			return calls.Page{}, nil
		}
		return calls.Page{Items: len(page.Items), Next: page.Continue}, nil
	})
	if err == nil || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if calls.IsKindTrouble(schema.GroupKind{Group: where.Group}, err) {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.stays, c.because = true, fmt.Sprintf("its %s can't be listed", where.GroupResource())
		return nil
	}
	return fmt.Errorf("listing the %s in namespace %q: %w", where.Resource, c.namespace, err)
}

// isDecided says whether nothing that is found can change that the namespace stays.
func (c *census) isDecided() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.stays
}

func (c *census) add(where calls.Resource, items []metav1.PartialObjectMetadata) (settled bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := range items {
		c.stays = c.stays || !calls.IsUID(items[i].UID) || len(c.uids) == maxCounted
		if c.stays {
			break
		}
		c.uids[items[i].UID] = true
		if c.isFurniture(where, &items[i]) {
			continue
		}
		if c.keep(items[i].OwnerReferences); c.stays {
			c.because = fmt.Sprintf("it has %s of somebody else", calls.CutText(where.GroupResource().String()+" "+items[i].Name))
		}
	}
	return c.stays
}

// keep remembers the owners of an object; one without any stays, and the namespace with it.
func (c *census) keep(owners []metav1.OwnerReference) {
	if c.owners == nil {
		c.owners = map[types.UID]metav1.OwnerReference{}
	}
	c.stays = len(owners) == 0 || len(owners) > calls.MaxMetadata
	for _, owner := range owners {
		size := len(owner.APIVersion) + len(owner.Kind) + len(owner.Name)
		if c.stays = c.stays || !calls.IsUID(owner.UID) || size > maxOwnerText || len(c.owners) == maxCounted; c.stays {
			return
		}
		c.owners[owner.UID] = owner
	}
}

// maxOwnerText is how long the words are that name an owner, in bytes.
const maxOwnerText = 2 << 10

// isFurniture says whether an object stands in every namespace, or comes and goes by itself.
func (c *census) isFurniture(where calls.Resource, object *metav1.PartialObjectMetadata) bool {
	if object.DeletionTimestamp != nil || c.isHookOfOurs(where, object) {
		return true
	}
	switch where.GroupResource().String() {
	case "serviceaccounts":
		return object.Name == "default"
	case "configmaps":
		return object.Name == "kube-root-ca.crt"
	case "secrets":
		return c.hasReleases && object.Labels["owner"] == "helm" && c.ownershipOf(object).IsLabelled()
	case "events", "events.events.k8s.io", "pods.metrics.k8s.io":
		return true
	}
	return false
}

// isHookOfOurs says whether a hook of the installation left an object. What was made as such goes with the namespace, but not
// data, and not what is to stay.
func (c *census) isHookOfOurs(where calls.Resource, object *metav1.PartialObjectMetadata) bool {
	if where.GroupResource() == volumeClaims || ownership.StaysBehind(object) {
		return false
	}
	return c.ownershipOf(object).IsLeftByHook()
}

func (c *census) ownershipOf(object *metav1.PartialObjectMetadata) ownership.Ownership {
	return ownership.Of(object, ownership.Question{Owner: c.owner})
}

// hasForeign says whether something is in the namespace that would not go by itself: an object with an owner that lives. An owner
// that stands in the lists decides by its own owners.
func (c *census) hasForeign(ctx context.Context) (bool, error) {
	asked := 0
	for uid, owner := range c.owners {
		if c.uids[uid] {
			continue
		}
		if asked++; asked > maxOwners {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return true, err
		}
		lives, err := c.lives(ctx, owner)
		if err != nil || lives {
			return true, err
		}
	}
	return false, nil
}

// lives says whether an owner outside of the namespace's lists exists. One whose kind is not served went with its kind.
func (c *census) lives(ctx context.Context, owner metav1.OwnerReference) (bool, error) {
	gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	where, served, err := c.kinds.Find(gvk)
	if err != nil {
		return true, fmt.Errorf("looking up kind %q: %w", calls.CutText(owner.Kind), err)
	}
	if !served {
		return false, nil
	}
	live, err := calls.ClientOf(c.target, where, c.namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("reading the owner %s %q: %w", calls.CutText(owner.Kind), calls.CutText(owner.Name), err)
	}
	return live.UID == owner.UID && live.DeletionTimestamp == nil, nil
}

// Inherited is the entry of a namespace that another installation made, which is gone: the last one that asked for the
// namespace removes it, as it would one of its own. Nil where somebody else made it, or its maker exists; nameOf is as in
// RolloutOptions. What made a namespace is told by its field managers: none of ours applies one that was there before.
func Inherited(
	ctx context.Context, target calls.Target, owner ownership.Owner, name string, nameOf func(id string) string,
) (*ownership.Entry, error) {
	if name == "" || nameOf == nil {
		return nil, nil
	}
	key := ownership.Key{Kind: ownership.NamespaceGK.Kind, Name: name}
	where, served, err := (&calls.Kinds{Mapper: target.Mapper}).FindAny(key, "v1")
	if err != nil || !served {
		return nil, err
	}
	live, err := calls.ClientOf(target, where, "").Read(ctx, key)
	if err != nil || live == nil {
		return nil, err
	}
	if !ownership.Of(live, ownership.Question{Owner: owner, NameOf: nameOf}).IsOrphaned() {
		return nil, nil
	}
	return &ownership.Entry{Key: key, Version: "v1", UID: live.UID, Created: true}, nil
}
