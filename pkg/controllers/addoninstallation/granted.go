package addoninstallation

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/values"
)

// grantFacts are about values of the platform that a set grants (ADR 67).
type grantFacts struct {
	// granted is the grant that was verified; empty for none.
	granted order.Grant
	// platform are the values; nil for none.
	platform map[string]any
	// valuesGone ends the pass where the Secret changed and what is on record can't be looked after
	// in place of it.
	valuesGone loop.Outcome
}

// granted reads the platform's values where the installation has a grant of its set. Without a valid
// one nothing of the platform is read. No message tells of the content: tenants read it.
func (r *Reconciler) granted(ctx context.Context, f *facts) loop.Outcome {
	live := f.installation
	if f.pinned != "" || !f.claimsGrant() {
		return nil
	}
	grant, isGranted := r.Marks.Granted(live)
	if !isGranted {
		return lacksValues("annotation %s grants this installation nothing: its AddonSet writes it, and it is void for what the set did not "+
			"write or does not have any more", kubermaticv1.AnnotationPlatformValues)
	}
	secret, err := r.references().Secret(ctx, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: grant.Secret})
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(fmt.Errorf("reading the platform's values: %w", err))
	}
	if err != nil || secret.Labels[kubermaticv1.LabelUse] != kubermaticv1.UseValues {
		return lacksValues("the platform's Secret %q, which its AddonSet grants, is not on this seed", grant.Secret)
	}
	data, hasKey := secret.Data[grant.Key]
	switch {
	case !hasKey:
		return lacksValues("the platform's Secret %q, which its AddonSet grants, has no key %q", grant.Secret, grant.Key)
	case len(data) > values.MaxBytes:
		return lacksValues("key %q of the platform's Secret %q has more than %d bytes", grant.Key, grant.Secret, values.MaxBytes)
	case r.Marks.ValuesDigest(grant.Secret, grant.Key, data) != grant.Content:
		return f.keepsValues(grant)
	}
	decoded, err := values.Decode(data)
	if err != nil { // the error may quote what is there
		return lacksValues("key %q of the platform's Secret %q holds no values in YAML", grant.Key, grant.Secret)
	}
	if values.CheckMarks(decoded) != nil || hasReserved(decoded) { // their errors name places in it
		return lacksValues("key %q of the platform's Secret %q holds template marks (\"{{\", or \"{\" at the end of a text), "+
			"or the reserved key %q", grant.Key, grant.Secret, values.ReservedKey)
	}
	f.granted, f.platform = grant, decoded
	return nil
}

// claimsGrant says whether the annotation is to be looked at: on what a set made, and on what was made
// with values of the platform. Elsewhere anybody may write it, and it means nothing.
func (f *facts) claimsGrant() bool {
	live := f.installation
	if live.Spec.CoreAddon || live.Annotations[kubermaticv1.AnnotationPlatformValues] == "" {
		return false
	}
	record := f.pass.Record()
	isOfSet := live.Labels[kubermaticv1.LabelSet] != "" && live.Labels[kubermaticv1.LabelManagedBy] == kubermaticv1.ManagedBySets
	return isOfSet || record != nil && record.PlatformValues != ""
}

func hasReserved(content map[string]any) bool {
	_, has := content[values.ReservedKey]
	return has
}

// keepsValues is for a Secret that changed since it was granted: until the set's wave comes, what is
// applied is looked after from its record, and nothing is rendered.
func (f *facts) keepsValues(grant order.Grant) loop.Outcome {
	record := f.pass.Record()
	message := fmt.Sprintf("the platform's Secret %q changed: its AddonSet brings that by its waves", grant.Secret)
	f.valuesGone = loop.Waiting{
		Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesMissing, Message: message, Recheck: clusterRecheck,
	}
	if record.IsComplete() && record.PlatformValues == grant.Content && record.Addon == addonOf(f.installation) &&
		record.Version == f.choice.Version.Version && record.Content == f.choice.Origin.Content {
		f.onRecord = &revision.Wanted{Addon: record.Addon, Version: record.Version, Gone: revision.GoneContent}
		f.pinned = message + "; what is applied is kept reconciled from its record, and changes wait"
		return nil
	}
	return f.valuesGone
}

func lacksValues(format string, about ...any) loop.Outcome {
	return loop.Stalled{
		Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesMissing, Message: fmt.Sprintf(format, about...),
	}
}

// ofPlatformValues are the installations whose grant names a Secret of the platform.
func (r *Reconciler) ofPlatformValues(ctx context.Context, secret string) (requests []ctrl.Request) {
	for _, one := range r.installations(ctx) {
		if strings.HasPrefix(one.Annotations[kubermaticv1.AnnotationPlatformValues], secret+"/") {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&one)})
		}
	}
	return requests
}
