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
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// Images rewrites the images of objects in place. Canonical is the same for the same rules.
type Images interface {
	Rewrite(objects []*unstructured.Unstructured)
	Canonical() []byte
}

// Installed is what a user cluster has of an installation.
type Installed interface {
	// Record is the newest, maybe without its objects; nil before the first. ReadWhole gives it
	// with them.
	Record() *revision.Record
	ReadWhole(ctx context.Context, record *revision.Record) (*revision.Record, error)
	// NextRelease is the Helm release that a change makes; nil for the name "".
	NextRelease(name string) *helmrelease.Release
	// ForeignObjects are those of the Helm release that the installation follows, of chosen kinds,
	// as they are in the user cluster.
	ForeignObjects(ctx context.Context, chosen func(kind string) bool, limits survey.FoundLimits) ([]*unstructured.Unstructured, error)
}

// Request is an installation with all that its objects depend on.
type Request struct {
	Installation *v1.AddonInstallation
	// Choice, Values and Data are what it resolves to; Content is the version's.
	Choice  resolution.Choice
	Values  resolution.Values
	Data    templatedata.Data
	Content fetch.Snapshot
	// Cluster is where the objects go, Owner whose they are there.
	Cluster target.Description
	Owner   ownership.Owner
	// Mapper and APIVersions know the kinds that the cluster serves.
	Mapper      meta.RESTMapper
	APIVersions func() []string
	Installed   Installed

	// Inputs are what Renderer.Inputs says of the request, Brought what the last Result says.
	Inputs  Inputs
	Brought Brought
	// Anew renders although a rendering is kept, to see whether the same comes out.
	Anew bool
	// Unasked says that nobody asked for another rendering: what only chance changes stays.
	Unasked bool
	// Wake is called when a rendering is over that was answered with render.ErrPending.
	Wake func()
}

func (q *Request) method() v1.Method { return q.Choice.Version.Template.Method }

func (q *Request) releaseName() string { return q.Choice.ReleaseName(q.Installation) }

func (q *Request) targetNamespace() string { return q.Installation.Spec.TargetNamespace }

// Inputs are two hashes over what objects are made from (resolution.Inputs).
type Inputs struct{ Hash, Wanted string }

// Result is what a request is rendered to. It has no objects where the add-on has nothing for its
// cluster: every template renders to nothing.
type Result struct {
	// Objects and Hooks as they are to stand in the user cluster.
	Objects []*unstructured.Unstructured
	Hooks   []hooks.Hook
	// Finalized names the objects whose finalizers are left out; nil where they were not rendered.
	Finalized []string
	// Chart is what the rendering says of a Helm chart; nil for other methods.
	Chart *render.Chart
	// Inputs are those that it was rendered with: a chart does not see the kinds that it turned out
	// to bring itself. Brought is for the next request.
	Inputs  Inputs
	Brought Brought
	// Changed names objects for which a second rendering of equal inputs gave something else.
	Changed []string
}

// Cause is what an Error is about.
type Cause string

const (
	// CauseKeeper: what the Keeper answered, render.ErrPending among it.
	CauseKeeper Cause = "Keeper"
	// CauseCluster: a call to the user cluster failed.
	CauseCluster Cause = "Cluster"
	// CauseVersion: what is rendered, or would be, can't be written as it is.
	CauseVersion Cause = "Version"
)

// Error says why there are no objects.
type Error struct {
	Cause Cause
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives what the cause said.
func (e *Error) Unwrap() error { return e.Err }

// Renderer renders installations. One serves a whole seed.
type Renderer struct {
	keeper render.Keeper
	images Images
	key    []byte

	capabilityCharts searches[bool]
	secretContents   searches[bool]
	lookupCharts     searches[kindsAsked]
}

// New makes a Renderer. The key is that of the hash of inputs.
func New(keeper render.Keeper, images Images, key []byte) *Renderer {
	return &Renderer{
		keeper: keeper, images: images, key: key,
		capabilityCharts: newSearches[bool](), secretContents: newSearches[bool](), lookupCharts: newSearches[kindsAsked](),
	}
}

// Tenant is whose renderings may share a process: those of one cluster, and of its core add-ons by
// themselves, since their template data holds the cluster's secrets.
func Tenant(cluster types.UID, core bool) string {
	if core {
		return string(cluster) + "/core"
	}
	return string(cluster)
}

// Inputs finds what the objects of a request depend on.
func (r *Renderer) Inputs(q Request) (Inputs, error) {
	served, err := r.servedVersions(&q)
	if err != nil {
		return Inputs{}, err
	}
	all := resolution.Inputs{
		Installation: q.Installation, Choice: q.Choice, Content: q.Content.Digest, Values: q.Values, Images: r.images.Canonical(),
		Data: q.Data, KubernetesVersion: q.Cluster.KubernetesVersion, Served: served,
	}
	hash, err := all.Hash(r.key)
	if err != nil {
		return Inputs{}, err
	}
	wanted, err := all.Wanted(r.key)
	return Inputs{Hash: hash, Wanted: wanted}, err
}

// IsAsked says whether people's wish is that of a record but for what its artifact has become
// since: the source has something else under the same reference.
func (r *Renderer) IsAsked(q Request, record *revision.Record) (bool, error) {
	all := resolution.Inputs{
		Installation: q.Installation, Choice: q.Choice, Content: record.Artifact.Digest, Values: q.Values, Images: r.images.Canonical(),
	}
	wanted, err := all.Wanted(r.key)
	return err == nil && wanted == record.Wanted, err
}

// Render makes the objects of the next revision. Inputs, Brought and Changed of the result are
// there beside an error too.
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

// nothing is the result of a request of which nothing came.
func (q *Request) nothing() Result { return Result{Inputs: q.Inputs, Brought: q.Brought} }

// renderChange renders with what the user cluster serves but for what the content brings itself.
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
			made.Changed = changed // of a rendering before
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
		Method: string(q.method()), Inputs: key, Input: renderInput(q, seen), Anew: q.Anew, Wake: q.Wake,
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

// keeperKey is what the Keeper knows a rendering by.
func (r *Renderer) keeperKey(q *Request, seen view) (string, error) {
	if q.method() != v1.MethodHelm && !seen.otherMoment {
		return q.Inputs.Hash, nil
	}
	found, err := json.Marshal(seen.found)
	if err != nil {
		return "", fmt.Errorf("encoding what is looked up: %w", err)
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
	if q.method() == v1.MethodHelm { // nobody else sees them, and there are hundreds
		input.Capabilities.APIVersions = served(q)
	}
	if q.Choice.SeesSecrets() || q.Choice.Core && len(seen.found) > 0 {
		input.CatalogueValues = q.Values.Layers[0].Values
	}
	if helm := q.Choice.Version.Template.Helm; helm != nil {
		input.Release.DisableHooks = helm.DisableHooks
	}
	return input
}
