package manager

import (
	"flag"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestListsAreSeparatedByCommasOrRepeated(t *testing.T) {
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	var names []string
	var ranges []netip.Prefix
	ListVar(set, &names, "names", "", Name)
	ListVar(set, &ranges, "ranges", "", CIDR)
	if err := set.Parse([]string{"--names=a, b,", "--names", "c", "--ranges=10.0.0.0/8", "-ranges=fd00::/8"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("names are %q", names)
	}
	if got := set.Lookup("ranges").Value.String(); got != "10.0.0.0/8,fd00::/8" {
		t.Errorf("ranges are %q", got)
	}
	for _, wrong := range []string{"", "10.0.0.0", "10.0.0.0/8,"} {
		if err := set.Parse([]string{"--ranges=" + wrong}); err == nil || !strings.Contains(err.Error(), "address range") {
			t.Errorf("range %q: got %v", wrong, err)
		}
	}
	set.PrintDefaults() // asks zero values
}
