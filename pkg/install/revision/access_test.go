package revision

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// TestWhatIsNotAskedForAnyMoreIsPrevious: until it is revoked, through further revisions, and no longer where it is asked for again.
func TestWhatIsNotAskedForAnyMoreIsPrevious(t *testing.T) {
	secret := ownership.Inventory{{Key: ownership.Key{Kind: "Secret", Namespace: "a", Name: "x-hub"}, UID: "1"}}
	asking := func(names ...string) (asked []v1.Access) {
		for _, name := range names {
			asked = append(asked, v1.Access{Name: name})
		}
		return asked
	}
	for _, test := range []struct {
		why      string
		before   Hub
		asks     []string
		previous []string
	}{
		{"the first asks", Hub{}, []string{"hub"}, nil},
		{"the same", Hub{Access: asking("hub")}, []string{"hub"}, nil},
		{"another", Hub{Access: asking("hub")}, []string{"other"}, []string{"hub"}},
		{"none", Hub{Access: asking("hub", "other"), PreviousAccess: []string{"old"}}, nil, []string{"old", "hub", "other"}},
		{"a former one again", Hub{Access: asking("hub"), PreviousAccess: []string{"old"}}, []string{"old"}, []string{"hub"}},
	} {
		test.before.ManagedSecrets = secret
		next := test.before.Ask(asking(test.asks...))
		if diff := cmp.Diff(Hub{Access: asking(test.asks...), PreviousAccess: test.previous, ManagedSecrets: secret}, next); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// TestPreviousSecrets fails when the Secret of a credential that keeps its name, and whose secretName differs, is forgotten, and
// when one that is used again is removed.
func TestPreviousSecrets(t *testing.T) {
	named := func(secrets ...string) (asked []v1.Access) {
		for _, secret := range secrets {
			asked = append(asked, v1.Access{Name: "hub", SecretName: secret})
		}
		return asked
	}
	if same := (Hub{Access: named("")}).Ask(named("")); len(same.PreviousSecrets) > 0 {
		t.Errorf("%q is removed although it is used", same.PreviousSecrets)
	}
	second := Hub{Access: named("first")}.Ask(named("second"))
	third := second.Ask(named(""))
	back := third.Ask(named("first"))
	got := [][]string{second.PreviousSecrets, third.PreviousSecrets, back.PreviousSecrets}
	if diff := cmp.Diff([][]string{{"first"}, {"first", "second"}, {"second", "$(installation)-hub"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(back.PreviousAccess) > 0 {
		t.Errorf("%q is revoked although it is used", back.PreviousAccess)
	}
}

// Red when SurplusAccess lets more than mostPrevious stay, or names others than the oldest behind those of the revision that worked.
func TestPreviousAccessIsBounded(t *testing.T) {
	names := make([]string, 2*mostPrevious)
	for at := range names {
		names[at] = strconv.Itoa(at)
	}
	for previous, want := range map[int][]string{0: {}, mostPrevious: {}, mostPrevious + 2: {"4", "5"}} {
		if diff := cmp.Diff(want, (&Hub{PreviousAccess: names[:previous]}).SurplusAccess(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("of %d (-want +got):\n%s", previous, diff)
		}
	}
}

// AG19: An older manager leaves those alone whose credentials it would neither renew nor revoke, and all others are
// byte for byte as they were.
func TestOnlyRecordsWithAccessNeedIt(t *testing.T) {
	for _, test := range []struct {
		why    string
		record Record
		needs  []string
	}{
		{"neither", Record{}, nil},
		{"it asks", Record{Hub: Hub{Access: []v1.Access{{Name: "hub"}}}}, []string{"access"}},
		{"it did", Record{Hub: Hub{PreviousAccess: []string{"hub"}}}, []string{"access"}},
		{"its Secrets are there", Record{Hub: Hub{ManagedSecrets: ownership.Inventory{{UID: "1"}}}}, []string{"access"}},
		{"its Secret has a name", Record{Hub: Hub{Access: []v1.Access{{Name: "hub", SecretName: "x"}}}}, []string{"access", "namedAccess"}},
		{"its Secret had one", Record{Hub: Hub{PreviousSecrets: []string{"x"}}}, []string{"access", "namedAccess"}},
		{"both", Record{Hub: Hub{Access: []v1.Access{{Name: "hub"}}}, Set: hooks.Set{Hooks: []hooks.Hook{{}}}}, []string{"access", "hooks"}},
	} {
		if diff := cmp.Diff(test.needs, indexOf(&test.record, nil, nil).Needs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
	text, err := json.Marshal(Record{})
	if err != nil || strings.Contains(strings.ToLower(string(text)), "access") || strings.Contains(string(text), "kept") {
		t.Errorf("a record without access is %s, %v", text, err)
	}
}
