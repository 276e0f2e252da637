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
	"github.com/trellis-addons/trellis/pkg/addonset"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// userFacts say who may use the Secrets of the platform (ADR 121), by UID of catalogue or set.
type userFacts struct {
	// notAllowed are the refusals; warnings say what to do for those that only go on.
	notAllowed, warnings map[types.UID][]string
	// refused are the names of the Secrets that a set may not use.
	refused map[types.UID][]string
	// absent Secrets are not copied in this pass, should they come during it: nobody asked whose they are.
	absent map[string]bool
}

// namedSecrets are the Secrets with secrets that a catalogue or set names.
type namedSecrets struct {
	user  catalogue.SecretUser
	names []string
}

// judgeUsers finds out which catalogues and sets may use the Secrets that they name, before anything is copied. Versions that need a
// Secret which is not for their catalogue are not merged.
func (r *Reconciler) judgeUsers(ctx context.Context, f *facts) loop.Outcome {
	var list v1.AddonSetList
	// Objects are shared with the cache and only read.
	if err := r.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing AddonSets: %w", err))
	}
	f.allSets, f.userFacts = list.Items, userFacts{
		notAllowed: map[types.UID][]string{}, warnings: map[types.UID][]string{}, refused: map[types.UID][]string{}, absent: map[string]bool{},
	}
	all := r.namedSecrets(f)
	if err := r.readFormer(ctx, f, all); err != nil {
		return failed(err)
	}
	for i, named := range all {
		refused, err := r.judge(ctx, f, named)
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

// offer leaves versions out of what is merged. A source that is merged already is the same one again.
func (r *reading) offer(without []string) {
	switch {
	case r.source == nil || len(without) == 0:
		r.offered = r.source
	case r.offeredOf != r.source || r.offered == r.source || !slices.Equal(r.without, without):
		r.offered = r.source.Without(without)
	}
	r.offeredOf, r.without = r.source, without
}

// namedSecrets are those of f.readings, in their order, and then of f.allSets. A generated catalogue stands for the one in git.
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

// judge notes what a user may not use, and gives the names.
func (r *Reconciler) judge(ctx context.Context, f *facts, named namedSecrets) (refused []string, err error) {
	uid := named.user.UID
	for _, name := range named.names {
		about, err := r.secretAbout(ctx, f, name)
		if apierrors.IsNotFound(err) || slices.Contains(refused, name) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %q: %w", name, err)
		}
		warning, refusal := r.former.MayUse(about, named.user)
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

// readFormer reads who used Secrets before the annotation was asked for. A ConfigMap with identities of seeds that an earlier release
// wrote, without the key, shows that this is its upgrade: then the present users are noted, once. A ConfigMap that is lost makes none.
func (r *Reconciler) readFormer(ctx context.Context, f *facts, all []namedSecrets) error {
	if r.former != nil {
		f.trouble(r.keepFormer(ctx))
		return nil
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapSeeds}}
	missing := r.direct.Get(ctx, client.ObjectKeyFromObject(kept), kept)
	if client.IgnoreNotFound(missing) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", kept.Name, missing)
	}
	text, noted := kept.Data[v1.FormerSecretUsers]
	if noted || missing != nil {
		r.former, r.formerUnkept = catalogue.ReadFormerUsers(text), !noted
	} else {
		former, err := r.presentUsers(ctx, f, all)
		if err != nil {
			return err
		}
		r.former, r.formerUnkept = former, true
	}
	f.trouble(r.keepFormer(ctx))
	return nil
}

// keepFormer writes who used Secrets, unless that is done. Until it succeeds, passes go by what is in memory.
func (r *Reconciler) keepFormer(ctx context.Context) error {
	if !r.formerUnkept {
		return nil
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapSeeds}}
	before, made := kept.DeepCopy(), kept.DeepCopy()
	kept.Data = map[string]string{v1.FormerSecretUsers: r.former.String()} // only this key is written
	made.Data = kept.Data
	err := r.cached.Patch(ctx, kept, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		err = r.cached.Create(ctx, made)
	}
	if err != nil {
		return fmt.Errorf("keeping who uses Secrets, in ConfigMap %q: %w", kept.Name, err)
	}
	r.formerUnkept = false
	return nil
}

// presentUsers are those of Secrets that have the mark for that use, oldest first. Sets that are refused have none. Of catalogues both the
// present spec counts, valid or not, and the last valid one.
func (r *Reconciler) presentUsers(ctx context.Context, f *facts, all []namedSecrets) (catalogue.FormerUsers, error) {
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
	former := catalogue.FormerUsers{}
	for _, i := range order {
		marked, err := r.markedSecrets(ctx, f, names[i], i < len(f.readings))
		if err != nil {
			return nil, err
		}
		former.Note(all[i].user, marked...)
	}
	return former, nil
}

// markedSecrets are those that are there and have the mark for sources, or for values.
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

// setsUsing are the sets that a Secret is for, as annotation used-by of its copies has them: also those that don't name it now, since a
// seed may have an earlier copy of them.
func (r *Reconciler) setsUsing(f *facts, about metav1.Object) string {
	var names []string
	for i := range f.allSets {
		user := catalogue.SetUser(&f.allSets[i])
		if _, refusal := r.former.MayUse(about, user); refusal == nil && f.allSets[i].Namespace == r.options.Namespace {
			names = append(names, user.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
