package access

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// stateAccess is a token with rights on policies, on a ConfigMap of its own, and with an outbox.
func stateAccess(name string) v1.Access {
	access := hubAccess(name)
	access.Outbox = true
	access.Rules = append(access.Rules, v1.AccessRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
		ResourceNames: []string{"addon-$(installation)-state"}, Verbs: []string{"get", "update"}})
	return access
}

// listForNeighbours lists what agents of these tests have, and one approves their certificates.
func listForNeighbours(all []*seed, options Options) {
	options.Approves = []string{v1.SignerAPIServer}
	for _, s := range all {
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"), ruleOf("", "configmaps", "get", "update"))
		s.keeper = all[0].another(options)
	}
}

// grow has a token and a certificate, and gives the agents that have them.
func (s *seed) grow() (statuses []Status, agents map[string]agent) {
	s.t.Helper()
	agents = map[string]agent{}
	for _, access := range []v1.Access{stateAccess("hub"), certificateAccess("pair")} {
		statuses = append(statuses, s.becomes(access))
		agents[access.Name] = s.mounted(access)
		agents[access.Name].works()
	}
	s.settled()
	return statuses, agents
}

// groups in the certificate of an access.
func (s *seed) groups(name string) []string {
	s.t.Helper()
	block, _ := pem.Decode(s.stored(name).Data[KeyCertificate])
	if block == nil {
		s.t.Fatal("no certificate is stored")
	}
	signed, err := x509.ParseCertificate(block.Bytes)
	s.must(err)
	slices.Sort(signed.Subject.Organization)
	return signed.Subject.Organization
}

// reach is how much an agent may do with what an installation has.
type reach int

const (
	// nothing, as of another namespace.
	nothing reach = iota
	// rules that are for the whole namespace.
	rules
	// names that are the installation's, too.
	names
)

// reaches fails the test where an agent may do more than is said with what another installation has for its agents.
func (s *seed) reaches(who agent, may reach) {
	s.t.Helper()
	namespace, installation := s.holder.Cluster.Namespace, s.holder.Installation
	for _, test := range []struct {
		verb, group, resource, name string
		may                         bool
	}{
		{"list", group, "policies", "", may >= rules},
		{"update", "", "configmaps", "addon-" + installation + "-state", may == names},
		{"patch", "", "secrets", "addon-out-" + installation, may == names},
		{"get", "", "secrets", s.stored("hub").Name, false},
		{"get", "", "secrets", s.stored("pair").Name, false},
		{"list", "", "secrets", "", false},
		{"list", "", "configmaps", "", false},
		{"create", "", "serviceaccounts/token", "addon-agent-" + installation + "-hub", false},
	} {
		if is, err := who.may(test.verb, test.group, test.resource, namespace, test.name); err != nil || is != test.may {
			s.t.Errorf("%s %s %q in %s: it may %t, %v", test.verb, test.resource, test.name, namespace, is, err)
		}
	}
}

// goes takes the credentials of one of several away, and nothing of the others'.
func goes(t *testing.T, gone *seed, agents map[string]agent, others map[*seed]map[string]agent) {
	t.Helper()
	before := map[*seed][]string{}
	for other := range others {
		before[other] = other.own()
	}
	gone.must(gone.keeper.RevokeAll(t.Context(), gone.holder.Cluster.Namespace, gone.holder.Installation))
	if left := gone.own(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	gone.must(gone.keeper.Revoke(t.Context(), gone.holder, "hub", "pair"))
	agents["hub"].ends(remembers, true)
	agents["pair"].ends(remembers, false)
	for other, had := range others {
		if diff := cmp.Diff(before[other], other.own()); diff != "" {
			t.Errorf("of %s/%s (-before +after):\n%s", other.holder.Cluster.Namespace, other.holder.Installation, diff)
		}
		had["hub"].works()
		had["pair"].works()
		other.settled()
		other.good(stateAccess("hub"))
		other.good(certificateAccess("pair"))
	}
}

// own are the labelled objects of the installation.
func (s *seed) own() []string {
	s.t.Helper()
	return slices.DeleteFunc(s.left(), func(name string) bool {
		return !strings.HasPrefix(name, "addon-agent-"+s.holder.Installation+"-") && !strings.HasPrefix(name, "addon-out-"+s.holder.Installation+"@") &&
			!strings.HasPrefix(name, "addon-access-"+s.holder.Owner.ID()+"-")
	})
}

// AG05: Of Clusters of one name in two namespaces, with the same add-on, each agent does its rules in its own namespace and nothing in the
// other's; users, groups and names are apart, and what one has stays when the other's goes.
func TestClustersOfOneNameAreApart(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		all := newSeeds(t, release, "twins", target.Ref{Kind: target.KindClusterAPI, Namespace: "team-one", Name: "a"},
			target.Ref{Kind: target.KindClusterAPI, Namespace: "team-two", Name: "a"})
		listForNeighbours(all, Options{})
		one, two := all[0], all[1]
		statuses, ofOne := one.grow()
		others, ofTwo := two.grow()
		for at, s := range all {
			namespace := []string{"team-one", "team-two"}[at]
			said := [][]Status{statuses, others}[at]
			if want := "system:serviceaccount:" + namespace + ":addon-agent-a.agent-hub"; said[0].Subject != want {
				t.Errorf("the token is of %q, not %q", said[0].Subject, want)
			}
			if !strings.HasPrefix(said[1].Subject, "system:addon:"+namespace+":a:policies:") {
				t.Errorf("the certificate is of %q", said[1].Subject)
			}
			if diff := cmp.Diff([]string{"system:addon:policies", "system:addon:" + namespace + ":a:policies"}, s.groups("pair")); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		}
		if one.stored("pair").Name == two.stored("pair").Name {
			t.Errorf("both are stored, and asked for, as %s", one.stored("pair").Name)
		}
		one.reaches(ofOne["hub"], names)
		one.reaches(ofOne["pair"], rules)
		two.reaches(ofTwo["hub"], names)
		two.reaches(ofTwo["pair"], rules)
		for _, name := range []string{"hub", "pair"} {
			two.reaches(ofOne[name], nothing)
			one.reaches(ofTwo[name], nothing)
		}
		list := &corev1.ConfigMapList{}
		if err := ofOne["hub"].client.List(t.Context(), list, client.InNamespace("team-two")); !apierrors.IsForbidden(err) {
			t.Errorf("the other's namespace: %v", err)
		}
		goes(t, one, ofOne, map[*seed]map[string]agent{two: ofTwo})
	})
}

// AG05: Where the platform lets Clusters share a namespace, of either kind and of like names, each has users and names of its own, reads
// nothing that another one has by name, and goes alone; where it does not, none has anything.
func TestClustersInOneNamespaceHaveTheirOwn(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		all := newSeeds(t, release, "mates", target.Ref{Kind: target.KindClusterAPI, Namespace: "mates", Name: "cluster-1"},
			target.Ref{Kind: target.KindClusterAPI, Namespace: "mates", Name: "cluster-10"},
			target.Ref{Kind: target.KindKKP, Namespace: "mates", Name: "cluster-1"})
		listForNeighbours(all, Options{})
		for _, s := range all {
			s.holder.IsShared = true
			s.refused(stateAccess("hub"), v1.ReasonSharedNamespace)
			s.refused(certificateAccess("pair"), v1.ReasonSharedNamespace)
		}
		if left := all[0].left(); len(left) > 0 {
			t.Errorf("made are %q", left)
		}
		listForNeighbours(all, Options{Shared: true})
		subjects, agents := map[string]string{}, map[*seed]map[string]agent{}
		for _, s := range all {
			statuses, grown := s.grow()
			agents[s] = grown
			for _, status := range statuses {
				whose := fmt.Sprintf("%s of %s", status.Name, s.holder.Installation)
				if other := subjects[status.Subject]; other != "" || status.Subject == "" {
					t.Errorf("%s is %q, as %s", whose, status.Subject, other)
				}
				subjects[status.Subject] = whose
			}
		}
		for _, s := range all {
			for _, other := range all {
				if other.reaches(agents[s]["pair"], rules); other == s {
					other.reaches(agents[s]["hub"], names)
					continue
				}
				other.reaches(agents[s]["hub"], rules)
			}
		}
		gone := all[0]
		ofGone := agents[gone]
		delete(agents, gone)
		goes(t, gone, ofGone, agents)
	})
}
