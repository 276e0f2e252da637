// Package tasks has one-time tasks of a manager's program, for Jobs of its chart: it updates the CRDs before an
// install or an upgrade; reports what a removal would leave behind and, if that is nothing, deletes objects that must
// be deleted first; and checks an installation.
//
// Each task has an account of its own, with rights for as long as its Job runs; the managers' accounts have none of
// them. A task writes its findings, one on each line, and ends with an error if a user has to act.
package tasks

import (
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/charts"
	"github.com/trellis-addons/trellis/pkg/serve/crds"
)

// The tasks.
const (
	// CRDs updates the CRDs of the chart.
	CRDs = "crds"
	// Removal reports what the removal of the chart would leave behind, and fails if that is not nothing. Otherwise it
	// deletes ClusterRoles that Helm must not delete together with others.
	Removal = "removal"
	// Check says whether kinds, rights, lease and webhooks of the chart are as they should be.
	Check = "check"
)

// Work is the input of a task.
type Work struct {
	Client client.Client
	// Out gets the lines for users.
	Out io.Writer
	// Chart is the chart's name: that of a seed, or of the master.
	Chart  string
	OnSeed bool
	// Namespace is the platform's, and CatalogueNamespace the one of merged catalogues.
	Namespace, CatalogueNamespace string
	// Account is the manager's ServiceAccount, and Lease the name of its lease.
	Account, Lease string
	// ClusterRoles are the names of the chart's roles that aggregate others.
	ClusterRoles []string
	// Webhooks says that webhooks are on.
	Webhooks bool
}

// Do does the task of this name.
func (w Work) Do(ctx context.Context, task string) error {
	switch task {
	case CRDs:
		return w.updateCRDs(ctx)
	case Removal:
		return w.removal(ctx)
	case Check:
		return w.check(ctx)
	}
	return fmt.Errorf("unknown task %q: use one of %q", task, []string{CRDs, Removal, Check})
}

// updateCRDs continues with the next CRD if one fails: they don't depend on each other.
func (w Work) updateCRDs(ctx context.Context) error {
	wanted, err := w.crds()
	if err != nil {
		return err
	}
	var failed error
	for _, crd := range wanted {
		outcome, err := crds.Update(ctx, w.Client, crd)
		if err != nil {
			failed = err
			fmt.Fprintln(w.Out, err)
			continue
		}
		fmt.Fprintf(w.Out, "CRD %s %s\n", crd.GetName(), outcome)
	}
	return failed
}

func (w Work) crds() ([]*unstructured.Unstructured, error) {
	files, err := charts.CRDs(w.Chart)
	if err != nil {
		return nil, err
	}
	return crds.Read(files)
}

// pageSize bounds an answer.
const pageSize = 500

// each calls a function for all objects of a list, by pages. A kind that is not served has none.
func each[L client.ObjectList](ctx context.Context, c client.Client, list L, see func(L), options ...client.ListOption) error {
	for {
		page := slices.Concat(options, []client.ListOption{client.Limit(pageSize), client.Continue(list.GetContinue())})
		err := c.List(ctx, list, page...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		see(list)
		if list.GetContinue() == "" {
			return nil
		}
	}
}
