package crash_test

import (
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/test/expect"
)

// Writes about credentials.
const (
	agents       = "seed POST /api/v1/namespaces/cluster-NAME/serviceaccounts"
	newToken     = agents + "/addon-agent-NAME-hub/token"
	newRequest   = "seed POST /apis/certificates.k8s.io/v1/certificatesigningrequests"
	roles        = "/apis/rbac.authorization.k8s.io/v1/namespaces/cluster-NAME/roles"
	bindings     = "/apis/rbac.authorization.k8s.io/v1/namespaces/cluster-NAME/rolebindings"
	newStored    = "seed POST /api/v1/namespaces/cluster-NAME/secrets"
	storedSecret = "/api/v1/namespaces/cluster-NAME/secrets/addon-access-OWNER-hub"
	// onSeed is in the paths of what a pass does again that is told of what goes, and sees it in a cache.
	onSeed         = "/namespaces/cluster-NAME/"
	agentsSecretAt = "/api/v1/namespaces/NAME/secrets/NAME-hub"
)

// atRest has controllers that start from now on have the time that it is.
func atRest(_ testing.TB, p *platform) { p.later.Store(0) }

// renewal is a time at which credentials are renewed.
func renewal(_ testing.TB, one *subject) { one.later.Store(int64(atRenewal)) }

func rotation(t testing.TB, one *subject) {
	t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"` + kubermaticv1.AnnotationRotateAt + `":"now"}}}`)
	expect.Merge(t, one.seed, one.installation(), patch)
}

func removal(t testing.TB, one *subject) {
	t.Helper()
	one.remove(t)
}

// tokenStories are about tokens for the hub.
var tokenStories = []story{
	{
		// Red when the installer does not take over a kept Secret that has its label and is not on record.
		name: "token-install", addon: tokenAddon, to: "1.0.0", prepare: atRest, ended: hasAccess,
		through: []string{
			agents, "seed POST " + roles, "seed POST " + bindings, newStored, newToken, "seed PUT " + storedSecret, "user PATCH " + agentsSecretAt,
		},
	},
	{
		// Red when an installation without a record is let go with what the seed has for its agents; and when a kept Secret that a process
		// wrote and no record knows keeps its namespace.
		name: "token-removed-instead", addon: tokenAddon, to: "1.0.0", instead: true, prepare: atRest, ended: hasAccess, through: []string{newToken},
	},
	{
		// Red when a kept Secret that is on record is taken for what it is to be, whatever its digest says.
		name: "token-renew", addon: tokenAddon, from: "1.0.0", to: "1.0.0", prepare: atRest, begun: hasAccess,
		change: noted(renewal), ended: renewed, through: []string{newToken, "seed PUT " + storedSecret, "user PATCH " + agentsSecretAt},
	},
	{
		// Red when tokens are not bound to the Secret that keeps them.
		name: "token-rotate", addon: tokenAddon, from: "1.0.0", to: "1.0.0", prepare: atRest, begun: hasAccess,
		change: noted(rotation), ended: rotated,
		through: []string{"seed DELETE " + storedSecret, newStored, newToken, "seed PUT " + storedSecret, "user PATCH " + agentsSecretAt},
	},
	{
		// Red when the record forgets former credentials before they are revoked.
		name: "access-dropped", addon: tokenAddon, from: "1.0.0", to: "2.0.0", prepare: atRest, begun: hasAccess,
		change: noted(func(t testing.TB, one *subject) { one.want(t, "2.0.0") }), ended: revoked,
		through: []string{
			"user DELETE " + agentsSecretAt, "seed DELETE " + bindings, "seed DELETE " + roles, "seed DELETE " + storedSecret,
			"seed DELETE /api/v1/namespaces/cluster-NAME/serviceaccounts/",
		},
	},
	{
		// Red when the records are forgotten before credentials are revoked.
		name: "access-remove", addon: tokenAddon, from: "1.0.0", prepare: atRest, begun: hasAccess, change: noted(removal), ended: revoked,
		again: onSeed, through: []string{"user DELETE " + agentsSecretAt, "seed DELETE " + bindings, "seed DELETE " + storedSecret},
	},
	{
		// Red when the record of what was put back has the former UID.
		name: "token-put-back", addon: tokenAddon, from: "1.0.0", to: "1.0.0", prepare: atRest, begun: hasAccess,
		change: func(t testing.TB, one *subject) {
			gone := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.name, Name: rights.DefaultSecretName(one.name, accessName)}}
			expect.Delete(t, one.user, gone)
		},
		ended: hasAccess, through: []string{"user PATCH " + agentsSecretAt},
	},
}

// certificateStories are about certificates, whose requests are approved by hand.
var certificateStories = []story{
	{
		// Red when the request goes out before its key is stored: somebody is asked to approve another one.
		name: "certificate-install", addon: certificateAddon, to: "1.0.0", prepare: atRest, ended: hasAccess, stays: []string{askedForApproval},
		through: []string{newStored, "seed POST " + roles, "seed POST " + bindings, newRequest, "seed PUT " + storedSecret, "user PATCH " + agentsSecretAt},
	},
	{
		// Red when the next request goes out before its key is stored.
		name: "certificate-renew", addon: certificateAddon, from: "1.0.0", to: "1.0.0", prepare: atRest, begun: hasAccess,
		change: noted(renewal), ended: renewed, stays: []string{askedForApproval},
		through: []string{newRequest, "seed PUT " + storedSecret, "user PATCH " + agentsSecretAt},
	},
	{
		// Red when the nonce of the user in certificates is not of the Secret.
		name: "certificate-rotate", addon: certificateAddon, from: "1.0.0", to: "1.0.0", prepare: atRest, begun: hasAccess,
		change: noted(rotation), ended: rotated, stays: []string{askedForApproval},
		through: []string{"seed DELETE " + bindings, "seed DELETE " + storedSecret, newStored, newRequest, "user PATCH " + agentsSecretAt},
	},
	{
		// Red when the records are forgotten before credentials are revoked.
		name: "certificate-remove", addon: certificateAddon, from: "1.0.0", prepare: atRest, begun: hasAccess, change: noted(removal),
		ended: revoked, again: onSeed, stays: []string{askedForApproval},
		through: []string{"user DELETE " + agentsSecretAt, "seed DELETE " + bindings, "seed DELETE " + storedSecret},
	},
}

// AG11: Killed before or after any write of a credential's issue, renewal, rotation, or end, a manager that starts again ends it the same:
// the agent has the very credential that is stored, former ones are refused, and nobody is asked to approve twice.
func TestKilledAtEveryWriteOfAccessEndsTheSame(t *testing.T) {
	var total atomic.Int32
	t.Run("stories", func(t *testing.T) {
		for kind, stories := range map[string][]story{"tokens": tokenStories, "certificates": certificateStories} {
			t.Run(kind, func(t *testing.T) {
				p := newAgents(t)
				t.Parallel()
				for _, story := range stories { // one by one: they share the time
					t.Run(story.name, func(t *testing.T) { total.Add(int32(story.report(t, p))) })
				}
			})
		}
	})
	t.Logf("killed at %d boundaries in %d stories", total.Load(), len(tokenStories)+len(certificateStories))
}
