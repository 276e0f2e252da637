package removal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// keepsNamespace says whether a Namespace stays: it is not ours, another installation targets it, it has objects of others, or it
// can't be listed completely. In the last case it may wait (RemoveOptions.AwaitKinds).
func (r removal) keepsNamespace(ctx context.Context, entry ownership.Entry) (verdict, error) {
	if !entry.Created || slices.Contains(r.options.KeepNamespaces, entry.Name) || r.target.Served == nil {
		return verdict{keep: true}, nil
	}
	r.target.Mapper.Reset() // there may be new kinds
	kinds, err := r.namespacedKinds()
	if err != nil {
		return verdict{}, err
	}
	census := &census{
		target: r.target, kinds: r.kinds, namespace: entry.Name, owner: r.owner, uids: map[types.UID]bool{},
		hasReleases: entry.Name == r.options.Namespace, spared: r.options.Spared, unlisted: r.unlistedGroups(),
	}
	if err := calls.Each(ctx, kinds, census.count); err != nil {
		return verdict{}, err
	}
	foreign := census.stays
	if !foreign {
		if foreign, err = census.hasForeign(ctx); err != nil {
			return verdict{}, err
		}
	}
	switch {
	case foreign:
		r.kept(entry.Name, cmp.Or(census.because, "it has objects that this installation did not create"))
	case census.unlisted == "":
		return verdict{}, nil
	case r.options.AwaitKinds:
		return verdict{until: fmt.Sprintf("%s is not deleted yet, since its content can't be listed: %s", entry.Key, census.unlisted)}, nil
	default:
		r.kept(entry.Name, census.unlisted+". Delete the namespace when nothing is in it")
	}
	return verdict{keep: true}, nil
}

func (r removal) kept(namespace, why string) {
	if r.options.Kept != nil {
		r.options.Kept(namespace, why)
	}
}

// unlistedGroups names the kinds that discovery can't list, and the solution; "" for none.
func (r removal) unlistedGroups() string {
	missing := r.target.Served.MissingGroups()
	if len(missing) == 0 {
		if len(r.target.Served.APIVersions()) == 0 {
			return "the API server does not list its kinds"
		}
		return ""
	}
	services := make([]string, len(missing))
	for i, one := range missing {
		group, version, _ := strings.Cut(one, "/")
		services[i] = calls.CutText(version + "." + group)
	}
	return fmt.Sprintf("no server serves %s: start its server, or delete the APIService", text.Names(services, maxServicesNamed))
}

// whyEnding is the message of a Namespace about its own deletion; "" if it has none.
func (d *deleter) whyEnding(ctx context.Context, entry ownership.Entry) string {
	if entry.GroupKind() != ownership.NamespaceGK {
		return ""
	}
	live, err := calls.ReadWhole(ctx, d.target.Dynamic.Resource(calls.Namespaces), calls.Place{Name: entry.Name})
	if err != nil {
		return ""
	}
	for _, condition := range calls.ConditionsOf(live) {
		if condition.Status == metav1.ConditionTrue && slices.Contains(endingConditions, condition.Type) {
			return ": " + calls.CutText(condition.Message)
		}
	}
	return ""
}

// endingConditions of a Namespace, from k8s.io/api/core/v1; the API server lists causes before their effects.
var endingConditions = []string{
	string(corev1.NamespaceDeletionDiscoveryFailure), string(corev1.NamespaceDeletionGVParsingFailure),
	string(corev1.NamespaceDeletionContentFailure), string(corev1.NamespaceContentRemaining), string(corev1.NamespaceFinalizersRemaining),
}

// endpoints are deprecated copies of Services' endpoints; listing them makes the API server warn.
var endpoints = schema.GroupResource{Resource: "endpoints"}

var volumeClaims = schema.GroupResource{Resource: "persistentvolumeclaims"}

// namespacedKinds has each kind that discovery lists, in one version.
func (r removal) namespacedKinds() (found []calls.Resource, err error) {
	seen := map[schema.GroupKind]bool{}
	for _, served := range r.target.Served.APIVersions() {
		gvk, isKind := parseKind(served)
		if !isKind || seen[gvk.GroupKind()] {
			continue
		}
		where, known, err := r.kinds.Find(gvk)
		if err != nil {
			return nil, fmt.Errorf("looking up kind %q: %w", gvk.Kind, err)
		}
		if known && where.Namespaced && where.GroupResource() != endpoints {
			found = append(found, where)
		}
		seen[gvk.GroupKind()] = true
	}
	return found, nil
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
	// Beyond these numbers a namespace stays; each owner outside it costs a call.
	maxCounted = 100_000
	maxOwners  = 1000
	// maxServicesNamed is how many APIServices a message names.
	maxServicesNamed = 5
)

type census struct {
	target    calls.Target
	kinds     *calls.Kinds
	namespace string
	// owner's own hooks and, if hasReleases, release Secrets do not count.
	owner       ownership.Owner
	hasReleases bool
	spared      []types.UID

	lock   sync.Mutex
	uids   map[types.UID]bool
	owners map[types.UID]metav1.OwnerReference
	// stays is final: an object has no owner, or there are too many.
	stays   bool
	because string
	// unlisted names the kinds that can't be listed, since their server is down. The namespace could not be finalized either
	// then.
	unlisted string
}

// count lists one kind. Kinds that can't be listed (reviews, bindings) have no objects.
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
		if decided := c.add(where, page.Items); decided {
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
		c.unlisted = cmp.Or(c.unlisted, fmt.Sprintf("the API server can't list %s: check APIService %s, or the kind's conversion webhook",
			calls.CutText(where.GroupResource().String()), calls.CutText(where.Version+"."+where.Group)))
		return nil
	}
	return fmt.Errorf("listing the %s in namespace %q: %w", where.Resource, c.namespace, err)
}

func (c *census) isDecided() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.stays
}

func (c *census) add(where calls.Resource, items []metav1.PartialObjectMetadata) (decided bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := range items {
		c.stays = c.stays || !calls.IsUID(items[i].UID) || len(c.uids) == maxCounted
		if c.stays {
			break
		}
		c.uids[items[i].UID] = true
		if c.isDefaultObject(where, &items[i]) {
			continue
		}
		if c.addOwners(items[i].OwnerReferences); c.stays {
			c.because = fmt.Sprintf("it has %s, which this installation did not create",
				calls.CutText(where.GroupResource().String()+" "+items[i].Name))
		}
	}
	return c.stays
}

func (c *census) addOwners(owners []metav1.OwnerReference) {
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

const maxOwnerText = 2 << 10

func (c *census) isDefaultObject(where calls.Resource, object *metav1.PartialObjectMetadata) bool {
	if object.DeletionTimestamp != nil || slices.Contains(c.spared, object.UID) || c.isHookOfOurs(where, object) {
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

// isHookOfOurs says whether an object was left by a hook of the installation, and is no data.
func (c *census) isHookOfOurs(where calls.Resource, object *metav1.PartialObjectMetadata) bool {
	if where.GroupResource() == volumeClaims || ownership.StaysBehind(object) {
		return false
	}
	return c.ownershipOf(object).IsLeftByHook()
}

func (c *census) ownershipOf(object *metav1.PartialObjectMetadata) ownership.Ownership {
	return ownership.Of(object, ownership.Question{Owner: c.owner})
}

// hasForeign says whether an owner outside the lists exists: its object is not collected.
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
		exists, err := c.ownerExists(ctx, owner)
		if err != nil || exists {
			return true, err
		}
	}
	return false, nil
}

func (c *census) ownerExists(ctx context.Context, owner metav1.OwnerReference) (bool, error) {
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

// Inherited is the entry of a namespace whose creator, another installation, is deleted: the last installation that
// targets it removes it. Nil if its creator exists or is not one of ours, which field managers show; an adopted
// namespace was not created by one of ours.
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
