// Package verbs lists the verbs of `kubectl addons`, for the program, its reference and tests. Add further verbs here.
package verbs

import (
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/available"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue/render"
	"github.com/trellis-addons/trellis/pkg/cli/events"
	"github.com/trellis-addons/trellis/pkg/cli/history"
	"github.com/trellis-addons/trellis/pkg/cli/images"
	"github.com/trellis-addons/trellis/pkg/cli/install"
	"github.com/trellis-addons/trellis/pkg/cli/list"
	"github.com/trellis-addons/trellis/pkg/cli/migrate"
	"github.com/trellis-addons/trellis/pkg/cli/previews"
	"github.com/trellis-addons/trellis/pkg/cli/set"
	"github.com/trellis-addons/trellis/pkg/cli/show"
	"github.com/trellis-addons/trellis/pkg/cli/status"
	"github.com/trellis-addons/trellis/pkg/cli/steer"
	"github.com/trellis-addons/trellis/pkg/cli/supportbundle"
	"github.com/trellis-addons/trellis/pkg/cli/tree"
	"github.com/trellis-addons/trellis/pkg/cli/uninstall"
	"github.com/trellis-addons/trellis/pkg/cli/upgrade"
	"github.com/trellis-addons/trellis/pkg/cli/upgradecheck"
	"github.com/trellis-addons/trellis/pkg/cli/why"
)

// All are the verbs, in the order of the help.
func All() []cli.Verb {
	return []cli.Verb{
		list.Command, available.Command, show.Command, why.Command, status.Command, tree.Command, history.Command, events.Command,
		previews.Diff, previews.Render, previews.Values, upgradecheck.Command,
		images.Command(func(config, authority []byte) images.Registries { return contents.NewRegistries(config, authority) }),
		install.Command, install.Enable, uninstall.Disable, upgrade.Command, uninstall.Command,
		steer.Pause, steer.Resume, steer.Reconcile, steer.Approve, steer.Adopt,
		set.Command,
		migrate.Command, supportbundle.Command,
		catalogue.Command(func() (render.Local, error) { return contents.NewLocal() }),
	}
}
