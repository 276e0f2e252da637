package crash_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/world"
)

// runs counts how often a controller looked for its Cluster, with which every pass begins.
type runs struct {
	cluster.Finder
	begun *atomic.Int32
}

// Find implements cluster.Finder.
func (p runs) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	p.begun.Add(1)
	return p.Finder.Find(ctx, ref)
}

// rounds of edits that concern no installation's inputs.
const rounds = 20

// An unchanged installation costs nothing: edits that have it looked at and change none of its inputs lead to no call to the
// user cluster, not even a read, and to no write on the seed. Red when a pass reads health, drift or the release anew each
// time, and when it writes a status that did not change.
func TestEqualInputsMakeNoCall(t *testing.T) {
	for _, addon := range []string{"probe", "web"} {
		t.Run(addon, func(t *testing.T) {
			p := newStocked(t)
			s := p.newSubject(t, "quiet")
			s.install(t, addon, "1.0.0")
			begun, stop := s.serveHere(t)
			await(t, func() error { return s.unsettled(t, "1.0.0") })
			s.round(t, "warm", begun) // what follows on the last write of the installation is over after that
			user, seed := p.userGate.Counts(s.name), p.seedGate.Counts(s.name).Writes
			first := begun.Load()
			for i := range rounds {
				s.round(t, fmt.Sprint("round-", i), begun)
			}
			after, wrote := p.userGate.Counts(s.name), p.seedGate.Counts(s.name).Writes-seed
			t.Logf("%d passes after %d edits: %d reads and %d writes to the user cluster, %d writes to the seed", begun.Load()-first,
				3*rounds, after.Reads-user.Reads, after.Writes-user.Writes, wrote)
			if after != user || wrote != 0 {
				t.Error("an unchanged installation made calls")
			}
			stop()
			s.expectQuietRestart(t)
		})
	}
}

// expectQuietRestart starts another controller and waits for its look at drift, which it takes at once: it writes nothing to
// the user cluster. Red when stamp of the controller and timeOf of pkg/install/helmrelease both keep fractions of a second, which the record loses.
func (s *subject) expectQuietRestart(t *testing.T) {
	t.Helper()
	before := s.userGate.Counts(s.name)
	begun, stop := s.serveHere(t)
	defer stop()
	await(t, func() error {
		if s.userGate.Counts(s.name).Reads == before.Reads {
			return errors.New("nobody has looked for drift yet")
		}
		return nil
	})
	s.round(t, "after-the-look", begun)
	if after := s.userGate.Counts(s.name); after.Writes != before.Writes {
		t.Errorf("after a restart there were %d writes", after.Writes-before.Writes)
	}
}

// serveHere runs the controller in this process until it is stopped, and counts its passes.
func (s *subject) serveHere(t *testing.T) (begun *atomic.Int32, stop func()) {
	t.Helper()
	config := s.seedGate.Config(s.name)
	begun = &atomic.Int32{}
	work := assignment{
		Server: config.Host, CA: config.CAData, Token: config.BearerToken, Catalogue: s.catalogue, Folder: disk.TempDir(t),
		Installations: map[string]string{labelCase: s.name},
	}
	made := world.Seed(t, work.reach(), s.catalogue, work.choose)
	dependencies, err := dependenciesOf(made.Context(), made.Seed, work, nil)
	expect.NoError(t, err)
	dependencies.Finder = runs{dependencies.Finder, begun}
	made.SetUp(addoninstallation.New(dependencies))
	made.Run()
	return begun, made.Stop
}

// round edits a label of the installation, an annotation of its catalogue and one of the installation, one after the other,
// and waits for the pass that follows each. The Cluster's annotations are no such edit: templates see them.
func (s *subject) round(t *testing.T, word string, begun *atomic.Int32) {
	t.Helper()
	label := fmt.Appendf(nil, `{"metadata":{"labels":{"crash.example/word":%q}}}`, word)
	annotation := fmt.Appendf(nil, `{"metadata":{"annotations":{"crash.example/word":%q}}}`, word)
	catalogue := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: s.catalogue, Name: s.addon(t)}}
	for _, edit := range []struct {
		object client.Object
		patch  []byte
	}{
		{s.installation(), label}, {catalogue, annotation}, {s.installation(), annotation},
	} {
		before := begun.Load()
		expect.Merge(t, s.seed, edit.object, edit.patch)
		expect.Eventually(t, expect.Patience, func() error {
			if begun.Load() == before {
				return fmt.Errorf("no pass followed an edit of %T", edit.object)
			}
			return nil
		})
	}
}

func (s *subject) addon(t *testing.T) string {
	t.Helper()
	found := s.installation()
	expect.Read(t, s.seed, found)
	return string(found.Spec.AddonRef.Name)
}
