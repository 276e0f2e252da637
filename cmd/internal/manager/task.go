package manager

import (
	"context"
	"fmt"
	"io"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/cmd/internal/tasks"
	"github.com/trellis-addons/trellis/cmd/wiring"
)

// Program identifies which of the two managers runs.
type Program struct {
	// Chart is the name of its chart, and Lease the name of its lease, without the worker's name.
	Chart, Lease string
	OnSeed       bool
}

// Task does the task of --task, and returns the code that the program ends with. False: there is no task, and the
// program runs.
func (f *Flags) Task(ctx context.Context, program Program, out, problems io.Writer) (code int, asked bool) {
	if f.task == "" {
		return 0, false
	}
	if err := f.do(ctx, program, out); err != nil {
		_, _ = fmt.Fprintf(problems, "task %q: %v\n", f.task, Explain(err))
		return 1, true
	}
	return 0, true
}

func (f *Flags) do(ctx context.Context, program Program, out io.Writer) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	made, err := client.New(config, client.Options{Scheme: wiring.Scheme()})
	if err != nil {
		return err
	}
	work := tasks.Work{
		Client: made, Out: out, Chart: program.Chart, OnSeed: program.OnSeed,
		Namespace: f.Namespace, CatalogueNamespace: f.CatalogueNamespace,
		Account: f.taskAccount, Lease: f.lease(program.Lease), Webhooks: f.admission.isOn(), ClusterRoles: f.taskRoles,
	}
	return work.Do(ctx, f.task)
}
