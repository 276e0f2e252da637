package helmrelease

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	validate "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/listcache"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/remote"
)

const (
	// foreignListed and foreignPages bound the revisions of one release that are listed; helm itself keeps 10.
	foreignListed, foreignPages = 500, 20
	// namesListed is how many revisions of a namespace's releases are listed together; beyond, each name is asked for.
	namesListed = 2000
	// highestRevision is the last revision that is believed of a Secret's name; there have to be numbers after it.
	highestRevision = 1 << 24
)

var secretResource = corev1.SchemeGroupVersion.WithResource("secrets")

// Place is where a Helm release's Secrets are: one namespace of a user cluster.
type Place struct {
	// Metadata lists them without their content.
	Metadata metadata.Interface
	Secrets  corev1client.SecretInterface
	// Namespace of the release.
	Namespace string
	// NameOf gives the name of the installation with an ID; "" where there is none, or none any more. It may be nil.
	NameOf func(id string) string
	// Names are the revisions of releases of the user cluster. It may be nil.
	Names *listcache.Lists
}

// lacks says whether there is no release of the name: it was not on the list, and what was made since would begin with revision 1.
func (p Place) lacks(ctx context.Context, name string) (bool, error) {
	if p.Names == nil {
		return false, nil
	}
	secrets := p.Metadata.Resource(secretResource).Namespace(p.Namespace)
	known, sure, err := p.Names.Find(ctx, p.Namespace, name, func() (map[string][]int, bool, error) {
		options := metav1.ListOptions{LabelSelector: "owner=helm", FieldSelector: "type=" + secretType, Limit: namesListed}
		list, err := secrets.List(ctx, options)
		if err != nil {
			return nil, false, fmt.Errorf("listing the Helm releases of namespace %q: %w", p.Namespace, err)
		}
		names := map[string][]int{}
		for i := range list.Items[:min(len(list.Items), namesListed)] {
			one := list.Items[i].Labels["name"]
			if len(one) > validate.LabelValueMaxLength { // no API server has it
				continue
			}
			names[one] = append(names[one], revisionIn(list.Items[i].Name, one))
		}
		return names, list.Continue != "" || len(list.Items) > namesListed, nil
	})
	if err != nil || !sure || len(known) > 0 {
		return false, err
	}
	_, err = secrets.Get(ctx, fmt.Sprintf(nameFormat, name, 1), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for Helm release %q: %w", name, err)
	}
	return false, nil
}

// Foreign is a Helm release in a user cluster that no record of an owner knows.
type Foreign struct {
	Name, Namespace string
	// Revision is the newest one, and Secret the name of the Secret that holds it.
	Revision int
	Secret   string
	// Own says that every revision carries the owner's label: an installation of the same name left it behind.
	Own bool
	// Installation is another installation that has a revision of it and still exists; "" for none. Then the release can't be adopted.
	Installation string
	// FirstDeployed is when revision 1 was, as far as it can be read.
	FirstDeployed time.Time
	// Problem says why the newest revision can't be read, or which part of it; "" where all of it can.
	Problem string
	// Objects are those of the newest revision's manifest, each with the version of its kind. Where Namespace is empty and the
	// kind has one, it is the release's.
	Objects []ownership.Entry
	// Hooks are the objects of its hooks.
	Hooks []ownership.Entry
	// ByHand says that the release is ours, and that these are revisions of it that somebody else made.
	ByHand bool
	// PendingSince is since when the newest one is said to be under way; zero: it is not.
	PendingSince time.Time
}

// Marks are those that helm gives the objects of the release.
func (f *Foreign) Marks() ownership.HelmMarks {
	return ownership.HelmMarks{ReleaseName: f.Name, ReleaseNamespace: f.Namespace}
}

// Find looks for a Helm release of the name; nil where there is none. It is for owners that have no record of one: theirs
// would be found too. Of the Secrets only the newest is read, decoded with bounds, and believed as far as it says the same as its
// name. The error is the API server's.
func Find(ctx context.Context, place Place, name string, owner ownership.Owner) (*Foreign, error) {
	if lacks, err := place.lacks(ctx, name); lacks || err != nil {
		return nil, err
	}
	items, err := place.revisions(ctx, labels.SelectorFromSet(labels.Set{"owner": "helm", "name": name}), name)
	if err != nil {
		return nil, err
	}
	found := &Foreign{Name: name, Namespace: place.Namespace, Own: true}
	strangers := map[string]bool{} // owners that are looked up already
	for i := range items {
		if items[i].revision > found.Revision {
			found.Revision, found.Secret = items[i].revision, items[i].name
		}
		found.Own = found.Own && items[i].owner == owner.ID()
		if found.Installation == "" && !strangers[items[i].owner] {
			found.Installation = place.living(items[i], owner)
			strangers[items[i].owner] = true
		}
	}
	if found.Revision == 0 {
		return nil, nil
	}
	if found.Installation != "" {
		return found, nil
	}
	return found, found.read(ctx, place.Secrets)
}

// living names another installation that a revision belongs to and that still exists.
func (p Place) living(item item, owner ownership.Owner) string {
	secret := &metav1.ObjectMeta{Labels: map[string]string{v1.LabelInstallation: item.owner}}
	return ownership.Of(secret, ownership.Question{Owner: owner, NameOf: p.NameOf}).OtherName
}

// Adopt makes the revisions of a release before the given one the owner's, by their label alone: nothing is decoded. Those
// of another installation that still exists stay its own. Of the others, what says that it is current is superseded by Write
// then, old ones are trimmed, and all go with the installation.
func Adopt(ctx context.Context, place Place, before *Release, owner ownership.Owner) error {
	selector := labels.SelectorFromSet(labels.Set{"owner": "helm", "name": before.Name}).
		Add(requirement(v1.LabelInstallation, selection.NotIn, owner.ID()))
	items, err := place.revisions(ctx, selector, before.Name)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{v1.LabelInstallation: owner.ID()}}})
	if err != nil {
		return err
	}
	for i := range items {
		if items[i].revision >= before.Revision || place.living(items[i], owner) != "" {
			continue
		}
		held, release := remote.Hold(ctx)
		_, err := place.Metadata.Resource(secretResource).Namespace(place.Namespace).Patch(
			held, items[i].name, types.MergePatchType, patch, metav1.PatchOptions{})
		release()
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("taking over %q of Helm release %q: %w", items[i].name, before.Name, err)
		}
	}
	return nil
}

// item is what is kept of a Secret of a Helm release: its name, the revision in it, and the ID in our label.
type item struct {
	name     string
	revision int
	owner    string
	// pending says that it is under way, by its label, and made when it was.
	pending bool
	made    time.Time
}

// revisions are the Secrets of a release that a selector finds, but for those whose names are none of its revisions'.
func (p Place) revisions(ctx context.Context, selector labels.Selector, name string) ([]item, error) {
	options := metav1.ListOptions{LabelSelector: selector.String(), FieldSelector: "type=" + secretType, Limit: foreignListed}
	var items []item
	for range foreignPages { // pages are by name, in which revision 9 comes after 10
		page, err := p.Metadata.Resource(secretResource).Namespace(p.Namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the revisions of Helm release %q: %w", name, err)
		}
		for i := range page.Items {
			item := item{
				name: page.Items[i].Name, revision: revisionIn(page.Items[i].Name, name),
				pending: strings.HasPrefix(page.Items[i].Labels["status"], "pending-"), made: page.Items[i].CreationTimestamp.Time,
			}
			if item.revision == 0 {
				continue
			}
			if id := page.Items[i].Labels[v1.LabelInstallation]; len(id) <= validate.LabelValueMaxLength {
				item.owner = id
			}
			items = append(items, item)
		}
		if len(items) > foreignListed*foreignPages {
			return nil, &calls.MisbehavesError{Did: fmt.Sprintf("Helm release %q has more than %d revisions", name, foreignListed*foreignPages)}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	return items, nil
}

// revisionIn is the number in the name of a release's Secret; 0 for other names.
func revisionIn(secret, release string) int {
	digits, found := strings.CutPrefix(secret, strings.TrimSuffix(fmt.Sprintf(nameFormat, release, 0), "0"))
	revision, err := strconv.Atoi(digits)
	if !found || err != nil || revision < 1 || revision > highestRevision || strconv.Itoa(revision) != digits {
		return 0
	}
	return revision
}

func (f *Foreign) read(ctx context.Context, secrets corev1client.SecretInterface) error {
	secret, err := secrets.Get(ctx, f.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		f.Problem = "it is gone again"
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Helm release %q: %w", f.Name, err)
	}
	rel, err := decode(ctx, secret.Data[dataKey])
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		f.Problem = "it is no Helm release, or unpacks to more than is read" // the decoder's words may quote it
	case rel.Name != f.Name || rel.Namespace != f.Namespace || rel.Version != f.Revision:
		f.Problem = "it says to be another release or revision than its name does"
	default:
		f.FirstDeployed, f.Objects, f.Hooks = rel.Info.FirstDeployed.Time, rel.Objects, rel.Hooks
		if rel.Unread > 0 {
			f.Problem = fmt.Sprintf("%d documents of its manifest can't be read", rel.Unread)
		}
	}
	return nil
}
