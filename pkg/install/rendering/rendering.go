package rendering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/images"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Installed is the state of an installation in a user cluster.
type Installed interface {
	// Record is the newest, possibly without its objects; nil before the first. ReadWhole returns it with them.
	Record() *revision.Record
	ReadWhole(ctx context.Context, record *revision.Record) (*revision.Record, error)
	// NextRelease is the Helm release that a change creates; nil for the name "".
	NextRelease(name string) *helmrelease.Release
	// ForeignObjects are those of the Helm release that the installation adopts, of chosen kinds, as they are in the
	// user cluster.
	ForeignObjects(ctx context.Context, chosen func(kind string) bool, limits survey.FoundLimits) ([]*unstructured.Unstructured, error)
}

// Request is an installation with all that its objects depend on.
type Request struct {
	Installation *v1.AddonInstallation
	// Choice, Values and Data are its resolution; Content is the version's.
	Choice  resolution.Choice
	Values  resolution.Values
	Data    templatedata.Data
	Content fetch.Snapshot
	// Cluster is the target of the objects, Owner their owner there.
	Cluster target.Description
	Owner   ownership.Owner
	// Mapper and APIVersions know the kinds that the cluster serves.
	Mapper      meta.RESTMapper
	APIVersions func() []string
	Installed   Installed

	// Inputs is the result of Renderer.Inputs for the request, Brought that of the last Result.
	Inputs  Inputs
	Brought Brought
	// Rerender renders again even if a result is cached, to compare the two.
	Rerender bool
	// Unasked says that no user caused this rendering: parts that differ only at random stay.
	Unasked bool
	// Wake is called at the end of a rendering that was answered with render.ErrPending.
	Wake func()
}

func (q *Request) method() v1.Method { return q.Choice.Version.Template.Method }

func (q *Request) traits() catalogue.Traits { return catalogue.TraitsOf(q.method()) }

func (q *Request) releaseName() string { return q.Choice.ReleaseName(q.Installation) }

func (q *Request) targetNamespace() string { return q.Installation.Spec.TargetNamespace }

// Inputs are two hashes over all that objects are rendered from (resolution.Inputs).
type Inputs struct{ Hash, Wanted string }

// Result is the rendering of a request. It has no objects if the add-on has none for its cluster: every template
// renders to nothing.
type Result struct {
	// Objects and Hooks are in the form to write to the user cluster.
	Objects []*unstructured.Unstructured
	Hooks   []hooks.Hook
	// Finalized names the objects whose finalizers are left out; nil if they were not rendered.
	Finalized []string
	// Chart is the rendering's data of a Helm chart; nil for other methods.
	Chart *render.Chart
	// Inputs are those of the rendering: a chart does not see the kinds that it brings itself. Brought is for the
	// next request.
	Inputs  Inputs
	Brought Brought
	// Changed names objects that differ in a second rendering of equal inputs.
	Changed []string
}

// Cause is the part that caused an Error.
type Cause string

const (
	// CauseKeeper: an error of the Keeper, such as render.ErrPending.
	CauseKeeper Cause = "Keeper"
	// CauseCluster: a call to the user cluster failed.
	CauseCluster Cause = "Cluster"
	// CauseVersion: objects of the version, or the version itself, can't be written.
	CauseVersion Cause = "Version"
)

// Error reports why there are no objects.
type Error struct {
	Cause Cause
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is the error of the cause.
func (e *Error) Unwrap() error { return e.Err }

// Renderer renders the installations of a seed.
type Renderer struct {
	keeper render.Keeper
	rules  images.Rules
	key    []byte

	capabilityCharts searches[bool]
	secretContents   searches[bool]
	lookupCharts     searches[kindsAsked]
}

// New creates a Renderer. The key is that of the hash of inputs.
func New(keeper render.Keeper, rules images.Rules, key []byte) *Renderer {
	return &Renderer{
		keeper: keeper, rules: rules, key: key,
		capabilityCharts: newSearches[bool](), secretContents: newSearches[bool](), lookupCharts: newSearches[kindsAsked](),
	}
}

// Tenant identifies the renderings that may share a process: those of one cluster and, separately, those of its core
// add-ons, since their template data has the cluster's secrets.
func Tenant(cluster types.UID, core bool) string {
	if core {
		return string(cluster) + "/core"
	}
	return string(cluster)
}

// imagesOf are the seed's rules for images with those of a request's values.
func (r *Renderer) imagesOf(q *Request) images.Rules {
	if len(q.Values.Registries) == 0 {
		return r.rules
	}
	all, err := r.rules.With(q.Values.Registries)
	if err != nil { // they were checked when they were read
		return r.rules
	}
	return all
}

// Inputs computes the hashes of all that the objects of a request depend on.
func (r *Renderer) Inputs(q Request) (Inputs, error) {
	served, err := r.servedVersions(&q)
	if err != nil {
		return Inputs{}, err
	}
	all := resolution.Inputs{
		Installation: q.Installation, Choice: q.Choice, Content: q.Content.Digest, Values: q.Values, Images: r.imagesOf(&q).Canonical(),
		Data: q.Data, KubernetesVersion: q.Cluster.KubernetesVersion, Served: served,
	}
	hash, err := all.Hash(r.key)
	if err != nil {
		return Inputs{}, err
	}
	wanted, err := all.Wanted(r.key)
	return Inputs{Hash: hash, Wanted: wanted}, err
}

// IsAsked reports whether the user's request equals that of a record except for its artifact, which may have changed:
// the source has other content under the same reference.
func (r *Renderer) IsAsked(q Request, record *revision.Record) (bool, error) {
	all := resolution.Inputs{
		Installation: q.Installation, Choice: q.Choice, Content: record.Artifact.Digest, Values: q.Values, Images: r.imagesOf(&q).Canonical(),
	}
	wanted, err := all.Wanted(r.key)
	return err == nil && wanted == record.Wanted, err
}

// Render renders the objects of the next revision. The result has Inputs, Brought and Changed also with an error.
func (r *Renderer) Render(ctx context.Context, q Request) (Result, error) {
	if err := r.secretsAskedFor(&q); err != nil {
		return q.nothing(), err
	}
	if q.Unasked {
		if recorded, stays, err := r.asRecorded(ctx, q); stays || err != nil {
			return recorded, err
		}
	}
	return r.renderChange(ctx, q)
}

// nothing is the result of a request without objects.
func (q *Request) nothing() Result { return Result{Inputs: q.Inputs, Brought: q.Brought} }

// renderChange renders with the kinds that the user cluster serves, without those that the content brings itself.
func (r *Renderer) renderChange(ctx context.Context, q Request) (Result, error) {
	found, err := r.lookup(ctx, &q)
	if err != nil {
		return q.nothing(), err
	}
	seen := nextView(&q)
	seen.found = found
	var changed []string
	for { // each time with fewer groups
		made, err := r.renderAs(ctx, &q, seen)
		if len(made.Changed) == 0 {
			made.Changed = changed // of an earlier rendering
		}
		changed = made.Changed
		if err != nil {
			return made, err
		}
		brought, err := r.bringsItself(&q, made.Objects)
		if err != nil || len(brought) == 0 {
			return made, err
		}
		q.Brought = q.Brought.with(contentKey(&q), brought)
		inputs, err := r.Inputs(q)
		if err != nil {
			nothing := q.nothing()
			nothing.Changed = changed
			return nothing, err
		}
		q.Inputs = inputs
	}
}

// renderAs renders with a view, and prepares the objects.
func (r *Renderer) renderAs(ctx context.Context, q *Request, seen view) (Result, error) {
	key, err := r.keeperKey(q, seen)
	if err != nil {
		return q.nothing(), err
	}
	rendered, err := r.keeper.Render(ctx, render.Request{
		Method: string(q.method()), Inputs: key, Input: renderInput(q, seen), Rerender: q.Rerender, Wake: q.Wake,
	})
	if none, ok := errors.AsType[*render.NoManifestsError](err); ok && none.Templates > 0 {
		return q.nothing(), nil
	}
	if err != nil {
		return q.nothing(), &Error{CauseKeeper, err}
	}
	made, err := r.prepare(q, rendered.Result)
	made.Inputs, made.Brought, made.Changed = q.Inputs, q.Brought, namesOf(q, rendered.Changed)
	if err != nil {
		err = &Error{CauseVersion, err}
	}
	return made, err
}

// keeperKey is the Keeper's key of a rendering.
func (r *Renderer) keeperKey(q *Request, seen view) (string, error) {
	if !q.traits().HasRelease && !seen.otherMoment {
		return q.Inputs.Hash, nil
	}
	found, err := json.Marshal(seen.found)
	if err != nil {
		return "", fmt.Errorf("encoding the results of lookup: %w", err)
	}
	return revision.InputsHash(r.key, []byte(q.Inputs.Hash), found,
		fmt.Append(nil, seen.revision, seen.isInstall, seen.otherMoment)), nil
}

func renderInput(q *Request, seen view) render.Input {
	input := render.Input{
		Addon: string(q.Installation.Spec.AddonRef.Name), Tenant: Tenant(q.Cluster.UID, q.Choice.Core),
		Content: q.Content.FS, Values: q.Values.Merged, Data: q.Data,
		Release: render.Release{
			Name: q.releaseName(), Namespace: q.targetNamespace(), Revision: seen.revision, IsInstall: seen.isInstall,
		},
		Found: seen.found, GuardFound: q.Choice.Core, OtherMoment: seen.otherMoment,
		Capabilities: render.Capabilities{KubeVersion: q.Cluster.KubernetesVersion},
	}
	if q.traits().SeesServed { // other methods don't read these hundreds of entries
		input.Capabilities.APIVersions = served(q)
	}
	if q.Choice.SeesSecrets() || q.Choice.Core && len(seen.found) > 0 {
		input.CatalogueValues = q.Values.Catalogue()
	}
	if helm := q.Choice.Version.Template.Helm; helm != nil {
		input.Release.DisableHooks = helm.DisableHooks
	}
	return input
}
