package webhook

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Catalogues checks AddonCatalogues that people write. It ignores those with a role: the charts'
// policies say who may write them.
type Catalogues struct {
	// Master bypasses caches; nil on a seed, which knows no other seed.
	Master    client.Reader
	Namespace string
	// WorkerName selects the Seeds to count, as for the distributor.
	WorkerName string
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
	case found.after == nil, found.after.DeletionTimestamp != nil, sameCatalogue(found):
		return allowed()
	}
	if err := checkCatalogue(found.after); err != nil {
		return invalid(name(request, found.after.Name, found.after.GenerateName), err)
	}
	if found.before == nil {
		return allowed(c.place(found.after)...)
	}
	return allowed(c.withdrawal(ctx, found.before, &found.after.Spec)...)
}

// place warns of a new catalogue in a namespace that is not read.
func (c *Catalogues) place(object *v1.AddonCatalogue) []string {
	if object.Namespace == c.Namespace {
		return nil
	}
	return []string{fmt.Sprintf("nobody reads this catalogue: those of people are read in namespace %q of the master only", c.Namespace)}
}

// checkCatalogue is why a catalogue would not be merged: *catalogue.InvalidError, or
// *catalogue.TooLargeError for an add-on that is too large by itself. It also refuses an invalid
// range of git tags or valuesTemplate.
func checkCatalogue(object *v1.AddonCatalogue) error {
	if git := object.Spec.Git; git != nil {
		if err := catalogue.CheckGitRef(git.Ref); err != nil {
			return fmt.Errorf("spec.git.ref.semver: %w", err)
		}
	}
	source, err := catalogue.Read(object, values.CheckVersion, values.CheckTemplate)
	if err != nil {
		return err
	}
	for _, refused := range catalogue.Merge([]*catalogue.Source{source}).Refused {
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
