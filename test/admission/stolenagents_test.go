package admission

import (
	"context"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Platform namespaces whose managers give out credentials of agents: one of them approves certificates besides.
const (
	lair, approvers = "lair", "approvers"
	// listed is an agent that is there, with all that it has.
	listed = "addon-agent-old-hub"
)

func byAgents(why string) map[string]string { return map[string]string{lair: why, approvers: why} }

// signing puts a certificate into a request.
func signing(name string) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return thief.Status().Patch(ctx, request, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"certificate":"eA=="}}`)), client.DryRunAll)
	}
}

// attemptsAtAgents are what is tried beside all else by the manager of a platform namespace, in the order of their table.
func attemptsAtAgents(t *testing.T, home string) []attempt {
	t.Helper()
	signer := certificatesv1.KubeAPIServerClientSignerName
	outbox := agentsSecret(host, "addon-out-old", corev1.SecretTypeOpaque)
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	unlisted := rbacv1.PolicyRule{APIGroups: []string{"gadgets.example.com"}, Resources: []string{"gadgets"}, Verbs: []string{"get"}}
	accounts := byAgents("agents have accounts: with a Cluster as owner, outside the platform's namespaces, `default` and `kube-…`")
	ends := byAgents("it revokes credentials")
	elsewhere := agentsBinding(host, listed, func(made *rbacv1.RoleBinding) { made.RoleRef.Name = "powerful" })
	somebody := agentsBinding(host, listed, func(made *rbacv1.RoleBinding) { made.Subjects = user("thief") })
	return []attempt{
		{what: "create an account of an agent", do: creating(agentsAccount(host, "addon-agent-thief-hub")), inherent: accounts},
		{what: "create an account of another name", do: creating(agentsAccount(host, "thief"))},
		{what: "create an account of an agent that no Cluster owns", do: creating(orphan(agentsAccount(host, "addon-agent-thief-hub")))},
		{what: "create an account of an agent in `kube-system`", do: creating(agentsAccount(victim, "addon-agent-thief-hub"))},
		{what: "request a token of an agent", do: token(host, listed, "Secret", ours), inherent: byAgents(
			"it issues tokens; a token has at most the listed rights")},
		{what: "request a token that nothing revokes", do: token(host, listed, "", "")},
		{what: "request a token of another account", do: token(host, "powerful", "Secret", ours)},
		{what: "use the rights that are listed for agents, in any namespace", do: creating(widget(victim, "stolen")), inherent: byAgents(
			"it can grant only rights that it has, and RBAC can't select the namespaces of clusters")},
		{what: "grant an agent a listed right", do: creating(agentsRole(host, "addon-agent-thief-hub", widgets("create"))), inherent: byAgents(
			"it grants these rights")},
		{what: "grant an agent a right that is not listed", do: creating(agentsRole(host, "addon-agent-thief-hub", unlisted))},
		{what: "grant an agent the right to read Secrets, which the manager has",
			do: creating(agentsRole(host, "addon-agent-thief-hub", secrets))},
		{what: "bind an agent to its Role", do: updating(agentsBinding(host, listed, nil)), inherent: byAgents("the Role is for this agent")},
		{what: "bind an agent to another Role", do: creating(elsewhere)},
		{what: "bind another user to an agent's Role", do: creating(somebody)},
		{what: "delete an account of an agent, its Role, or its binding", do: all(
			deleting(agentsAccount(host, listed)), deleting(agentsRole(host, listed)), deleting(agentsBinding(host, listed, nil)),
		), inherent: ends},
		{what: "write the Secret that stores a credential",
			do: creating(agentsSecret(host, "addon-access-thief-hub", accessType)), inherent: byAgents(
				"it stores credentials; agents get wrong content too")},
		{what: "delete the Secret that stores a credential", do: deleting(agentsSecret(host, ours, accessType)), inherent: ends},
		{what: "write into an outbox", do: updating(holding(outbox.DeepCopy(), "planted"))},
		{what: "delete an outbox", do: deleting(outbox), inherent: byAgents("it deletes an outbox with its last credential")},
		{what: "request a certificate for any user, such as a controller of Kubernetes", do: creating(
			requestedFor(t, "system:kube-controller-manager", "addon-access-thief", signer),
		), inherent: byAgents("no policy can read a request; it has no effect until an admin approves it")},
		{what: "request a server certificate", do: creating(requested(t, "addon-access-thief", signer, certificatesv1.UsageServerAuth))},
		{what: "approve its own request, for any user", do: approving("addon-access-" + home), inherent: map[string]string{
			approvers: "`agents.approve` lists the signer: **the thief can become any user**"}},
		{what: "approve its own request for another signer", do: approving("addon-access-foreign-" + home)},
		{what: "approve a request of another client", do: approving("addon-access-somebodys")},
		{what: "sign a request", do: signing("addon-access-" + home)},
	}
}

// all does one after the other, and ends with the first that fails.
func all(each ...func(context.Context, client.Client) error) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		for _, one := range each {
			if err := one(ctx, thief); err != nil {
				return err
			}
		}
		return nil
	}
}

// furnishAgents makes what the attempts at agents are about, and managers that give out credentials.
func (w *world) furnishAgents(t *testing.T) {
	t.Helper()
	w.furnish(t)
	expect.NoError(t, fleet.InstallDefinitions(t.Context(), w.config, widgetsDefinition()))
	for _, object := range []client.Object{
		agentsAccount(host, listed), agentsRole(host, listed, widgets("get")), agentsBinding(host, listed, nil),
		agentsAccount(host, "powerful"), agentsRole(host, "powerful", widgets("get")), agentsSecret(host, ours, accessType),
		holding(agentsSecret(host, "addon-out-old", corev1.SecretTypeOpaque), "theirs"),
	} {
		w.put(t, object)
	}
	signer := certificatesv1.KubeAPIServerClientSignerName
	w.put(t, requested(t, "addon-access-somebodys", signer))
	for home, signers := range map[string][]any{lair: {}, approvers: {signer}} {
		w.furnishHome(t, home, map[string]any{"agents": map[string]any{
			"enabled": true, "hub": map[string]any{"server": "https://hub.example.com"}, "approve": signers,
		}})
		w.list(t, home, widgets("get", "create"))
		for name, of := range map[string]string{"addon-access-" + home: signer, "addon-access-foreign-" + home: foreignSigner} {
			expect.Ensure(t, w.inItsName(t, home), requested(t, name, of))
		}
		w.awaitHeld(t, at(home, seedManager))
	}
}

// SC02: With agents, a stolen token of a seed's manager can do nothing more of the first table, and of what agents are made of what a table of its
// own has in SECURITY.md, of which nothing is allowed without agents; with -update it is written there. Red without a policy of
// agents: what is allowed by more than the job is an error, whatever the table says.
func TestStolenTokensWithAgents(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.furnishAgents(t)
		for _, home := range []string{lair, approvers} {
			for _, attempt := range attempts(home) {
				_, isInherent := attempt.inherent[seedManager]
				if got := w.try(t, attempt, at(home, seedManager), isInherent); isInherent != (got == allowed) || strings.HasPrefix(got, "failed") {
					t.Errorf("the manager in %s, to %s: %s", home, attempt.what, got)
				}
			}
		}
		for _, attempt := range attemptsAtAgents(t, den) {
			if got := w.try(t, attempt, at(den, seedManager), false); got != byPolicy && got != "refused" {
				t.Errorf("without agents, to %s: %s", attempt.what, got)
			}
		}
		var table strings.Builder
		table.WriteString("| a thief tries to | `agents.enabled` | `agents.approve` too | why it is allowed |\n|---|---|---|---|\n")
		approving := attemptsAtAgents(t, approvers)
		for i, attempt := range attemptsAtAgents(t, lair) {
			w.row(t, &table, column{attempt, lair, at(lair, seedManager)}, column{approving[i], approvers, at(approvers, seedManager)})
		}
		expectTable(t, ofAgents, table.String())
	})
}
