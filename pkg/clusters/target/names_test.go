package target

import (
	"strings"
	"testing"
)

func TestTheItemIsInTheName(t *testing.T) {
	long := strings.Repeat("prod-", 11) + "1"
	for _, test := range []struct {
		why, name, want string
		ref             Ref
		isItem          bool
	}{
		{"KKP's have the item's", "web", "web", Ref{Kind: KindKKP, Name: "prod-1"}, true},
		{"others have the cluster before it", "prod-1.web", "web", Ref{Kind: KindClusterAPI, Name: "prod-1"}, true},
		{"a name with dots", "prod.eu.web", "web", Ref{Kind: KindClusterAPI, Name: "prod.eu"}, true},
		{"a neighbour's", "prod-10.web", "", Ref{Kind: KindClusterAPI, Name: "prod-1"}, false},
		{"no item at all", "prod-1.", "", Ref{Kind: KindClusterAPI, Name: "prod-1"}, false},
		{"one that was cut", Ref{Kind: KindClusterAPI, Name: long}.NameOf("a-long-name"), "", Ref{Kind: KindClusterAPI, Name: long}, false},
	} {
		item, isItem := test.ref.ItemOf(test.name)
		if isItem != test.isItem || isItem && item != test.want {
			t.Errorf("%s: got %q, %v", test.why, item, isItem)
		}
	}
}

func TestALongNameDistinguishesClustersOfOneName(t *testing.T) {
	seen := map[string]Ref{}
	for _, one := range []Ref{
		{Kind: KindKKP, Namespace: "cluster-prod", Name: "prod"}, {Kind: KindClusterAPI, Namespace: "team", Name: "prod"},
		{Kind: KindClusterAPI, Namespace: "team-2", Name: "prod"}, {Kind: KindClusterAPI, Namespace: "team", Name: strings.Repeat("p", 253)},
		{Kind: KindClusterAPI, Namespace: "team", Name: strings.Repeat("p", 252) + "q"},
	} {
		name := one.LongName()
		if other, isThere := seen[name]; isThere || len(name) > 253 {
			t.Errorf("%v and %v have name %q", one, other, name)
		}
		seen[name] = one
	}
	if seen["prod"].Kind != KindKKP {
		t.Error("KKP's have a name of their own alone")
	}
}
