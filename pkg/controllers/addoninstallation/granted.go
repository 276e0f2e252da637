package addoninstallation

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/values"
)

// grantFacts are about values of the platform that a set grants (ADR 67).
type grantFacts struct {
	// granted is the verified grant; empty if there is none.
	granted installation.Grant
	// platform are the values; nil if there are none.
	platform map[string]any
	// valuesGone ends the reconciliation if the Secret changed and the recorded values can't be maintained either.
	valuesGone *loop.Outcome
}

// granted reads the platform's values if the installation has a grant of its set. Without a valid grant it reads
// nothing of the platform. No message contains the content, since tenants read messages.
func (r *Reconciler) granted(ctx context.Context, f *facts) *loop.Outcome {
	live := f.installation
	if f.pinned != "" || !f.claimsGrant() {
		return nil
	}
	grant, isGranted := r.Marks.Granted(live)
	if !isGranted {
		return lacksValues("annotation %s grants this installation nothing: it is only valid on an installation of an AddonSet, "+
			"with the value that the set wrote", kubermaticv1.AnnotationPlatformValues)
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
	if err != nil { // the error may quote the content
		return lacksValues("key %q of the platform's Secret %q contains no values in YAML", grant.Key, grant.Secret)
	}
	if values.CheckMarks(decoded) != nil || hasReserved(decoded) { // their errors name places in the content
		return lacksValues("key %q of the platform's Secret %q contains template marks (\"{{\", or \"{\" at the end of a text), "+
			"or the reserved key %q", grant.Key, grant.Secret, values.ReservedKey)
	}
	f.granted, f.platform = grant, decoded
	return nil
}

// claimsGrant says whether to read the annotation: on installations that a set created, and on those applied with
// values of the platform. On others any user may write it, and it has no effect.
func (f *facts) claimsGrant() bool {
	live := f.installation
	if live.Spec.CoreAddon || live.Annotations[kubermaticv1.AnnotationPlatformValues] == "" {
		return false
	}
	record := f.run.Record()
	isOfSet := live.Labels[kubermaticv1.LabelSet] != "" && live.Labels[kubermaticv1.LabelManagedBy] == kubermaticv1.ManagedBySets
	return isOfSet || record != nil && record.PlatformValues != ""
}

func hasReserved(content map[string]any) bool {
	_, has := content[values.ReservedKey]
	return has
}

// keepsValues handles a Secret that changed since the grant: until the set's wave begins, the applied revision is
// maintained from its record, and nothing is rendered.
func (f *facts) keepsValues(grant installation.Grant) *loop.Outcome {
	record := f.run.Record()
	message := fmt.Sprintf("the platform's Secret %q changed: its AddonSet rolls the change out in waves", grant.Secret)
	f.valuesGone = loop.Wait(kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesMissing, message, clusterRecheck)
	if record.IsComplete() && record.PlatformValues == grant.Content && record.Addon == addonOf(f.installation) &&
		record.Version == f.choice.Version.Version && record.Content == f.choice.Origin.Content {
		f.onRecord = &revision.Wanted{Addon: record.Addon, Version: record.Version, Gone: revision.GoneContent}
		f.pinned = message + "; the applied revision stays and is reconciled from its record, and changes wait"
		return nil
	}
	return f.valuesGone
}

func lacksValues(format string, about ...any) *loop.Outcome {
	return loop.Stall(kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesMissing, fmt.Sprintf(format, about...))
}

// ofPlatformValues are the requests for installations whose grant names a Secret of the platform.
func (r *Reconciler) ofPlatformValues(ctx context.Context, secret string) (requests []ctrl.Request) {
	for _, one := range r.installations(ctx) {
		if strings.HasPrefix(one.Annotations[kubermaticv1.AnnotationPlatformValues], secret+"/") {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&one)})
		}
	}
	return requests
}
