package sets_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// leaving are the clusters that a set lets go of: two of the rest.
func leaving(s *subject) []string { return s.names[2:] }

// RS07: Killed before or after any write, a set controller that starts again keeps to the waves and ends the same.
// No more clusters move than may, no group begins before its time, and nothing moves after a halt, over both processes. Red when startedAt is
// written after the first move, when places are counted by a cache that hasn't what was written, when a halt is kept in memory, or when
// a removal that began is forgotten.
func TestTheSetControllerMayDieAtAnyWrite(t *testing.T) {
	p := newPlatform(t)
	kills := 0
	for _, reported := range []story{
		{name: "roll", phases: []phase{{
			edit: func(t *testing.T, s *subject) {
				s.moves.Begin(len(addons), s.names...)
				s.want(t, "second")
			},
			done: func(t *testing.T, s *subject) error {
				return errors.Join(s.says(t, v1.ReasonComplete), s.has(t, "second", s.names...))
			},
		}}},
		{name: "halt and fix", halts: true, phases: []phase{{
			edit: func(t *testing.T, s *subject) {
				s.moves.Begin(len(addons), s.names...)
				s.want(t, "broken")
			},
			done: func(t *testing.T, s *subject) error { return s.says(t, v1.ReasonHalted) },
		}, {
			edit: func(t *testing.T, s *subject) {
				s.moves.Begin(len(addons), s.names...)
				s.want(t, "fixed")
			},
			done: func(t *testing.T, s *subject) error {
				return errors.Join(s.says(t, v1.ReasonComplete), s.has(t, "fixed", s.names...))
			},
		}}},
		{name: "unselect", phases: []phase{{
			edit: func(t *testing.T, s *subject) {
				s.moves.Begin(len(addons), leaving(s)...)
				for _, name := range leaving(s) {
					s.clusters.Relabel(t, name, map[string]string{labelIn: ""})
				}
			},
			done: func(t *testing.T, s *subject) error {
				return errors.Join(s.has(t, "first", s.names[:2]...), s.says(t, v1.ReasonComplete), s.selects(t, 2))
			},
		}}},
		{name: "delete", phases: []phase{{
			edit: func(t *testing.T, s *subject) {
				s.moves.Begin(len(addons), s.names...)
				s.moves.Unordered()
				s.copies.Annotate(t, s.name, v1.AnnotationConfirmDeletion, s.name)
				s.copies.Delete(t, s.name)
			},
			done: func(t *testing.T, s *subject) error { return errors.Join(s.isGone(t), s.has(t, "")) },
		}}},
	} {
		t.Run(reported.name, func(t *testing.T) { kills += reported.report(t, p) })
	}
	t.Logf("the set controller was killed %d times", kills)
}

// isGone says whether the set is; a removal that waits for a word gets it.
func (s *subject) isGone(t *testing.T) error {
	t.Helper()
	set := &v1.AddonSet{}
	err := s.copies.Client.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: s.name}, set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && set.Status.Removal != nil {
		s.copies.Annotate(t, s.name, v1.AnnotationRemovalApproved, set.Status.Removal.Word)
	}
	return errors.Join(err, errors.New("the set is still there"))
}
