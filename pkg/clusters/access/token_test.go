package access

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// AG05: What the agent may do is its rules, in its namespace, and nothing of its neighbours.
func TestAnAgentMayDoItsRulesAndNoMore(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "rules")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list", "watch"), ruleOf("", "configmaps", "get", "update"))
		access := hubAccess("hub")
		access.Rules = append(access.Rules, v1.AccessRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{"addon-$(installation)-state"}, Verbs: []string{"get", "update"}})
		access.Outbox = true
		status := s.good(access)
		if want := "system:serviceaccount:cluster-rules:addon-agent-agent-hub"; status.Subject != want || status.Secret != "agent-hub" {
			t.Errorf("it is %q in Secret %q, not %q", status.Subject, status.Secret, want)
		}
		agent := s.mounted(access)
		agent.works()
		for _, test := range []struct {
			why, verb, group, resource, namespace, name string
			may                                         bool
		}{
			{"its rule", "get", group, "policies", "cluster-rules", "", true},
			{"a verb that was not asked for, though listed", "watch", group, "policies", "cluster-rules", "", false},
			{"the neighbour with a like name", "get", group, "policies", "cluster-rules0", "", false},
			{"all namespaces", "list", group, "policies", "", "", false},
			{"its ConfigMap", "update", "", "configmaps", "cluster-rules", "addon-agent-state", true},
			{"another add-on's ConfigMap", "get", "", "configmaps", "cluster-rules", "addon-agents-state", false},
			{"all ConfigMaps", "list", "", "configmaps", "cluster-rules", "", false},
			{"its outbox", "patch", "", "secrets", "cluster-rules", "addon-out-agent", true},
			{"the Secret that keeps it", "get", "", "secrets", "cluster-rules", s.stored("hub").Name, false},
			{"a cluster's kubeconfig", "get", "", "secrets", "cluster-rules", "admin-kubeconfig", false},
			{"Secrets", "list", "", "secrets", "cluster-rules", "", false},
			{"a token of its own account", "create", "", "serviceaccounts/token", "cluster-rules", "addon-agent-agent-hub", false},
			{"approval", "update", "certificates.k8s.io", "certificatesigningrequests/approval", "", "", false},
			{"nodes", "list", "", "nodes", "", "", false},
		} {
			if may, err := agent.may(test.verb, test.group, test.resource, test.namespace, test.name); err != nil || may != test.may {
				t.Errorf("%s: it may %t, %v", test.why, may, err)
			}
		}
		var neighbours corev1.ConfigMapList
		if err := agent.client.List(t.Context(), &neighbours, client.InNamespace("kube-system")); !apierrors.IsForbidden(err) {
			t.Errorf("reading kube-system: %v", err)
		}
	})
}

// The figures are those of the design: six writes, two, none.
func TestWhatKeepingCosts(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "cost")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		expectCalls := func(why string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, s.made()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", why, diff)
			}
		}
		first := s.good(access)
		expectCalls("first issue", "create ServiceAccount", "create Role", "create RoleBinding", "create Secret", "token", "update Secret")
		if life := first.Expires.Sub(s.now).Round(time.Minute); life != 24*time.Hour {
			t.Errorf("it lasts %s", life)
		}
		s.one(access) // the cache may be behind: nothing is written
		if calls := writes(s.made()); len(calls) > 0 {
			t.Errorf("right after: %q", calls)
		}
		s.settled()
		s.one(access)
		s.made()
		if again := s.good(access); !reflect.DeepEqual(again, first) {
			t.Errorf("at rest it stands otherwise: %+v, not %+v", again, first)
		}
		expectCalls("at rest")

		s.memory = &Memory{}
		if again := s.good(access); !reflect.DeepEqual(again, first) {
			t.Errorf("after a restart it stands otherwise: %+v, not %+v", again, first)
		}
		expectCalls("after a restart", "get Secret")
		s.good(access)
		expectCalls("at rest again")

		if from, to := s.now.Add(19*time.Hour), s.now.Add(21*time.Hour); first.Next.Before(from) || first.Next.After(to) {
			t.Errorf("it is renewed at %s, not between %s and %s", first.Next, from, to)
		}
		before := s.mounted(access)
		s.made()
		s.now = first.Next
		second := s.good(access)
		expectCalls("renewal", "get Secret", "token", "update Secret")
		if second.Digest == first.Digest || second.Digest == "" {
			t.Errorf("the digest is %q before and after", second.Digest)
		}
		before.works() // until its end
		s.mounted(access).works()
	})
}

func TestARenewalThatFailsLeavesTheOldOneUntilItsEnd(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "newer", "fails")
	s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
	access := hubAccess("hub")
	first := s.good(access)
	s.settled()
	const canary = "c4n4ry"
	answer := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, "x", errors.New(canary))
	s.fails = func(call string, _ bool) error {
		if call == "token" {
			return answer
		}
		return nil
	}
	s.now = first.Next
	pending := s.refused(access, v1.ReasonRenewalPending)
	if !pending.Usable || !pending.Next.After(s.now) || pending.Next.After(s.now.Add(2*mostWait)) || pending.Digest != first.Digest {
		t.Errorf("%+v", pending)
	}
	if strings.Contains(pending.Problem.Message, canary) { // AG18
		t.Errorf("it quotes the answer: %s", pending.Problem.Message)
	}
	s.made()
	if again := s.refused(access, v1.ReasonRenewalPending); len(s.made()) > 0 || !again.Usable {
		t.Errorf("it is tried again before its time: %+v", again)
	}
	pauses := []time.Duration{}
	for range 12 {
		before := s.now
		s.now = pending.Next
		pending = s.refused(access, v1.ReasonRenewalPending)
		pauses = append(pauses, s.now.Sub(before))
	}
	if !slices.IsSorted(pauses) || pauses[11] != mostWait {
		t.Errorf("the pauses are %v", pauses)
	}
	s.now = first.Expires
	if expired := s.refused(access, v1.ReasonExpired); expired.Usable || expired.Next.IsZero() || expired.Problem.IsLasting {
		t.Errorf("%+v", expired)
	}
	s.fails = nil
	s.now = s.now.Add(mostWait) // of tokens the API server's clock counts
	access.Lifetime = &metav1.Duration{Duration: 100 * time.Hour}
	if good := s.good(access); good.Digest == first.Digest {
		t.Error("it is not another one")
	}
}

// A first issue that fails is the caller's to try again: there is nothing to tell.
func TestAFirstIssueThatFailsIsAnErrorWithoutWordsOfTheAnswer(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	s := newSeed(t, "newer", "first")
	s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
	s.fails = func(call string, _ bool) error {
		if call == "update Secret" {
			return apierrors.NewInternalError(errors.New(canary))
		}
		return nil
	}
	statuses, err := s.keeper.Keep(t.Context(), s.holder, []v1.Access{hubAccess("hub")}, s.memory, s.now)
	if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "code 500") { // AG18
		t.Errorf("the error is %v", err)
	}
	if len(statuses) != 1 || statuses[0].Usable || statuses[0].Name != "hub" {
		t.Errorf("%+v", statuses)
	}
	if content, _, err := s.keeper.Content(t.Context(), s.holder, hubAccess("hub")); content != nil || err != nil {
		t.Errorf("%d keys are handed out, %v", len(content), err)
	}
	s.fails = nil
	s.good(hubAccess("hub"))
	s.mounted(hubAccess("hub")).works()
}

// AG11: A process that ends before or after any write of a first issue, a renewal or a rotation leaves what the next one goes on from.
func TestAProcessMayEndAtEachWrite(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "ends")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		killed := errors.New("killed")
		for _, story := range []string{"issue", "renewal", "rotation", "revocation"} {
			for number := 1; ; number++ {
				for _, after := range []bool{false, true} {
					access := hubAccess(fmt.Sprintf("%s-%d-%t", story, number, after))
					s.memory, s.now, s.holder.RotateAt = &Memory{}, time.Now(), ""
					if story != "issue" {
						first := s.good(access)
						s.settled()
						switch story {
						case "renewal":
							s.now = first.Next
						case "rotation":
							s.holder.RotateAt = access.Name
						}
					}
					isKilled := s.killAt(number, after, killed)
					var err error
					if story == "revocation" {
						err = s.keeper.Revoke(t.Context(), s.holder, access.Name)
					} else {
						_, err = s.keeper.Keep(t.Context(), s.holder, []v1.Access{access}, s.memory, s.now)
					}
					wasKilled := isKilled()
					s.fails, s.memory, s.keeper = nil, &Memory{}, s.another(Options{})
					if story == "revocation" {
						s.must(s.keeper.RevokeAll(t.Context(), s.holder.Cluster.Namespace, s.holder.Installation))
						s.must(s.keeper.Revoke(t.Context(), s.holder, access.Name))
						if left := s.left(); len(left) > 0 {
							t.Fatalf("%s, write %d: %q are left", story, number, left)
						}
					} else {
						s.good(access)
						s.mounted(access).works()
					}
					if wasKilled {
						continue
					}
					if err != nil || number < 3 {
						t.Fatalf("%s ends after %d writes: %v", story, number, err)
					}
					number = -1
					break
				}
				if number < 0 {
					break
				}
			}
		}
	})
}

// AG14: What was issued twice at once is stored once, and only that is handed out.
func TestOfTwoThatRenewAtOnceOneIsStored(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "race")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		first := s.good(access)
		s.settled()
		other, memory := s.another(Options{}), &Memory{}
		s.now = first.Next
		var between Status
		s.fails = func(call string, isDone bool) error {
			if call != "token" || !isDone {
				return nil
			}
			s.mutex.Lock()
			s.fails = nil
			s.mutex.Unlock()
			statuses, err := other.Keep(t.Context(), s.holder, []v1.Access{access}, memory, s.now)
			between = statuses[0]
			return err
		}
		loser := s.good(access)
		if between.Digest == "" || between.Digest == first.Digest || loser.Digest != between.Digest {
			t.Errorf("the digest was %q, the winner's is %q, the loser's %q", first.Digest, between.Digest, loser.Digest)
		}
		_, handedOut, err := s.keeper.Content(t.Context(), s.holder, access)
		if err != nil || handedOut != between.Digest {
			t.Errorf("handed out is %q, %v", handedOut, err)
		}
		s.mounted(access).works()
		s.made()
		s.settled()
		s.good(access)
		if calls := writes(s.made()); len(calls) > 0 {
			t.Errorf("then it writes %q", calls)
		}
	})
}

// AG09: What was issued before is worth nothing.
func TestARotationEndsWhatWasIssuedBefore(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "rotates")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		first := s.good(access)
		previous := s.mounted(access)
		previous.works()
		s.settled()
		s.made()
		s.holder.RotateAt = "now"
		if content, _, err := s.keeper.Content(t.Context(), s.holder, access); content != nil || err != nil {
			t.Errorf("what is to end is handed out, %v", err)
		}
		s.made()
		second := s.good(access)
		if diff := cmp.Diff([]string{"get Secret", "delete Secret", "create Secret", "token", "update Secret"}, s.made()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if second.Digest == first.Digest {
			t.Error("the digest is the same")
		}
		previous.ends(remembers, true)
		now := s.mounted(access)
		now.works()
		s.settled()
		s.good(access)
		s.holder.RotateAt = "" // asks for nothing
		s.made()
		if third := s.good(access); third.Digest != second.Digest || len(s.made()) > 0 {
			t.Errorf("without the annotation: %+v", third)
		}
		now.works()
	})
}

// AG09: A leak is ended also where nothing is given out any more: the API server knows the token no more, and nothing is bound to the
// user of the certificate.
func TestARotationEndsWhatWasIssuedAlsoWithoutAHub(t *testing.T) {
	for why, test := range map[string]struct {
		access    v1.Access
		isUnknown bool
	}{"token": {hubAccess("hub"), true}, "certificate": {certificateAccess("pair"), false}} {
		t.Run(why, func(t *testing.T) {
			onEach(t, func(t *testing.T, release string) {
				s := newSeed(t, release, "leak-"+why)
				s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
				s.keeper = s.another(Options{Approves: []string{v1.SignerAPIServer}})
				s.becomes(test.access)
				previous := s.mounted(test.access)
				previous.works()
				s.settled()
				s.hub, s.holder.RotateAt = Hub{}, "now"
				s.refused(test.access, v1.ReasonHubUnknown)
				previous.ends(remembers, test.isUnknown)
			})
		})
	}
}

// AG08: The agent of the Cluster that had the name is not known to the one that has it.
func TestARecreatedClusterKnowsNoneOfThePrevious(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "again")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		token, certificate := hubAccess("hub"), certificateAccess("pair")
		token.Outbox = true
		s.keeper = s.another(Options{Approves: []string{v1.SignerAPIServer}})
		s.becomes(token)
		s.becomes(certificate)
		byToken, byCertificate := s.mounted(token), s.mounted(certificate)
		byToken.works()
		byCertificate.works()
		outbox := &corev1.Secret{}
		s.must(s.get("addon-out-agent", outbox))
		s.settled()
		origin := s.holder.Owner
		s.newCluster()
		s.holder.Owner = origin // it came back over the same user cluster: names are the same
		s.becomes(token)
		s.becomes(certificate)
		byToken.ends(remembers, true)
		byCertificate.ends(remembers, false)
		s.mounted(token).works()
		s.mounted(certificate).works()
		again := &corev1.Secret{}
		if s.must(s.get("addon-out-agent", again)); again.UID == outbox.UID {
			t.Error("the outbox of the former is there")
		}
	})
}

// AG06: What has one of our names and is not ours stays as it is, and nothing is handed out.
func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	for _, test := range []struct {
		kind    string
		object  client.Object
		content func(client.Object) any
	}{
		{"account", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "addon-agent-agent-hub"}}, nil},
		{"role", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "addon-agent-agent-hub"}, Rules: []rbacv1.PolicyRule{ruleOf("x", "y", "get")}}, nil},
		{"binding", &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "addon-agent-agent-hub"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "x"},
		}, nil},
		{"outbox", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "addon-out-agent"}, StringData: map[string]string{"a": "b"}}, nil},
		{"stored", &corev1.Secret{StringData: map[string]string{"a": "b"}}, nil},
	} {
		t.Run(test.kind, func(t *testing.T) {
			onEach(t, func(t *testing.T, release string) {
				s := newSeed(t, release, "taken-"+test.kind)
				s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
				access := hubAccess("hub")
				access.Outbox = true
				object := test.object.DeepCopyObject().(client.Object)
				object.SetNamespace(s.holder.Cluster.Namespace)
				if object.GetName() == "" {
					object.SetName("addon-access-" + s.holder.Owner.ID() + "-hub")
				}
				// The label alone makes nothing ours.
				object.SetLabels(map[string]string{v1.LabelAccess: s.holder.Owner.ID()})
				s.must(s.admin.Create(t.Context(), object))
				taken := s.refused(access, v1.ReasonNameTaken)
				if taken.Usable || !taken.Problem.IsLasting || !strings.Contains(taken.Problem.Message, object.GetName()) || taken.Next.IsZero() {
					t.Errorf("%+v: %+v", taken, taken.Problem)
				}
				if content, _, err := s.keeper.Content(t.Context(), s.holder, access); content != nil || err != nil {
					t.Errorf("%d keys are handed out, %v", len(content), err)
				}
				now := object.DeepCopyObject().(client.Object)
				s.must(s.get(object.GetName(), now))
				if now.GetResourceVersion() != object.GetResourceVersion() {
					t.Error("it was written")
				}
				s.must(s.keeper.Revoke(t.Context(), s.holder, "hub"))
				s.must(s.get(object.GetName(), now))
				s.must(s.admin.Delete(t.Context(), now))
				s.settled()
				s.becomes(access)
				s.mounted(access).works()
			})
		})
	}
}

// AG06: The agent of a name that became somebody else's loses its rights: what it is bound to is not what was listed.
func TestNamesThatWereTakenLaterTakeTheBindingAway(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "later")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		access.Outbox = true
		s.good(access)
		agent := s.mounted(access)
		agent.works()
		s.must(s.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agent.namespace, Name: "addon-out-agent"}}))
		s.must(s.admin.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agent.namespace, Name: "addon-out-agent"}}))
		s.settled()
		s.refused(access, v1.ReasonNameTaken)
		agent.ends(remembers, false)
	})
}

// AG06: Edits of ours are put back, and what is deleted is made again.
func TestEditsArePutBack(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "edits")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		s.good(access)
		s.settled()
		s.good(access)
		yes := true
		edit := func(object client.Object, change func()) func() {
			return func() {
				s.must(s.get("addon-agent-agent-hub", object))
				change()
				s.must(s.admin.Update(t.Context(), object))
			}
		}
		account, role, binding := &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}
		secret := func(change func(*corev1.Secret)) func() {
			return func() {
				found := s.stored("hub")
				change(found)
				s.must(s.admin.Update(t.Context(), found))
			}
		}
		for _, test := range []struct {
			why    string
			do     func()
			writes []string
			isNew  bool
		}{
			{"the account's token is mounted", edit(account, func() { account.AutomountServiceAccountToken = &yes }), []string{"update ServiceAccount"}, false},
			{"the account has no owner", edit(account, func() { account.OwnerReferences = nil }), []string{"update ServiceAccount"}, false},
			{"the account has no label", edit(account, func() { account.Labels = nil }), []string{"update ServiceAccount"}, false},
			{"another rule", edit(role, func() { role.Rules = append(role.Rules, ruleOf("*", "*", "*")) }), []string{"update Role"}, false},
			{"another subject", edit(binding, func() {
				binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "x"})
			}), []string{"update RoleBinding"}, false},
			{"another's binding", edit(binding, func() { binding.Annotations = nil }), []string{"update RoleBinding"}, false},
			{"another role is bound", func() {
				edit(binding, func() {})()
				s.must(s.admin.Delete(t.Context(), binding))
				binding.ResourceVersion, binding.UID, binding.RoleRef.Kind, binding.RoleRef.Name = "", "", "ClusterRole", "cluster-admin"
				s.must(s.admin.Create(t.Context(), binding))
			}, []string{"delete RoleBinding", "create RoleBinding"}, false},
			{"the role is gone", func() { edit(role, func() {})(); s.must(s.admin.Delete(t.Context(), role)) }, []string{"create Role"}, false},
			{"the binding is gone", func() { edit(binding, func() {})(); s.must(s.admin.Delete(t.Context(), binding)) }, []string{"create RoleBinding"}, false},
			{"the Secret's label is gone", secret(func(found *corev1.Secret) { found.Labels = nil }), []string{"update Secret"}, false},
			{"the token is another", secret(func(found *corev1.Secret) { found.Data[KeyToken][20] ^= 1 }), []string{"token", "update Secret"}, true},
			{"it is said to last", secret(func(found *corev1.Secret) {
				found.Data[keyState] = []byte(strings.ReplaceAll(string(found.Data[keyState]), `"expires":"20`, `"expires":"21`))
			}), []string{"token", "update Secret"}, true},
			{"the record is none", secret(func(found *corev1.Secret) { found.Data[keyState] = []byte("{") }), []string{"token", "update Secret"}, true},
			{"the Secret is empty", secret(func(found *corev1.Secret) { found.Data = nil }), []string{"token", "update Secret"}, true},
			{"the Secret is gone", func() { s.must(s.admin.Delete(t.Context(), s.stored("hub"))) }, []string{"create Secret", "token", "update Secret"}, true},
			{
				"the account is gone", func() { edit(account, func() {})(); s.must(s.admin.Delete(t.Context(), account)) },
				[]string{"create ServiceAccount", "token", "update Secret"}, true,
			},
		} {
			t.Run(test.why, func(t *testing.T) {
				before := s.good(access)
				test.do()
				s.settled()
				s.made()
				after := s.good(access)
				if diff := cmp.Diff(test.writes, writes(s.made())); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if isNew := after.Digest != before.Digest; isNew != test.isNew {
					t.Errorf("a new one: %t", isNew)
				}
				s.mounted(access).works()
				s.settled()
				s.good(access)
				s.made()
				if s.good(access); len(s.made()) > 0 {
					t.Error("it is not at rest after")
				}
			})
		}
	})
}

// AG02, AG07: What is not listed is not given, and taken away.
func TestTheListDecides(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "lists")
		access := hubAccess("hub")
		nothing := func(why string, words ...string) {
			t.Helper()
			refused := s.refused(access, v1.ReasonRightsRefused)
			for _, word := range append(words, v1.LabelAgents+"="+v1.AgentsCustom) {
				if !strings.Contains(refused.Problem.Message, word) {
					t.Errorf("%s: %q does not name %q", why, refused.Problem.Message, word)
				}
			}
			if refused.Usable || !refused.Problem.IsLasting {
				t.Errorf("%s: %+v", why, refused)
			}
		}
		nothing("no list", group)
		s.list(v1.AgentsCore, ruleOf(group, "policies", "get", "list"))
		nothing("a Custom add-on and the core list", group, "policies")
		if left, calls := s.left(), s.made(); len(left)+len(calls) > 0 {
			t.Errorf("made are %q, by %q", left, calls)
		}
		s.holder.Core = true
		s.good(access)
		agent := s.mounted(access)
		agent.works()
		s.settled()
		s.made()
		s.holder.Core = false
		nothing("the catalogue turns Custom", group)
		if calls := s.made(); !slices.Equal(calls, []string{"delete RoleBinding"}) {
			t.Errorf("its calls are %q", calls)
		}
		agent.ends(10*time.Second, false)

		s.list(v1.AgentsCustom, ruleOf(group, "policies", "*"))
		s.settled()
		s.good(access)
		agent.works()
		s.settled()
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get"))
		nothing("the list shrinks", "list policies")
		agent.ends(10*time.Second, false)
		s.settled()
		s.made()
		nothing("it stays so")
		if calls := s.made(); len(calls) > 0 {
			t.Errorf("its calls are %q", calls)
		}
		if left := s.left(); len(left) != 3 { // account, role, Secret
			t.Errorf("left are %q", left)
		}
		s.list(v1.AgentsCustom, ruleOf("*", "*", "*"))
		s.good(access)
		agent.works()
	})
}

// A list that shrinks takes bindings away without the version, or the user cluster.
func TestRevokeUnlistedChecksExistingRights(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "withhold")
		s.holder.Core = true
		s.list(v1.AgentsCore, ruleOf(group, "policies", "get", "list"))
		s.good(hubAccess("hub"))
		agent := s.mounted(hubAccess("hub"))
		s.settled()
		s.made()
		s.must(s.keeper.RevokeUnlisted(t.Context(), s.installation(), ""))
		if calls := s.made(); len(calls) > 0 {
			t.Errorf("while it is listed: %q", calls)
		}
		s.list(v1.AgentsCore)
		s.must(s.keeper.RevokeUnlisted(t.Context(), client.ObjectKey{Namespace: s.holder.Cluster.Namespace, Name: "another"}, ""))
		if calls := s.made(); len(calls) > 0 {
			t.Errorf("of another installation: %q", calls)
		}
		s.must(s.keeper.RevokeUnlisted(t.Context(), s.installation(), ""))
		if calls := s.made(); !slices.Equal(calls, []string{"delete RoleBinding"}) {
			t.Errorf("its calls are %q", calls)
		}
		agent.ends(10*time.Second, false)
	})
}

// AG01: A merged object that was written past both checks.
func TestWhatIsBeyondTheFloorIsNotGiven(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "newer", "floor")
	s.list(v1.AgentsCustom, ruleOf("*", "*", "*"))
	access := hubAccess("hub")
	s.good(access)
	agent := s.mounted(access)
	s.settled()
	access.Rules = append(access.Rules, v1.AccessRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	if refused := s.refused(access, v1.ReasonRightsRefused); !strings.Contains(refused.Problem.Message, "secrets") || refused.Usable {
		t.Errorf("%+v: %+v", refused, refused.Problem)
	}
	agent.works() // what it had is listed, and within the floor
}

// AG09: Also where the user cluster does not answer, or is paused, so that no credential is kept.
func TestARotationNeedsNoVersion(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "early")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		s.good(hubAccess("hub"))
		agent := s.mounted(hubAccess("hub"))
		s.settled()
		s.made()
		namespace, name := s.holder.Cluster.Namespace, s.holder.Installation
		for _, none := range []struct{ installation, at string }{{name, ""}, {"another", "now"}} {
			s.must(s.keeper.RevokeUnlisted(t.Context(), client.ObjectKey{Namespace: namespace, Name: none.installation}, none.at))
			if calls := s.made(); len(calls) > 0 {
				t.Errorf("of %q at %q: %q", none.installation, none.at, calls)
			}
		}
		s.must(s.keeper.RevokeUnlisted(t.Context(), s.installation(), "now"))
		agent.ends(remembers, true)
		s.holder.RotateAt = "now"
		s.good(hubAccess("hub"))
		s.mounted(hubAccess("hub")).works()
		s.settled()
		s.made()
		s.must(s.keeper.RevokeUnlisted(t.Context(), s.installation(), "now"))
		if calls := s.made(); len(calls) > 0 {
			t.Errorf("once it is made again: %q", calls)
		}
	})
}

// AG03: The API server refuses what the manager does not have itself, whatever is listed.
func TestTheAPIServerRefusesRightsThatTheManagerLacks(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "lacks")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "manager-lacks"}, Rules: []rbacv1.PolicyRule{
			ruleOf("", "serviceaccounts", "get", "create", "update", "delete"), ruleOf("", "secrets", "get", "create", "update", "delete"),
			ruleOf("", "serviceaccounts/token", "create"), ruleOf("", "configmaps", "delete"),
			ruleOf(rbacv1.GroupName, "roles", "get", "create", "update", "delete"), ruleOf(rbacv1.GroupName, "rolebindings", "get", "create", "update", "delete"),
		}}
		s.must(s.admin.Create(t.Context(), role))
		s.must(s.admin.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.holder.Cluster.Namespace, Name: "manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "manager"}},
		}))
		config := *s.config
		config.Impersonate.UserName = "manager"
		counted := s.counted(&config)
		s.keeper = NewKeeper(counted, counted, s.held, s.keeper.options)
		access := hubAccess("hub")
		refused := s.refused(access, v1.ReasonRightsRefused)
		if refused.Usable || refused.Problem.IsLasting || refused.Next.IsZero() {
			t.Errorf("%+v: %+v", refused, refused.Problem)
		}
		if err := s.get("addon-agent-agent-hub", &rbacv1.Role{}); !apierrors.IsNotFound(err) {
			t.Errorf("the role is there: %v", err)
		}
		role.Rules = append(role.Rules, ruleOf(group, "policies", "*"))
		s.must(s.admin.Update(t.Context(), role))
		s.becomes(access)
		s.mounted(access).works()
	})
}

// AG15: Without an address nothing is made, and another address is another content.
func TestTheHubIsWhatAgentsGet(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "newer", "hub")
	s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
	access, hub := hubAccess("hub"), s.hub
	for _, one := range []Hub{{}, {Server: hub.Server}, {CA: hub.CA}} {
		s.hub = one
		if unknown := s.refused(access, v1.ReasonHubUnknown); unknown.Usable || !unknown.Problem.IsLasting {
			t.Errorf("%+v", unknown)
		}
	}
	if left, calls := s.left(), s.made(); len(left)+len(calls) > 0 {
		t.Errorf("made are %q, by %q", left, calls)
	}
	s.hub = hub
	first := s.good(access)
	for why, one := range map[string]Hub{
		"server": {Server: "https://elsewhere.example.com", CA: hub.CA}, "authority": {Server: hub.Server, CA: append([]byte("\n"), hub.CA...)},
	} {
		s.hub = one
		other := s.good(access)
		content, digest, err := s.keeper.Content(t.Context(), s.holder, access)
		if err != nil || other.Digest == first.Digest || digest != other.Digest {
			t.Errorf("another %s: the digest was %q, is %q, and that of the content %q; %v", why, first.Digest, other.Digest, digest, err)
		}
		if string(content[KeyAuthority]) != string(one.CA) || !strings.Contains(string(content[KeyKubeconfig]), "server: "+one.Server+"\n") {
			t.Errorf("another %s: the content is the one before", why)
		}
	}
	s.hub = Hub{}
	s.refused(access, v1.ReasonHubUnknown)
	if content, _, err := s.keeper.Content(t.Context(), s.holder, access); content != nil || err != nil {
		t.Errorf("%d keys are handed out, %v", len(content), err)
	}
	failing := s.another(Options{Hub: func() (Hub, error) { return Hub{}, errors.New("no such file") }})
	statuses, err := failing.Keep(t.Context(), s.holder, []v1.Access{access}, s.memory, s.now)
	if err != nil || statuses[0].Problem == nil || statuses[0].Problem.IsLasting || statuses[0].Next.IsZero() {
		t.Errorf("%+v, %v", statuses, err)
	}
}

func TestASharedNamespaceNeedsTheOption(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "shared")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		s.holder.IsShared = true
		if shared := s.refused(access, v1.ReasonSharedNamespace); shared.Next.IsZero() {
			t.Error("it is not looked at again once the others are gone")
		}
		if left := s.left(); len(left) > 0 {
			t.Errorf("made are %q", left)
		}
		s.holder.IsShared = false
		s.good(access)
		agent := s.mounted(access)
		agent.works()
		s.settled()
		s.holder.IsShared = true
		if refused := s.refused(access, v1.ReasonSharedNamespace); refused.Usable {
			t.Errorf("%+v", refused)
		}
		agent.ends(10*time.Second, false)
		s.keeper = s.another(Options{Shared: true})
		s.settled()
		s.good(access)
		agent.works()
	})
}

// AG10: Nothing is left on the seed, and the outbox goes with the last that had it.
func TestRevokingLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "revoke")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		one, other, pair := hubAccess("one"), hubAccess("other"), certificateAccess("pair")
		one.Outbox, other.Outbox = true, true
		s.must(s.keeper.RevokeAll(t.Context(), s.holder.Cluster.Namespace, s.holder.Installation))
		if calls := s.made(); len(calls) > 0 {
			t.Errorf("with nothing there: %q", calls)
		}
		statuses := s.keep(one, other, pair)
		agent := s.mounted(one)
		neighbour := *s // another installation of the same Cluster
		neighbour.holder.Installation, neighbour.memory = "agent-one", &Memory{}
		neighbour.holder.Owner.Installation = "agent-one"
		neighbour.good(hubAccess("hub"))
		s.settled()
		s.made()

		s.must(s.keeper.Revoke(t.Context(), s.holder, "one"))
		want := []string{"delete RoleBinding", "delete ServiceAccount", "delete Role", "delete Secret"}
		if diff := cmp.Diff(want, writes(s.made())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		agent.ends(remembers, true)
		s.must(s.get("addon-out-agent", &corev1.Secret{}))
		s.settled()
		s.must(s.keeper.Revoke(t.Context(), s.holder, "other"))
		if err := s.get("addon-out-agent", &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("the outbox is there: %v", err)
		}
		s.must(s.keeper.Revoke(t.Context(), s.holder, "other", "never"))

		s.good(one)
		s.settled()
		s.made()
		s.must(s.keeper.RevokeAll(t.Context(), s.holder.Cluster.Namespace, s.holder.Installation))
		calls := writes(s.made())
		if len(calls) != 9 || calls[0] != "delete RoleBinding" || calls[8] != "delete Secret" {
			t.Errorf("its calls are %q", calls)
		}
		if left := s.left(); len(left) != 4 || slices.ContainsFunc(left, func(name string) bool {
			return !strings.Contains(name, "agent-one-hub") &&
				!strings.HasPrefix(name, "addon-access-"+neighbour.holder.Owner.ID())
		}) {
			t.Errorf("left are %q", left)
		}
		err := s.admin.Get(t.Context(), client.ObjectKey{Name: statuses[2].Request}, &certificatesv1.CertificateSigningRequest{})
		if statuses[2].Request == "" || !apierrors.IsNotFound(err) {
			t.Errorf("request %q is there: %v", statuses[2].Request, err)
		}
		neighbour.mounted(hubAccess("hub")).works()
	})
}

// AG10: What has the name of an outbox and was put there by somebody else stays, and is in no removal's way: a policy of the chart lets no
// manager delete a Secret of another type.
func TestASecretOfAnothersHandHoldsNoRemoval(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(secret *corev1.Secret){
		"type": func(secret *corev1.Secret) { secret.Type = "example.com/other" },
		"marks": func(secret *corev1.Secret) {
			secret.Labels[v1.LabelAccess], secret.OwnerReferences = "other", nil
			secret.Annotations[v1.AnnotationAccessOf] = "other"
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := newSeed(t, "newer", "hand-"+why)
			s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
			s.good(hubAccess("hub"))
			forged := &corev1.Secret{ObjectMeta: s.holder.marks().meta(s.holder.Cluster.Namespace, "addon-out-agent")}
			change(forged)
			s.must(s.admin.Create(t.Context(), forged))
			s.settled()
			s.must(s.keeper.RevokeAll(t.Context(), s.holder.Cluster.Namespace, s.holder.Installation))
			s.must(s.keeper.Revoke(t.Context(), s.holder, "hub"))
			s.must(s.get(forged.Name, &corev1.Secret{}))
			if left := s.left(); len(left) != 1 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// A call that fails keeps nothing else from being taken away.
func TestRevokingGoesOnWhereACallFails(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "older", "goes-on")
	s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
	access := hubAccess("hub")
	access.Outbox = true
	s.good(access)
	s.settled()
	s.fails = func(call string, isDone bool) error {
		if call == "delete ServiceAccount" && !isDone {
			return errors.New("not now")
		}
		return nil
	}
	if err := s.keeper.RevokeAll(t.Context(), s.holder.Cluster.Namespace, s.holder.Installation); err == nil {
		t.Error("it is not told")
	}
	if left := s.left(); len(left) != 1 || !strings.Contains(left[0], "addon-agent-agent-hub") {
		t.Errorf("left are %q", left)
	}
	s.fails = nil
	s.settled()
	s.must(s.keeper.RevokeAll(t.Context(), s.holder.Cluster.Namespace, s.holder.Installation))
	if left := s.left(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// A caller that asks for the credentials of two versions in turn has both known.
func TestMemoryHoldsTheCredentialsOfTwoVersions(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "newer", "versions")
	s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
	for range 2 {
		s.good(hubAccess("one"))
		s.good(hubAccess("two"))
		s.settled()
	}
	s.made()
	s.good(hubAccess("one"))
	s.good(hubAccess("two"))
	if calls := s.made(); len(calls) > 0 {
		t.Errorf("its calls are %q", calls)
	}
	s.holder.Owner.ClusterUID = "another"
	s.memory.turnTo(s.holder)
	if len(s.memory.credentials) > 0 {
		t.Error("another holder has what is known of the former")
	}
}

// The list is the platform's word that agents are welcome: without one, an access without rules is not given either.
func TestWithoutAListAnAccessWithoutRulesIsNotGiven(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "older", "unlisted")
	access := v1.Access{Name: "hub"}
	s.refused(access, v1.ReasonRightsRefused)
	if left := s.left(); len(left) > 0 {
		t.Errorf("made are %q", left)
	}
	s.list(v1.AgentsCustom)
	s.good(access)
}

// A credential whose account is gone counts no more, whatever its time.
func TestATokenEndsWithItsAccount(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "account")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		s.good(access)
		s.must(s.admin.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.holder.Cluster.Namespace, Name: "addon-agent-agent-hub",
		}}))
		s.settled()
		s.fails = func(call string, _ bool) error {
			if call == "token" {
				return errors.New("not now")
			}
			return nil
		}
		statuses, err := s.keeper.Keep(t.Context(), s.holder, []v1.Access{access}, s.memory, s.now)
		if err == nil || statuses[0].Usable || statuses[0].Digest != "" {
			t.Errorf("%+v, %v", statuses, err)
		}
		s.fails = nil
		s.good(access)
		s.mounted(access).works()
	})
}

// What stands where something of ours was is not deleted with it.
func TestOnlyTheObjectThatWasLookedAtIsRemoved(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "uid")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.holder.Cluster.Namespace, Name: "addon-out-agent"}}
		s.must(s.admin.Create(t.Context(), secret))
		previous := secret.DeepCopy()
		previous.UID = "former"
		s.must(s.keeper.remove(t.Context(), previous))
		s.must(s.get(secret.Name, &corev1.Secret{}))
		s.must(s.keeper.remove(t.Context(), secret))
		if err := s.get(secret.Name, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is there: %v", err)
		}
		s.must(s.keeper.remove(t.Context(), secret))
	})
}

// The cache may still show what was revoked a moment ago.
func TestTheOutboxGoesWithTheLastOfTwoInARow(t *testing.T) {
	t.Parallel()
	s := newSeed(t, "newer", "outbox")
	s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
	one, two := hubAccess("one"), hubAccess("two")
	one.Outbox, two.Outbox = true, true
	s.keep(one, two)
	outbox := &corev1.Secret{}
	s.must(s.get("addon-out-agent", outbox))
	outbox.StringData = map[string]string{"answer": "of the agent"}
	s.must(s.admin.Update(t.Context(), outbox))
	s.settled()
	s.keep(one, two)
	version := outbox.ResourceVersion
	if s.must(s.get("addon-out-agent", outbox)); outbox.ResourceVersion != version {
		t.Error("what the agent wrote was touched")
	}
	s.must(s.keeper.Revoke(t.Context(), s.holder, "one"))
	s.must(s.keeper.Revoke(t.Context(), s.holder, "two"))
	if err := s.get("addon-out-agent", outbox); !apierrors.IsNotFound(err) {
		t.Errorf("the outbox is there: %v", err)
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// RS39: The manager's clock is set back by a day, and stays so: the next credential is issued at once, and each one is renewed before it ends
// for the API server. Red when the manager waits until its clock is where it was, or for an end that the API server's clock tells.
func TestATokenIsRenewedInTimeByAClockThatIsBehind(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		const day, life = 24 * time.Hour, 50 * time.Hour
		s := newSeed(t, release, "behind")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := hubAccess("hub")
		access.Lifetime = &metav1.Duration{Duration: life}
		first := s.good(access)
		s.settled()
		s.now = s.now.Add(-day)
		second := s.good(access)
		if second.Digest == first.Digest {
			t.Errorf("the one of before is renewed at %s", second.Next)
		}
		if ends := s.now.Add(life); second.Next.After(ends) {
			t.Errorf("by the manager's clock it ends at %s, and is renewed at %s", ends, second.Next)
		}
		s.settled()
		s.made()
		if third := s.good(access); third.Digest != second.Digest || len(s.made()) > 0 {
			t.Error("it is renewed again before its time")
		}
	})
}

// A clock that is set back does not stop renewals.
func TestAClockThatIsSetBackIsNotWaitedFor(t *testing.T) {
	waiting := &remembered{waiting: &Problem{}, retry: epoch.Add(mostWait)}
	for _, test := range []struct {
		why  string
		now  time.Time
		want bool
	}{
		{"it is too early", epoch, true},
		{"it is time", epoch.Add(mostWait), false},
		{"the clock was set back", epoch.Add(-time.Hour), false},
	} {
		if got := waiting.isWaiting(test.now, ""); got != test.want {
			t.Errorf("%s: %t", test.why, got)
		}
	}
	if waiting.isWaiting(epoch, "now") {
		t.Error("somebody asked for it")
	}
}
