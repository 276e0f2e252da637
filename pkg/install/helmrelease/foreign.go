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
	"github.com/trellis-addons/trellis/pkg/base/listcache"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

const (
	// Limits of the listed revisions of one release; helm itself stores 10.
	foreignListed, foreignPages = 500, 20
	// namesListed bounds the list of a namespace; beyond it, each name is listed.
	namesListed = 2000
	// highestRevision is the highest number that is accepted from a Secret's name: higher numbers must remain.
	highestRevision = 1 << 24
)

var secretResource = corev1.SchemeGroupVersion.WithResource("secrets")

// Place identifies a Helm release's Secrets: one namespace of a user cluster.
type Place struct {
	Metadata  metadata.Interface
	Secrets   corev1client.SecretInterface
	Namespace string
	// NameOf is as in ownership.Question.
	NameOf func(id string) string
	// Names caches the revisions of releases of the user cluster. It may be nil.
	Names *listcache.Lists
}

// isMissing says whether no release has the name: it is not listed, and has no revision 1 since.
func (p Place) isMissing(ctx context.Context, name string) (bool, error) {
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

// Foreign is a Helm release in a user cluster that is not in an owner's records.
type Foreign struct {
	Name, Namespace string
	// Revision is the newest one, in Secret.
	Revision int
	Secret   string
	// Own: every revision has the owner's label, of an earlier installation of its name.
	Own bool
	// Installation is another existing one that has a revision; only it can adopt the release.
	Installation  string
	FirstDeployed time.Time
	// Problem says why the newest revision, or a part of it, can't be read.
	Problem string
	// Objects of the newest manifest. Namespaced ones without a namespace are in the release's.
	Objects []ownership.Entry
	Hooks   []ownership.Entry
	// ByHand says that the release is ours, and others made these revisions.
	ByHand bool
	// PendingSince is the beginning of a pending revision; zero: it is not pending.
	PendingSince time.Time
}

// Marks are the marks that helm puts on the objects of the release.
func (f *Foreign) Marks() ownership.HelmMarks {
	return ownership.HelmMarks{ReleaseName: f.Name, ReleaseNamespace: f.Namespace}
}

// Find reads the Helm release of a name; nil if there is none. It is for owners without a record of it, since it
// finds their own releases too. It reads the newest Secret only, within limits, and accepts it if it agrees with its
// name. The error is the API server's.
func Find(ctx context.Context, place Place, name string, owner ownership.Owner) (*Foreign, error) {
	if isMissing, err := place.isMissing(ctx, name); isMissing || err != nil {
		return nil, err
	}
	items, err := place.revisions(ctx, labels.SelectorFromSet(labels.Set{"owner": "helm", "name": name}), name)
	if err != nil {
		return nil, err
	}
	found := &Foreign{Name: name, Namespace: place.Namespace, Own: true}
	checked := map[string]bool{} // owners with a known answer
	for i := range items {
		if items[i].revision > found.Revision {
			found.Revision, found.Secret = items[i].revision, items[i].name
		}
		found.Own = found.Own && items[i].owner == owner.ID()
		if found.Installation == "" && !checked[items[i].owner] {
			found.Installation = place.otherInstallation(items[i], owner)
			checked[items[i].owner] = true
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

// otherInstallation names the other existing installation that a revision belongs to.
func (p Place) otherInstallation(item item, owner ownership.Owner) string {
	secret := &metav1.ObjectMeta{Labels: map[string]string{v1.LabelInstallation: item.owner}}
	return ownership.Of(secret, ownership.Question{Owner: owner, NameOf: p.NameOf}).OtherName
}

// Adopt labels earlier revisions of a release as the owner's, without decoding any, except those of
// other existing installations. Write then supersedes and trims them.
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
		if items[i].revision >= before.Revision || place.otherInstallation(items[i], owner) != "" {
			continue
		}
		held, release := remote.Hold(ctx)
		_, err := place.Metadata.Resource(secretResource).Namespace(place.Namespace).Patch(
			held, items[i].name, types.MergePatchType, patch, metav1.PatchOptions{})
		release()
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("adopting %q of Helm release %q: %w", items[i].name, before.Name, err)
		}
	}
	return nil
}

// item is the stored part of a Secret of a Helm release; owner is the ID in our label.
type item struct {
	name     string
	revision int
	owner    string
	// pending is read from its label; made is its creation time.
	pending bool
	made    time.Time
}

// revisions are the selected Secrets of a release whose names are those of revisions.
func (p Place) revisions(ctx context.Context, selector labels.Selector, name string) ([]item, error) {
	options := metav1.ListOptions{LabelSelector: selector.String(), FieldSelector: "type=" + secretType, Limit: foreignListed}
	var items []item
	for range foreignPages { // pages are sorted by name: revision 9 is after 10
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
		f.Problem = "it was deleted in the meantime"
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
		f.Problem = "it is not a Helm release, or unpacks to more than the limit" // the decoder's message may quote it
	case rel.Name != f.Name || rel.Namespace != f.Namespace || rel.Version != f.Revision:
		f.Problem = "its content is of a different release or revision than its name says"
	default:
		f.FirstDeployed, f.Objects, f.Hooks = rel.Info.FirstDeployed.Time, rel.Objects, rel.Hooks
		if rel.Unread > 0 {
			f.Problem = fmt.Sprintf("%d documents of its manifest can't be read", rel.Unread)
		}
	}
	return nil
}
