package distributor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// userFacts say who may use the Secrets of the platform (ADR 121), by UID of catalogue or set.
type userFacts struct {
	// notAllowed are the refusals; warnings say what to do for those that only go on.
	notAllowed, warnings map[types.UID][]string
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
	f.allSets, f.userFacts = list.Items, userFacts{map[types.UID][]string{}, map[types.UID][]string{}, map[string]bool{}}
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
		}
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
		return nil
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapSeeds}}
	missing := r.direct.Get(ctx, client.ObjectKeyFromObject(kept), kept)
	if client.IgnoreNotFound(missing) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", kept.Name, missing)
	}
	if text, noted := kept.Data[v1.FormerSecretUsers]; noted {
		r.former = catalogue.ReadFormerUsers(text)
		return nil
	}
	if missing != nil {
		kept.Data = map[string]string{v1.FormerSecretUsers: ""}
		return r.cached.Create(ctx, kept) // the next pass reads it
	}
	former := catalogue.FormerUsers{}
	for _, named := range all {
		for _, name := range named.names {
			about, err := r.secretAbout(ctx, f, name)
			if err == nil {
				former.Note(about, named.user)
			} else if !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading Secret %q: %w", name, err)
			}
		}
	}
	kept = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kept.Namespace, Name: kept.Name}}
	before := kept.DeepCopy()
	kept.Data = map[string]string{v1.FormerSecretUsers: former.String()} // only this key is written
	if err := r.cached.Patch(ctx, kept, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("keeping who uses Secrets, in ConfigMap %q: %w", kept.Name, err)
	}
	r.former = former
	return nil
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
