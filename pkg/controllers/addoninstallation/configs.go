package addoninstallation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Objects with values (objectRef): reading them, and their state in status.configs.

// configFact is an object that a reconciliation read.
type configFact struct {
	ref    *kubermaticv1.ObjectReference
	origin kubermaticv1.ConfigOrigin
	// digest is that of its values, with the seed's key: people may see it, and values may be secret.
	digest string
	// state is Missing or Refused; otherwise "".
	state kubermaticv1.ConfigStatus
}

// FromObject reads an object that the catalogue's version names.
func (l layers) FromObject(ctx context.Context, ref *kubermaticv1.ObjectReference) (resolution.Read, error) {
	return l.fromObject(ctx, catalogue.ObjectFor(ref, l.f.cluster.Name), kubermaticv1.ConfigOfCatalogue)
}

func (l layers) fromObject(
	ctx context.Context, ref *kubermaticv1.ObjectReference, origin kubermaticv1.ConfigOrigin,
) (resolution.Read, error) {
	if ref == nil {
		return resolution.Read{}, &values.DecodeError{Problem: "objectRef is missing"}
	}
	isChart := catalogue.TraitsOf(l.f.choice.Version.Template.Method).IsChart
	read, err := l.r.references().Object(ctx, l.f.installation.Namespace, ref, isChart)
	fact := configFact{ref: ref, origin: origin}
	missing, isMissing := errors.AsType[*resolution.MissingValuesError](err)
	switch {
	case isMissing && missing.IsAbsent || read.IsMissing:
		fact.state = kubermaticv1.ConfigMissing
	case isMissing || values.IsInvalid(err):
		fact.state = kubermaticv1.ConfigRefused
	case err != nil:
		return read, err // of a call: it says nothing about the object
	default:
		encoded, err := json.Marshal(read)
		if err != nil {
			return read, fmt.Errorf("encoding the values of %s %q: %w", ref.Kind, ref.Name, err)
		}
		fact.digest = revision.InputsHash(l.r.InputsKey, []byte("config"), encoded)
	}
	l.f.configs = append(l.f.configs, fact)
	return read, err
}

// projectConfigs lists the objects that the reconciliation read. If it ended before, the previous list stays.
func projectConfigs(f *facts, outcome *loop.Outcome) {
	if f.configs == nil {
		return
	}
	state := &f.installation.Status
	previous := state.Configs
	state.Configs = nil
	record := f.run.Record()
	isApplied := record.IsComplete() && f.inputs.Hash != "" && record.Inputs == f.inputs.Hash && !outcome.Is(loop.Stalled)
	for _, one := range f.configs {
		shown := kubermaticv1.ConfigState{
			APIGroup: one.ref.APIGroup, Kind: one.ref.Kind, Name: one.ref.Name, Origin: one.origin, Digest: one.digest, State: one.state,
		}
		isSame := func(other kubermaticv1.ConfigState) bool {
			return other.APIGroup == shown.APIGroup && other.Kind == shown.Kind && other.Name == shown.Name && other.Origin == shown.Origin
		}
		if at := slices.IndexFunc(previous, isSame); at >= 0 {
			shown.AppliedDigest = previous[at].AppliedDigest
			previous = slices.Delete(slices.Clone(previous), at, at+1) // two references may name one object
		}
		if isApplied {
			shown.AppliedDigest = shown.Digest
		}
		if shown.State == "" {
			shown.State = kubermaticv1.ConfigPending
			if shown.AppliedDigest == shown.Digest {
				shown.State = kubermaticv1.ConfigApplied
			}
		}
		state.Configs = append(state.Configs, shown)
	}
}
