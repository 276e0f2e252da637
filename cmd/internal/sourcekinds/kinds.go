// Package sourcekinds names the kinds of source that both managers serve. A further kind comes in
// here.
package sourcekinds

import (
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// All makes the kinds, whose requests go through the network.
func All(network *outbound.Network) fetch.Kinds {
	return fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(image.New(network)), fetch.Serve(helmrepo.New(network)))
}
