package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values"
)

// pageSize is how many objects one call lists.
const pageSize = 500

// kkpPrefix and the name of a Cluster of KKP make up the name of its namespace.
const kkpPrefix = "cluster-"

// clusterHint says how to name a cluster.
const clusterHint = "name one with --cluster; `kubectl addons list -A` shows those with installations"

// NamesCluster says whether the caller gave --cluster.
func (t *Tool) NamesCluster() bool { return t.cluster != "" }

// Namespace is that of --namespace or of the context; empty: neither names one.
func (t *Tool) Namespace() (string, error) {
	loader := t.connection.ToRawKubeConfigLoader()
	namespace, isGiven, err := loader.Namespace()
	if err != nil || isGiven {
		return namespace, err
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return "", err
	}
	current := raw.CurrentContext
	if given := *t.connection.Context; given != "" {
		current = given
	}
	if context := raw.Contexts[current]; context != nil {
		return context.Namespace, nil
	}
	return "", nil
}

// Cluster finds the cluster of --cluster by its available catalogue, which is returned too: that of KKP's Cluster in
// its namespace, or that of a Cluster of Cluster API. Without --cluster it is that of --namespace. Errors: ExitUsage,
// ExitNotFound with the nearest name, ExitForbidden.
func (t *Tool) Cluster(ctx context.Context, seed *Platform) (target.Ref, *v1.AddonCatalogue, error) {
	return t.FindCluster(ctx, seed, t.cluster)
}

// FindCluster is Cluster for a cluster that is named as --cluster does.
func (t *Tool) FindCluster(ctx context.Context, seed *Platform, named string) (target.Ref, *v1.AddonCatalogue, error) {
	namespace, name, isLong := strings.Cut(named, "/")
	if !isLong {
		name = namespace
		namespace = *t.connection.Namespace
	}
	if name == "" {
		if named != "" {
			return target.Ref{}, nil, Fail(ExitUsage, "write it as NAME or NAMESPACE/NAME", "%q names no cluster", named)
		}
		given, err := t.Namespace()
		if err != nil {
			return target.Ref{}, nil, err
		}
		if name, isLong = strings.CutPrefix(given, kkpPrefix); !isLong {
			return target.Ref{}, nil, Fail(ExitUsage, clusterHint, "no cluster is named")
		}
		namespace = given
	}
	ref := target.Ref{Kind: target.KindClusterAPI, Namespace: namespace, Name: name}
	if of := kkpPrefix + name; namespace == "" || namespace == of {
		ref.Kind, ref.Namespace = target.KindKKP, of
	}
	found := &v1.AddonCatalogue{}
	err := seed.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.AvailableName()}, found)
	if err == nil || !apierrors.IsNotFound(err) {
		return ref, found, err
	}
	return search(ctx, seed, namespace, name)
}

// Place is the cluster of --cluster, else the namespace of -n or of the context; empty: there is none of these.
func (t *Tool) Place(ctx context.Context, seed *Platform) (target.Ref, error) {
	if t.NamesCluster() {
		of, _, err := t.Cluster(ctx, seed)
		return of, err
	}
	namespace, err := t.Namespace()
	return target.Ref{Namespace: namespace}, err
}

// search looks for a cluster among all available catalogues that the caller may list. It lists their metadata only: there may be thousands.
func search(ctx context.Context, seed *Platform, namespace, name string) (target.Ref, *v1.AddonCatalogue, error) {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonCatalogueList"))
	err := seed.List(ctx, &all, client.InNamespace(namespace), client.MatchingLabels{v1.LabelRole: v1.RoleAvailable})
	if err != nil {
		return target.Ref{}, nil, err
	}
	var matching, known []string
	ref := target.Ref{Kind: target.KindClusterAPI, Name: name}
	for i := range all.Items {
		one := &all.Items[i]
		if one.Name == ref.AvailableName() {
			ref.Namespace, matching = one.Namespace, append(matching, one.Namespace+"/"+name)
		}
		known = append(known, clusterOf(one.ObjectMeta))
	}
	switch len(matching) {
	case 1:
		found := &v1.AddonCatalogue{}
		return ref, found, seed.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.AvailableName()}, found)
	case 0:
		return ref, nil, Fail(ExitNotFound, nearest(name, known), "no cluster %q has a catalogue of add-ons", name)
	}
	slices.Sort(matching)
	return ref, nil, Fail(ExitUsage, "name one as NAMESPACE/NAME: "+text.Names(matching, 5), "several clusters are named %q", name)
}

// clusterOf is the name of an available catalogue's cluster.
func clusterOf(available metav1.ObjectMeta) string {
	if name, isCAPI := strings.CutPrefix(available.Name, v1.AvailableCatalogue+"-"); isCAPI {
		return name
	}
	return strings.TrimPrefix(available.Namespace, kkpPrefix)
}

// nearest is a hint: the known name that was probably meant, or the first few known names.
func nearest(name string, known []string) string {
	slices.Sort(known)
	known = slices.Compact(known)
	for _, one := range known {
		if values.IsSlip(name, one) {
			return fmt.Sprintf("did you mean %q?", one)
		}
	}
	if len(known) == 0 {
		return "none has one"
	}
	return "the known names are " + text.Names(known, 5)
}

// Listing says which objects Each lists.
type Listing struct {
	// Into is an empty list of the wanted kind.
	Into client.ObjectList
	// Most is how many objects are enough: Each ends after the page that has this one. 0: all are visited.
	Most int
	// Options may set another size of pages.
	Options []client.ListOption
}

// Each visits the objects of a list, page by page, until an error of visit, and reports whether Most ended it. A server that users run may
// answer empty pages without end, so an empty page counts as an object.
func Each[T client.Object](ctx context.Context, p *Platform, of Listing, visit func(T) error) (isCut bool, err error) {
	for next, count := "", 0; ; {
		page := of.Into.DeepCopyObject().(client.ObjectList)
		options := slices.Concat([]client.ListOption{client.Limit(pageSize)}, of.Options, []client.ListOption{client.Continue(next)})
		err := p.List(ctx, page, options...)
		if err != nil {
			return false, err
		}
		err = meta.EachListItem(page, func(one runtime.Object) error { return visit(one.(T)) })
		if err != nil {
			return false, err
		}
		count += max(meta.LenList(page), 1)
		switch next = page.GetContinue(); {
		case next == "":
			return false, nil
		case of.Most > 0 && count >= of.Most:
			return true, nil
		}
	}
}

// Installations lists the installations of a namespace, of all if it is empty, page by page. Of a cluster only its own
// ones are returned.
func (p *Platform) Installations(ctx context.Context, of target.Ref) ([]v1.AddonInstallation, error) {
	var found []v1.AddonInstallation
	listing := Listing{Into: &v1.AddonInstallationList{}, Options: []client.ListOption{client.InNamespace(of.Namespace)}}
	_, err := Each(ctx, p, listing, func(one *v1.AddonInstallation) error {
		if of.Name == "" || of.Has(one) {
			found = append(found, *one)
		}
		return nil
	})
	return found, err
}

// Installation reads an installation of a place by its name, with or without the cluster's part of it, or by its add-on if
// that has one there. Errors: ExitUsage without a place, ExitNotFound with the nearest name.
func (p *Platform) Installation(ctx context.Context, of target.Ref, name string) (*v1.AddonInstallation, error) {
	if err := CheckName("installation", name); err != nil {
		return nil, err
	}
	if of.Namespace == "" {
		return nil, Fail(ExitUsage, clusterHint, "no cluster is named")
	}
	for _, one := range slices.Compact([]string{name, of.NameOf(name)}) {
		found := &v1.AddonInstallation{}
		err := p.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: one}, found)
		if err == nil && (of.Name == "" || of.Has(found)) {
			return found, nil
		} else if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	all, err := p.Installations(ctx, of)
	if err != nil {
		return nil, err
	}
	var known []string
	var ofAddon []*v1.AddonInstallation
	for i := range all {
		known = append(known, all[i].Name)
		if string(all[i].Spec.AddonRef.Name) == name {
			ofAddon = append(ofAddon, &all[i])
		}
	}
	if len(ofAddon) == 1 {
		return ofAddon[0], nil
	}
	return nil, Fail(ExitNotFound, nearest(name, known), "namespace %q has no installation %q of this cluster", of.Namespace, name)
}

// Events are those of a namespace about AddonInstallations, of one if it is named, the newest first.
func (p *Platform) Events(ctx context.Context, namespace, name string) ([]eventsv1.Event, error) {
	about := client.MatchingFields{"regarding.kind": "AddonInstallation"}
	if name != "" {
		about["regarding.name"] = name
	}
	var found eventsv1.EventList
	if err := p.List(ctx, &found, client.InNamespace(namespace), about); err != nil {
		return nil, err
	}
	slices.SortStableFunc(found.Items, func(a, b eventsv1.Event) int { return view.LastSeen(&b).Compare(view.LastSeen(&a)) })
	return found.Items, nil
}

// NamesOf are the names of all elements.
func NamesOf[T any](of []T, name func(*T) string) []string {
	names := make([]string, len(of))
	for i := range of {
		names[i] = name(&of[i])
	}
	return names
}

// Nearest makes the error for a name that does not exist, with the name that was probably meant.
func Nearest(what, name string, known []string) error {
	return Fail(ExitNotFound, nearest(name, known), "there is no %s %q", what, name)
}
