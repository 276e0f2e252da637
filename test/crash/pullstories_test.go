package crash_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/gate"
)

// Writes about copies.
const (
	newRecordOfCopies = "seed POST /api/v1/namespaces/catalogue-"
	recordOfCopies    = "/configmaps/addon-pull-NAME"
)

// aboutCopies says whether a write is one of a copy, or of the record of copies, which is made in the namespace of catalogues.
func aboutCopies(at gate.Boundary) bool {
	return strings.HasSuffix(at.Write, "/secrets/"+pullSecret) || strings.HasSuffix(at.Write, recordOfCopies) ||
		strings.HasPrefix(at.Write, newRecordOfCopies)
}

// original has the original be so before the story begins.
func original(password, use string) func(testing.TB, *platform) {
	return func(t testing.TB, p *platform) {
		t.Helper()
		p.setOriginal(t, password, use)
	}
}

// pullStories are about the copies of the platform's pull Secret.
func (p *platform) pullStories() []story {
	inFirst, inSecond := []string{"", labelledNamespace, droppedNamespace}, []string{"", labelledNamespace, broughtNamespace}
	ready, copies := original(firstPassword, kubermaticv1.UsePull), copied(firstPassword, inFirst...)
	put := "seed PUT /api/v1/namespaces/" + p.catalogue + recordOfCopies
	return []story{
		{
			// Red when copies are written before their nonces are on record: those of before are somebody else's.
			name: "pull-install", addon: "pulling", to: "1.0.0", about: aboutCopies, prepare: ready, ended: copies,
			through: []string{newRecordOfCopies, "user PATCH /api/v1/namespaces/NAME/secrets/mirror", put},
		},
		{
			// Red when copies are on record no more before they are removed.
			name: "pull-upgrade", addon: "pulling", from: "1.0.0", to: "2.0.0", about: aboutCopies, prepare: ready, begun: copies,
			ended:   copied(firstPassword, inSecond...),
			through: []string{"user PATCH /api/v1/namespaces/NAME-brought/secrets/mirror", "user DELETE /api/v1/namespaces/NAME-dropped/secrets/mirror", put},
		},
		{
			// Red when the digest of what was written is on record before it is written.
			name: "pull-rotate", addon: "pulling", from: "1.0.0", to: "1.0.0", about: aboutCopies, prepare: ready, begun: copies,
			change:  func(t testing.TB, one *subject) { one.setOriginal(t, secondPassword, kubermaticv1.UsePull) },
			ended:   copied(secondPassword, inFirst...),
			through: []string{"user PATCH /api/v1/namespaces/NAME/secrets/mirror", put},
		},
		{
			// Red when copies are on record no more before they are removed.
			name: "pull-withdraw", addon: "pulling", from: "1.0.0", to: "1.0.0", about: aboutCopies, prepare: ready, begun: copies,
			change:  func(t testing.TB, one *subject) { one.setOriginal(t, firstPassword, "") },
			ended:   copied(""),
			through: []string{"user DELETE /api/v1/namespaces/NAME/secrets/mirror", put},
		},
		{
			// Red when a copy that is made anew has the nonce of before, or one that is not on record.
			name: "pull-put-back", addon: "pulling", from: "1.0.0", to: "1.0.0", about: aboutCopies, prepare: ready, begun: copies,
			change: func(t testing.TB, one *subject) {
				gone := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.name + labelledNamespace, Name: pullSecret}}
				expect.Delete(t, one.user, gone)
			},
			ended:   copies,
			through: []string{"user PATCH /api/v1/namespaces/NAME-labelled/secrets/mirror", put},
		},
		{
			// Red when the use leaves the record before the copies are removed, or the record stays.
			name: "pull-remove", addon: "pulling", from: "1.0.0", about: aboutCopies, prepare: ready, begun: copies,
			through: []string{"seed DELETE /api/v1/namespaces/" + p.catalogue + recordOfCopies},
		},
	}
}

// TestKilledAtEveryWriteOfCopiesEndsTheSame: killed before or after any write of a copy of the pull Secret, or of its record, a manager that
// starts again has each copy right, and each on record.
func TestKilledAtEveryWriteOfCopiesEndsTheSame(t *testing.T) {
	p := newPulling(t)
	total := 0
	for _, story := range p.pullStories() { // one by one: they share the original
		t.Run(story.name, func(t *testing.T) { total += story.report(t, p) })
	}
	t.Logf("killed at %d boundaries in %d stories", total, len(p.pullStories()))
}
