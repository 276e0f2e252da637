package distributor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// userFacts say which catalogues and sets may use the Secrets of the platform (ADR 121), by their UID.
type userFacts struct {
	// notAllowed are the refusals; warnings say what to do about uses that are allowed only because they are older.
	notAllowed, warnings map[types.UID][]string
	// refused are the names of the Secrets that a set may not use.
	refused map[types.UID][]string
	// absent Secrets are not copied in this reconciliation, even if they are created meanwhile: their users were not checked.
	absent map[string]bool
}

// namedSecrets are the credentials that a catalogue or set names.
type namedSecrets struct {
	user  catalogue.SecretUser
	names []string
}

// evaluateUsers decides which catalogues and sets may use the Secrets that they name, before anything is copied.
// Versions that need a Secret which their catalogue may not use are not merged.
func (r *Reconciler) evaluateUsers(ctx context.Context, f *facts) *loop.Outcome {
	var list v1.AddonSetList
	// Objects are shared with the cache and only read.
	if err := r.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing AddonSets: %w", err))
	}
	f.allSets, f.userFacts = list.Items, userFacts{
		notAllowed: map[types.UID][]string{}, warnings: map[types.UID][]string{}, refused: map[types.UID][]string{}, absent: map[string]bool{},
	}
	all := r.namedSecrets(f)
	if err := r.readPrevious(ctx, f, all); err != nil {
		return failed(err)
	}
	for i, named := range all {
		refused, err := r.evaluate(ctx, f, named)
		if err != nil {
			return failed(err)
		}
		if i < len(f.readings) {
			f.readings[i].offer(refused)
			continue
		}
		f.refused[named.user.UID] = refused
	}
	return nil
}

// offer excludes versions from the merge. The same exclusions give the same source as before.
func (r *reading) offer(without []string) {
	switch {
	case r.source == nil || len(without) == 0:
		r.offered = r.source
	case r.offeredOf != r.source || r.offered == r.source || !slices.Equal(r.without, without):
		r.offered = r.source.Without(without)
	}
	r.offeredOf, r.without = r.source, without
}

// namedSecrets are those of f.readings, in their order, and then of f.allSets. A generated catalogue counts as the one in git.
func (r *Reconciler) namedSecrets(f *facts) []namedSecrets {
	all, inGit := make([]namedSecrets, 0, len(f.readings)+len(f.allSets)), map[types.UID]*v1.AddonCatalogue{}
	for _, reading := range f.readings {
		if reading.object.Spec.Git != nil && reading.object.Labels[v1.LabelRole] == "" && reading.reason != v1.ReasonWrongNamespace {
			inGit[reading.object.UID] = reading.object
		}
	}
	for _, reading := range f.readings {
		named := namedSecrets{user: catalogue.CatalogueUser(reading.object)}
		if parent := inGit[reading.parent()]; parent != nil {
			named.user = catalogue.CatalogueUser(parent)
		}
		if own := inGit[reading.object.UID]; own != nil && own.Spec.Git.SecretRef != nil {
			named.names = []string{own.Spec.Git.SecretRef.Name}
		} else if reading.source != nil {
			named.names = reading.source.Secrets
		}
		all = append(all, named)
	}
	for i := range f.allSets {
		named := namedSecrets{user: catalogue.SetUser(&f.allSets[i])}
		for _, item := range f.allSets[i].Spec.Addons {
			if item.PlatformSecretRef != nil && f.allSets[i].Namespace == r.options.Namespace {
				named.names = append(named.names, item.PlatformSecretRef.Name)
			}
		}
		all = append(all, named)
	}
	return all
}

// evaluate notes the Secrets that a user may not use, and returns their names.
func (r *Reconciler) evaluate(ctx context.Context, f *facts, named namedSecrets) (refused []string, err error) {
	uid := named.user.UID
	for _, name := range named.names {
		about, err := r.secretAbout(ctx, f, name)
		if apierrors.IsNotFound(err) || slices.Contains(refused, name) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %q: %w", name, err)
		}
		warning, refusal := r.previous.MayUse(about, named.user)
		if refusal != nil {
			refused = append(refused, name)
			f.notAllowed[uid] = append(f.notAllowed[uid], refusal.Error())
		}
		if warning != "" && !slices.Contains(f.warnings[uid], warning) {
			f.warnings[uid] = append(f.warnings[uid], warning)
		}
	}
	return refused, nil
}

// readPrevious reads the users of Secrets from before the annotation was required. A ConfigMap of an earlier release,
// with identities of seeds but without the key, shows its upgrade: then the present users are noted, once. After a
// loss of the ConfigMap, none is.
func (r *Reconciler) readPrevious(ctx context.Context, f *facts, all []namedSecrets) error {
	if r.previous != nil {
		f.trouble(r.keepPrevious(ctx))
		return nil
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapSeeds}}
	missing := r.direct.Get(ctx, client.ObjectKeyFromObject(kept), kept)
	if client.IgnoreNotFound(missing) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", kept.Name, missing)
	}
	text, noted := kept.Data[v1.PreviousSecretUsers]
	if noted || missing != nil {
		r.previous, r.previousUnsaved = catalogue.ReadPreviousUsers(text), !noted
	} else {
		previous, err := r.presentUsers(ctx, f, all)
		if err != nil {
			return err
		}
		r.previous, r.previousUnsaved = previous, true
	}
	f.trouble(r.keepPrevious(ctx))
	return nil
}

// keepPrevious writes the earlier users of Secrets, unless that is done. Until it succeeds, the ones in memory apply.
func (r *Reconciler) keepPrevious(ctx context.Context) error {
	if !r.previousUnsaved {
		return nil
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapSeeds}}
	before, made := kept.DeepCopy(), kept.DeepCopy()
	kept.Data = map[string]string{v1.PreviousSecretUsers: r.previous.String()} // only this key is written
	made.Data = kept.Data
	err := r.cached.Patch(ctx, kept, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		err = r.cached.Create(ctx, made)
	}
	if err != nil {
		return fmt.Errorf("storing the users of Secrets in ConfigMap %q: %w", kept.Name, err)
	}
	r.previousUnsaved = false
	return nil
}

// presentUsers are the users of Secrets with the mark for that use, oldest first. Refused sets have none. Of
// catalogues both the present spec counts, valid or not, and the last valid one.
func (r *Reconciler) presentUsers(ctx context.Context, f *facts, all []namedSecrets) (catalogue.PreviousUsers, error) {
	beyond := youngest(f.allSets, r.options.Namespace)
	created, names := make([]time.Time, len(all)), make([][]string, len(all))
	order := make([]int, len(all))
	for i, named := range all {
		order[i], names[i] = i, named.names
		if i < len(f.readings) {
			object := f.readings[i].object
			created[i] = object.CreationTimestamp.Time
			if f.readings[i].reason != v1.ReasonWrongNamespace {
				names[i] = slices.Concat(named.names, catalogue.CredentialNames(&object.Spec))
			}
			continue
		}
		set := &f.allSets[i-len(f.readings)]
		created[i] = set.CreationTimestamp.Time
		if beyond[set.UID] || addonset.Validate(set) != nil {
			names[i] = nil
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return created[a].Compare(created[b]) })
	previous := catalogue.PreviousUsers{}
	for _, i := range order {
		marked, err := r.markedSecrets(ctx, f, names[i], i < len(f.readings))
		if err != nil {
			return nil, err
		}
		previous.Note(all[i].user, marked...)
	}
	return previous, nil
}

// markedSecrets are those that exist and have the mark for sources, or for values.
func (r *Reconciler) markedSecrets(ctx context.Context, f *facts, names []string, forSources bool) (marked []metav1.Object, err error) {
	for _, name := range names {
		about, err := r.secretAbout(ctx, f, name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading Secret %q: %w", name, err)
		case forSources && cluster.IsForSources(about), !forSources && about.Labels[v1.LabelUse] == v1.UseValues:
			marked = append(marked, about)
		}
	}
	return marked, nil
}

// setsUsing are the sets that may use a Secret, as in annotation used-by of its copies: also those that don't name it
// now, since a seed may have an earlier copy of them.
func (r *Reconciler) setsUsing(f *facts, about metav1.Object) string {
	var names []string
	for i := range f.allSets {
		user := catalogue.SetUser(&f.allSets[i])
		if _, refusal := r.previous.MayUse(about, user); refusal == nil && f.allSets[i].Namespace == r.options.Namespace {
			names = append(names, user.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
