package installation_test

import (
	"testing"

	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// TestWhereAnItemIsInstalled turns red where an installation is asked to move to another namespace, which nobody can, and where the
// catalogue comes before the item.
func TestWhereAnItemIsInstalled(t *testing.T) {
	type landing = installation.Landing
	for _, test := range []struct {
		why                       string
		item, live, offered, want landing
	}{
		{"nobody says", landing{}, landing{}, landing{}, landing{}},
		{"the item says, and not the catalogue", landing{"a", false}, landing{"b", true}, landing{"c", true}, landing{"a", false}},
		{"it is there, whatever the catalogue says by now", landing{}, landing{"b", false}, landing{"c", true}, landing{"b", false}},
		{"the catalogue says", landing{}, landing{}, landing{"c", true}, landing{"c", true}},
		{"the item asks for the namespace", landing{"", true}, landing{}, landing{"c", false}, landing{"c", true}},
	} {
		if got := installation.LandingOf(test.item, test.live, test.offered); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.why, got, test.want)
		}
	}
}
