package webhook

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Catalogues checks AddonCatalogues that users write. It ignores those with a role: the charts' policies restrict
// their writers.
type Catalogues struct {
	// Master is the result of Master; nil on a seed, which knows no other seed.
	Master client.Reader
	// Seed bypasses caches; nil on the master.
	Seed      client.Reader
	Namespace string
	// WorkerName selects the Seeds to count, as for the distributor.
	WorkerName string

	scale catalogue.Scale
}

// Handle implements admission.Handler.
func (c *Catalogues) Handle(ctx context.Context, request admission.Request) admission.Response {
	found, err := decode[v1.AddonCatalogue](request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case hasRole(found.before), hasRole(found.after):
		return allowed()
	case request.Operation == admissionv1.Delete && found.before != nil:
		return allowed(c.withdrawal(ctx, found.before, nil)...)
	case found.after == nil:
		return allowed()
	}
	if err := c.checkSpace(ctx, found); err != nil {
		return forbidden(fmt.Sprintf("%s: %v", name(request, found.after), err))
	}
	switch {
	case found.after.DeletionTimestamp != nil:
		return allowed()
	case sameCatalogue(found):
		return allowed(droppedNulls(request)...)
	}
	if err := checkCatalogue(ctx, found.after); err != nil {
		return invalid(request, found.after, err)
	}
	warnings := append(droppedNulls(request), slips(found.before, found.after)...)
	warnings = append(warnings, c.owned(ctx, found.after)...)
	if found.before == nil {
		return allowed(append(warnings, c.place(ctx, found.after)...)...)
	}
	return allowed(append(warnings, c.withdrawal(ctx, found.before, &found.after.Spec)...)...)
}

// place warns about a new catalogue that no controller reads, because of its namespace or its cluster.
func (c *Catalogues) place(ctx context.Context, object *v1.AddonCatalogue) []string {
	if object.Namespace == c.Namespace && !isSeedOnly(ctx, c.Seed, c.Namespace) {
		return nil
	}
	return []string{fmt.Sprintf("ignored: catalogues that users write are read in namespace %q of the master only", c.Namespace)}
}

// isSeedOnly says whether the cluster is a seed and not the master too, which has ConfigMap addon-usage. The reader
// is nil on the master.
func isSeedOnly(ctx context.Context, seed client.Reader, namespace string) bool {
	if seed == nil {
		return false
	}
	return apierrors.IsNotFound(seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1.ConfigMapUsage}, &corev1.ConfigMap{}))
}

// checkCatalogue is why a catalogue would not be merged: *catalogue.InvalidError, or *catalogue.TooLargeError for a
// single add-on that is too large. It also refuses an invalid range of git tags or valuesTemplate.
func checkCatalogue(ctx context.Context, object *v1.AddonCatalogue) error {
	if git := object.Spec.Git; git != nil {
		if err := catalogue.CheckGitRef(git.Ref); err != nil {
			return fmt.Errorf("spec.git.ref.semver: %w", err)
		}
	}
	source, err := catalogue.Read(object, values.CheckVersion, values.CheckTemplate, health.Check(ctx), rights.CheckVersion)
	if err != nil {
		return err
	}
	for _, refused := range catalogue.Merge([]*catalogue.Source{source}, catalogue.Claims{}).Refused {
		return refused
	}
	return nil
}

func hasRole(object *v1.AddonCatalogue) bool {
	return object != nil && object.Labels[v1.LabelRole] != ""
}

func sameCatalogue(found change[v1.AddonCatalogue]) bool {
	return found.before != nil && equality.Semantic.DeepEqual(found.before.Spec, found.after.Spec)
}

// Warnings are short and few: the API server truncates each to 256 bytes once all have 4 KiB.
const (
	seedsWarned    = 15
	versionsWarned = 3
	ownedWarned    = 5
)

// owned warns about add-ons of another Custom catalogue. If the owners can't be read, there is no warning: the status reports it.
func (c *Catalogues) owned(ctx context.Context, object *v1.AddonCatalogue) (warnings []string) {
	if c.Master == nil || object.Namespace != c.Namespace || object.Spec.Type == v1.CatalogueCore {
		return nil
	}
	owners, err := c.owners(ctx)
	if err != nil {
		return nil
	}
	takesOver := catalogue.TakesOver(object)
	for i := range object.Spec.Addons {
		name := string(object.Spec.Addons[i].Name)
		if of := owners[name]; len(of) == 0 || slices.Contains(of, object.Name) || takesOver[name] {
			continue
		}
		if len(warnings) == ownedWarned {
			return append(warnings, "more add-ons belong to other catalogues: condition Conflicting counts them")
		}
		warnings = append(warnings, fmt.Sprintf("addon %q belongs to catalogue %q and is left out here until it is removed from that "+
			"catalogue, or a user "+
			"with verb %s sets annotation %s", name, text.Cut(owners[name][0], 32), v1.VerbManageCore, v1.AnnotationTakeOver))
	}
	return warnings
}

// owners are those of all add-ons; none before the distributor's first reconciliation.
func (c *Catalogues) owners(ctx context.Context) (catalogue.Owners, error) {
	var kept corev1.ConfigMap
	err := c.Master.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: v1.ConfigMapOwners}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapOwners, err)
	}
	owners, _ := catalogue.DecodeOwners(kept.Data)
	return owners, nil
}

// withdrawal warns, by seed, about installations that use versions which an edit withdraws; after is nil for a
// deletion. If something can't be read, it warns too, and never refuses.
func (c *Catalogues) withdrawal(ctx context.Context, before *v1.AddonCatalogue, after *v1.AddonCatalogueSpec) []string {
	if c.Master == nil || before.Namespace != c.Namespace || before.DeletionTimestamp != nil {
		return nil
	}
	if after != nil && len(catalogue.Withdrawn(nil, catalogue.Offering{Spec: &before.Spec}, catalogue.Offering{Spec: after})) == 0 {
		return nil
	}
	going, err := c.withdrawn(ctx, before, after)
	if err == nil && len(going) == 0 {
		return nil
	}
	usages, missing, readErr := c.usage(ctx)
	if err != nil || readErr != nil {
		return []string{"it is not known whether installations use the removed versions: not all of the master's objects can be read"}
	}
	warnings := usageWarnings(going, usages, missing)
	if after == nil { // it can't be checked again later
		warnings = append(warnings, "installations of the last minute may not be counted yet")
	}
	return warnings
}

// withdrawn are the versions that no catalogue has after the edit. The catalogues generated from a git catalogue end with it.
func (c *Catalogues) withdrawn(
	ctx context.Context, before *v1.AddonCatalogue, after *v1.AddonCatalogueSpec,
) ([]catalogue.UsedVersion, error) {
	var all v1.AddonCatalogueList
	if err := c.Master.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("listing AddonCatalogues: %w", err)
	}
	owners, err := c.owners(ctx)
	if err != nil {
		return nil, err
	}
	going := v1.AddonCatalogueSpec{Type: before.Spec.Type, Addons: slices.Clone(before.Spec.Addons)}
	var remaining []catalogue.Offering
	if after != nil {
		remaining = append(remaining, catalogue.Offering{Author: before.Name, Spec: after})
	}
	for i := range all.Items {
		other := &all.Items[i]
		role := other.Labels[v1.LabelRole]
		switch {
		case other.UID == before.UID, other.DeletionTimestamp != nil, role != "" && role != v1.RoleGenerated:
		case after == nil && metav1.IsControlledBy(other, before) && budget.IsStub(other):
			return nil, fmt.Errorf("AddonCatalogue %q is cached without its content", other.Name)
		case after == nil && metav1.IsControlledBy(other, before):
			going.Addons = append(going.Addons, other.Spec.Addons...)
		default:
			remaining = append(remaining, catalogue.Offering{Author: catalogue.Author(other), Spec: &other.Spec})
		}
	}
	return catalogue.Withdrawn(owners, catalogue.Offering{Author: before.Name, Spec: &going}, remaining...), nil
}

// usage reads the distributor's last counts, and which Seeds were never counted.
func (c *Catalogues) usage(ctx context.Context) (usages []catalogue.SeedUsage, missing []string, err error) {
	var book corev1.ConfigMap
	err = c.Master.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: v1.ConfigMapUsage}, &book)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapUsage, err)
	}
	seeds, err := cluster.ListSeeds(ctx, c.Master, c.Namespace, c.WorkerName)
	if err != nil {
		return nil, nil, err
	}
	for _, seed := range seeds { // by name
		usage, err := catalogue.DecodeUsage(seed.Name, book.Data[seed.Name])
		if err != nil {
			missing = append(missing, seed.Name)
			continue
		}
		usages = append(usages, usage)
	}
	return usages, missing, nil
}

func usageWarnings(withdrawn []catalogue.UsedVersion, usages []catalogue.SeedUsage, missing []string) []string {
	var warnings []string
	unlisted := 0
	for _, usage := range usages {
		count := usage.Of(withdrawn)
		switch {
		case count == 0:
		case len(warnings) < seedsWarned:
			warnings = append(warnings, seedWarning(usage, count, withdrawn))
		default:
			unlisted++
		}
	}
	if unlisted > 0 {
		warnings = append(warnings, fmt.Sprintf("installations on %d more seeds use the removed versions", unlisted))
	}
	if len(missing) > 0 {
		warnings = append(warnings, fmt.Sprintf("it is not known whether installations use the removed versions: seeds not counted yet: %s",
			text.Names(missing, seedsWarned)))
	}
	return warnings
}

func seedWarning(usage catalogue.SeedUsage, count int, withdrawn []catalogue.UsedVersion) string {
	var shown []string
	for _, version := range slices.SortedFunc(maps.Keys(usage.Installations), compareUsed) {
		if slices.Contains(withdrawn, version) {
			name := cmp.Or(version.Version, "(no version chosen yet)")
			shown = append(shown, fmt.Sprintf("%d of %s %s", usage.Installations[version], version.Addon, name))
		}
	}
	when := ""
	if !usage.LastSeen.IsZero() {
		when = fmt.Sprintf(", counted before the seed became unreachable at %s", usage.LastSeen.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("seed %q: %s on it %s the removed versions (%s)%s; nothing is uninstalled",
		usage.Seed, text.Count(count, "installation"), verb(count, "use"), text.Names(shown, versionsWarned), when)
}

func compareUsed(a, b catalogue.UsedVersion) int {
	return cmp.Or(cmp.Compare(a.Addon, b.Addon), catalogue.Compare(a.Version, b.Version))
}

func verb(count int, plural string) string {
	if count == 1 {
		return plural + "s"
	}
	return plural
}
