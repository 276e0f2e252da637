package crash_test

import (
	"sync/atomic"
	"testing"
)

// Stories have names, which are the labels of their installations too; each is about rows of the threat model.
//
// RS07, a kill at every write, is all of them. The other rows are boundaries among those that RS07 comes by, which is what
// through sees to.
var templateStories = []story{
	{
		// RS06: killed after the namespace was made and before the CRD. RS08: killed between the objects and the record of them.
		// Red when package ownership knows nothing for ours that has no UID on record: the namespace stays in the end, and
		// everything else is refused as somebody else's.
		name: "install", addon: "probe", to: "1.0.0",
		through: []string{
			"user PATCH /api/v1/namespaces/NAME", "user PATCH /apis/apiextensions.k8s.io/", "user PATCH /apis/apps/",
			"user PATCH /apis/admissionregistration.k8s.io/", "seed POST /api/v1/namespaces/cluster-NAME/secrets",
			"seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-1",
		},
	},
	{
		// RS08. Red when the intent is remembered without being saved: what was written before the kill stays for good.
		name: "install-removed-instead", addon: "probe", to: "1.0.0", instead: true,
		through: []string{"user PATCH /apis/apps/"},
	},
	{
		// Red when the record forgets what is superseded before that is pruned: ConfigMap dropped stays.
		name: "upgrade", addon: "probe", from: "1.0.0", to: "2.0.0",
		through: []string{"user DELETE /api/v1/namespaces/NAME/configmaps/dropped", "seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-2"},
	},
	{
		// An update that writes what differs, which is taken back on its way. Red when Planned of pkg/install/apply leaves the content of what is
		// about to change: after a kill the settings stay those that were given up.
		name: "take-back", addon: "slight", from: "1.0.0", to: "1.1.0", finally: "1.2.0",
		through: []string{"user PATCH /api/v1/namespaces/NAME/configmaps/settings", "seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-2"},
	},
	{
		// Red when the records are forgotten before the objects are removed.
		name: "remove", addon: "probe", from: "2.0.0",
		through: []string{"user DELETE /api/v1/namespaces/NAME", "seed DELETE /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-1"},
	},
	{
		// The owner of what two share goes. Red when the removal takes along what a sibling has (goes without Held): the definition
		// does not stand as before; and when the sibling takes over by the object's label only (ownership's Inherited without the UID on record).
		name: "hand-over", addon: "probe", from: "2.0.0", shares: true,
		through: []string{
			"seed DELETE /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-1", "seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-SIBLING-1",
			"user PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/", "user PATCH /apis/admissionregistration.k8s.io/",
		},
	},
	{
		// Objects that KKP applied. Red when IsMade of pkg/clusters/ownership does not look at the mark of what was adopted: the definition goes
		// with the installation.
		name: "adopt", addon: "probe", previous: kkpAddon, to: "1.0.0",
		through: []string{"user PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/", "user PATCH /api/v1/namespaces/NAME/configmaps/settings"},
		stays:   []string{"CustomResourceDefinition /probes.NAME.crash.example", "Namespace /NAME"},
	},
	{
		// An upgrade that is refused. Red when rollbackOf plans nothing of what the failed revision has on record.
		name: "roll-back", addon: "frail", from: "1.0.0", to: "2.0.0", back: true, again: "/configmaps/refused",
		through: []string{"user DELETE /api/v1/namespaces/NAME/configmaps/dropped", "seed POST /api/v1/namespaces/cluster-NAME/secrets"},
	},
}

// helmStories are those of charts.
var helmStories = []story{
	{
		// RS09. Red when the copy of the release is written by the pass that applied its objects only: helm shows nothing.
		name: "helm-install", addon: "web", to: "1.0.0",
		through: []string{"user POST /api/v1/namespaces/NAME/secrets"},
	},
	{
		// RS09. Red when earlier revisions are superseded only where the new one was written by the same pass.
		name: "helm-upgrade", addon: "web", from: "1.0.0", to: "2.0.0",
		through: []string{"user POST /api/v1/namespaces/NAME/secrets", "user PUT /api/v1/namespaces/NAME/secrets/sh.helm.release.v1.NAME.v1"},
	},
	{
		// RS09. Red when the records are forgotten before the objects are removed.
		name: "helm-remove", addon: "web", from: "2.0.0",
		through: []string{"user DELETE /api/v1/namespaces/NAME/secrets"},
	},
	{
		// A Helm release. Red when the intent has not on record what only the release has: it stays.
		name: "helm-adopt", addon: "web", previous: helmReleases, to: "2.0.0",
		through: []string{
			"user DELETE /api/v1/namespaces/NAME/configmaps/dropped",
			"user PUT /api/v1/namespaces/NAME/secrets/sh.helm.release.v1.NAME.v2", "user PATCH /api/v1/namespaces/NAME/secrets/sh.helm.release.v1.NAME.v1",
		},
		stays: []string{"ConfigMap NAME/after", "ConfigMap NAME/before", "Namespace /NAME"},
	},
	{
		// An upgrade that never gets healthy. Red when helmRollback counts on from the good revision, not from the newest.
		name: "helm-roll-back", addon: "idle", from: "1.0.0", to: "2.0.0", back: true,
		through: []string{
			"user DELETE /api/v1/namespaces/NAME/pods/idle", "user PUT /api/v1/namespaces/NAME/secrets/sh.helm.release.v1.NAME.v3",
		},
	},
}

// RS06, RS07, RS08, RS09: Killed before or after any write of a story, a manager that starts again
// ends it the same. Every story is told with a kill -9 before and after writes that the seed or
// the user cluster gets, and the seed's answer to the installation's finalizer: each of them in make test-long.
// What is left out are events.
func TestKilledAtEveryWriteEndsTheSame(t *testing.T) {
	p := newStocked(t)
	var total atomic.Int32
	t.Run("stories", func(t *testing.T) {
		// Two at a time in full: what Kubernetes does to end a namespace grows with the definitions that there are.
		for method, stories := range map[string][]story{"templates": templateStories, "helm": helmStories} {
			t.Run(method, func(t *testing.T) {
				t.Parallel()
				for _, story := range stories {
					t.Run(story.name, func(t *testing.T) {
						if testing.Short() { // few are killed
							t.Parallel()
						}
						total.Add(int32(story.report(t, p)))
					})
				}
			})
		}
	})
	t.Logf("killed at %d boundaries in %d stories", total.Load(), len(templateStories)+len(helmStories))
}
