package distributor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
)

// defaultValuesKey is the key of values if a set names none.
const defaultValuesKey = "values.yaml"

// findValues reads the Secrets with values that sets name, also refused sets: the users that a Secret names apply to
// their last good copies too. A set that is invalid, or not read, may have a copy that names any Secret: then none is
// removed, except for those that no set may use any more.
func (r *Reconciler) findValues(ctx context.Context, f *facts) *loop.Outcome {
	f.valuesProblems, f.valuesSets = map[string]string{}, map[string]map[types.UID]bool{}
	fresh := secretReader{}
	for name, keys := range valuesNamed(f) {
		found, err := r.valuesSecret(ctx, f, name, slices.Sorted(maps.Keys(keys)))
		switch {
		case apierrors.IsNotFound(err):
			f.secrets.Held[name] = true
			f.valuesProblems[name] = "it does not exist in the platform namespace"
			continue
		case err != nil:
			return failed(fmt.Errorf("reading Secret %q: %w", name, err))
		}
		fresh[name] = found
		if found.problem != "" {
			f.valuesProblems[name] = found.problem
		}
		if found.copy != nil {
			f.secrets.Copies[name] = *found.copy
		}
	}
	r.values = fresh
	return nil
}

// valuesNamed are the keys of Secrets that sets name, none if no set may use the Secret; f gets the valid sets that name it.
func valuesNamed(f *facts) map[string]map[string]bool {
	named := map[string]map[string]bool{}
	for at := range f.allSets {
		set := &f.allSets[at]
		wanted := f.sets[set.Name]
		if wanted == nil || wanted.UID != set.UID {
			continue
		}
		if reason := f.setFindings[set.UID].Reason; wanted.Spec == nil && (reason == v1.ReasonInvalid || reason == v1.ReasonTooLarge) {
			f.secrets.HoldValues = true
		}
		for i := range set.Spec.Addons {
			reference := set.Spec.Addons[i].PlatformSecretRef
			if reference == nil {
				continue
			}
			if named[reference.Name] == nil {
				named[reference.Name], f.valuesSets[reference.Name] = map[string]bool{}, map[types.UID]bool{}
			}
			if !slices.Contains(f.refused[set.UID], reference.Name) {
				named[reference.Name][cmp.Or(reference.Key, defaultValuesKey)] = true
			}
			f.valuesSets[reference.Name][set.UID] = wanted.Spec != nil
		}
	}
	return named
}

// valuesSecret reads a Secret unless its present version is known, with these keys.
func (r *Reconciler) valuesSecret(ctx context.Context, f *facts, name string, keys []string) (knownSecret, error) {
	about, err := r.secretAbout(ctx, f, name)
	if err != nil {
		return knownSecret{}, err
	}
	usedBy := r.setsUsing(f, about)
	if usedBy == "" || len(keys) == 0 {
		f.secrets.Revoked[name] = true
		return knownSecret{}, nil
	}
	version := fmt.Sprintf("%s %q %q", about.ResourceVersion, keys, usedBy)
	if known, ok := r.values[name]; ok && known.uid == about.UID && known.version == version {
		return known, nil
	}
	secret, err := r.readSecret(ctx, about)
	if err != nil {
		return knownSecret{}, err
	}
	found := knownSecret{uid: secret.UID, version: fmt.Sprintf("%s %q %q", secret.ResourceVersion, keys, usedBy)}
	found.copy, found.problem = valuesOf(secret, keys, usedBy)
	return found, nil
}

// valuesOf is the copy of a Secret with values for seeds, and why there is none, or an incomplete one: a set that
// names a missing key doesn't affect other sets' keys.
func valuesOf(secret *corev1.Secret, keys []string, usedBy string) (*seed.SecretCopy, string) {
	if secret.Labels[v1.LabelUse] != v1.UseValues {
		return nil, fmt.Sprintf("it has no label %s=%s", v1.LabelUse, v1.UseValues)
	}
	found := &seed.SecretCopy{Use: v1.UseValues, UsedBy: &usedBy, Data: map[string][]byte{}}
	var missing []string
	var problem string
	for _, key := range keys {
		value, ok := secret.Data[key]
		if !ok {
			missing = append(missing, key)
			continue
		}
		found.Data[key] = value
	}
	if len(missing) > 0 {
		problem = fmt.Sprintf("it has none of the keys %q", missing)
	}
	// It has no digest of the data: readers of metadata could learn from it.
	revision, err := catalogue.Digest(append([]string{string(secret.UID), secret.ResourceVersion, usedBy}, keys...))
	if err != nil {
		return nil, "its revision can't be computed"
	}
	found.Revision = revision
	return found, problem
}
