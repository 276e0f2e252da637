package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var (
	each  = flag.Duration("each", time.Minute, "how long a run of BenchmarkHostileTenant lasts: a mode of the kit has one")
	turns = flag.Int("turns", 3, "how many turns an act of the kit has in BenchmarkHostileTenant: a run with it and a quiet one")
	only  = flag.String("modes", "servers,acts", "names of modes and acts of the kit in BenchmarkHostileTenant, with commas; servers are all modes")
)

// Words of -modes for all modes of API servers, and for all acts.
const allModes, allActs = "servers", "acts"

// resting is when a manager has to be at rest again after a run, and how long that is looked at.
func resting() time.Duration { return *each / 6 }

// crowd is how many installations the attacker has.
const crowd = 12

// BenchmarkHostileTenant attacks a platform whose managers have their charts' memory limits, while installations come and go in three other
// clusters, one of them on the attacked seed, and another author edits a catalogue.
//
// First one tenant's API server takes every mode of the kit in turn. For each mode it tells how long the others took until they were
// applied, against a quiet run, what the seed's manager took of the processor, and how soon it came to rest.
//
// Then an author and that tenant do every act of the kit, in turns with quiet runs. For each act it holds that no manager died, that
// neither installations of other clusters nor another catalogue took much longer, that what is stored stays within the budgets
// of a cluster, and that once all of it is removed the managers hold no more than before.
func BenchmarkHostileTenant(b *testing.B) {
	expect.NoError(b, areKnown(*only))
	s := besiege(b, start(b))
	_ = s.run(b, attack{name: "warm"}) // fills caches and pools
	s.serve(b)
	s.perform(b)
}

// serve has the attacker's API server take every mode of the kit, after a quiet run.
func (s *siege) serve(b *testing.B) {
	b.Helper()
	modes := slices.DeleteFunc(hostile.Modes(), func(mode hostile.Mode) bool { return !isChosen(mode.Name, allModes) })
	if len(modes) == 0 {
		return
	}
	quiet := s.run(b, attack{name: "calm"})
	s.rest(b, &quiet)
	b.Logf("%-16s %s", "quiet", quiet.against(quiet))
	for _, mode := range modes {
		pids := s.pids()
		under := s.run(b, attack{name: mode.Name, mode: mode})
		s.rest(b, &under)
		b.Logf("%-16s %s", mode.Name, under.against(quiet))
		if !slices.Equal(pids, s.pids()) {
			b.Errorf("mode %s: a manager died", mode.Name)
		}
	}
}

// isChosen says whether -modes names a mode or an act, or all of its kind.
func isChosen(name, all string) bool {
	words := strings.Split(*only, ",")
	return slices.Contains(words, name) || slices.Contains(words, all)
}

// areKnown refuses words that name nothing: a siege without an attack would pass.
func areKnown(words string) error {
	known := []string{allModes, allActs}
	for _, mode := range hostile.Modes() {
		known = append(known, mode.Name)
	}
	for _, act := range hostile.Acts() {
		known = append(known, act.Name)
	}
	for word := range strings.SplitSeq(words, ",") {
		if !slices.Contains(known, word) {
			return fmt.Errorf("-modes: nothing is named %q: use some of %q", word, known)
		}
	}
	return nil
}

// small is an installation of a chart of a few objects, in a namespace of its own.
func small(cluster sandbox.UserCluster, name string) *kubermaticv1.AddonInstallation {
	return given.Installation(cluster.Namespace(), name, "web", name, given.NewNamespace)
}

// siege is a platform with an attacker among its tenants and one among its authors.
type siege struct {
	*platform
	attacker sandbox.UserCluster
	by       *hostile.Attackers
	// runs, steps and edits are how many there were: of runs, of steps of acts, and of the other author's catalogue.
	runs, steps, edits int
}

// besiege gives the attacking tenant a crowd of installations, and lets both attackers in.
func besiege(b *testing.B, p *platform) *siege {
	b.Helper()
	s := &siege{platform: p, attacker: sandbox.UserClusters()[0]}
	for i := range crowd {
		p.must(b, p.Client(s.attacker.Seed).Create(b.Context(), small(s.attacker, fmt.Sprintf("crowd-%d", i))))
	}
	for i := range crowd {
		if _, err := p.applied(b.Context(), s.attacker, fmt.Sprintf("crowd-%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	p.must(b, p.Client(sandbox.Master).Create(b.Context(), s.othersCatalogue()))
	s.by = &hostile.Attackers{
		Author:     s.admit(b, sandbox.Master, sandbox.Namespace, "kubermatic:trellis-master:catalogue-admin"),
		Tenant:     s.admit(b, s.attacker.Seed, s.attacker.Namespace(), "kubermatic:trellis-seed:cluster-user"),
		Catalogues: sandbox.Namespace, Home: s.attacker.Namespace(), Sources: p.Sources, CASecret: sandbox.CASecret,
	}
	return s
}

// attack is what happens while a run lasts. Without a mode the attacker's API server is honest, and without an act nobody acts.
type attack struct {
	name string
	mode hostile.Mode
	act  *hostile.Act
}

// measured is what one run did.
type measured struct {
	// took are the times until installations of other clusters were applied, sorted; those of the attacker's seed apart.
	same, others []time.Duration
	// offered are the times until a cluster of each seed was offered an edit of the other author's catalogue, sorted.
	offered []time.Duration
	// failed are those that were not applied or offered while the run lasted and a minute more.
	failed int
	// cpu is the processor time while the run lasted, and rest that of the seed's manager for a while after it and as long a pause.
	cpu  used
	rest time.Duration
	// seedBytes is by how much the attacker's Secrets on the seed grew.
	seedBytes int
	// etcdBytes is by how much the etcd of all clusters grew, with what it keeps of earlier revisions.
	etcdBytes int
	// held is what the attacks have stored at the end.
	held    stored
	answers hostile.Answers
	during  time.Duration
}

// percentile of sorted times; 0 where there are none.
func percentile(sorted []time.Duration, of int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*of/100)]
}

func ratio(a, b time.Duration) float64 { return a.Seconds() / max(0.001, b.Seconds()) }

// applied are the times of all other clusters, sorted.
func (m *measured) applied() []time.Duration {
	return slices.Sorted(slices.Values(slices.Concat(m.same, m.others)))
}

func (m *measured) against(quiet measured) string {
	return fmt.Sprintf("same seed: n=%d p50 %.2fs (%.2fx) p99 %.2fs (%.2fx); other seed: n=%d p99 %.2fs (%.2fx); "+
		"another catalogue: n=%d p50 %.2fs (%.2fx); not applied or offered: %d; "+
		"CPU of the seed's manager %s (quiet %s); at rest again %.2f s/s (quiet %.2f); "+
		"Secrets +%d KiB, etcd +%d KiB (quiet +%d)",
		len(m.same), percentile(m.same, 50).Seconds(), ratio(percentile(m.same, 50), percentile(quiet.same, 50)),
		percentile(m.same, 99).Seconds(), ratio(percentile(m.same, 99), percentile(quiet.same, 99)),
		len(m.others), percentile(m.others, 99).Seconds(), ratio(percentile(m.others, 99), percentile(quiet.others, 99)),
		len(m.offered), percentile(m.offered, 50).Seconds(), ratio(percentile(m.offered, 50), percentile(quiet.offered, 50)), m.failed,
		m.cpu.each(m.during), quiet.cpu.each(quiet.during), ratio(m.rest, resting()), ratio(quiet.rest, resting()), m.seedBytes>>10,
		m.etcdBytes>>10, quiet.etcdBytes>>10)
}

// run has an attack last for a while, in which the tenant edits what he has.
func (s *siege) run(b *testing.B, of attack) measured {
	b.Helper()
	s.runs++
	result := measured{during: *each}
	before, bytes, size := s.used(), s.secretBytes(b, s.attacker), s.etcdBytes(b)
	s.servers[s.attacker.Name].Set(of.mode)
	ctx, cancel := context.WithTimeout(b.Context(), *each)
	defer cancel()
	var running sync.WaitGroup
	s.measureOthers(ctx, b, &running, &result)
	running.Go(func() { s.meddle(ctx, s.attacker) })
	if of.act != nil {
		running.Go(func() { s.act(ctx, *of.act) })
	}
	<-ctx.Done()
	result.cpu = s.used().since(before)
	running.Wait()
	result.etcdBytes, result.held, result.answers = s.etcdBytes(b)-size, s.stored(b, s.attacker), s.by.Answers()
	s.servers[s.attacker.Name].Set(hostile.Truth)
	result.seedBytes = s.secretBytes(b, s.attacker) - bytes
	for _, times := range [][]time.Duration{result.same, result.others, result.offered} {
		slices.Sort(times)
	}
	return result
}

// measureOthers installs in other clusters and edits another catalogue, again and again until the context is over.
func (s *siege) measureOthers(ctx context.Context, b *testing.B, running *sync.WaitGroup, result *measured) {
	b.Helper()
	var lock sync.Mutex
	again := func(times *[]time.Duration, once func(number int) (time.Duration, error)) {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				took, err := once(i)
				lock.Lock()
				if err != nil {
					result.failed++
					b.Log(err)
				} else {
					*times = append(*times, took)
				}
				lock.Unlock()
				s.pause(b, 250*time.Millisecond)
			}
		})
	}
	for _, cluster := range sandbox.UserClusters()[1:] {
		times := &result.others
		if cluster.Seed == s.attacker.Seed {
			times = &result.same
		}
		again(times, func(number int) (time.Duration, error) {
			return s.once(b.Context(), cluster, fmt.Sprintf("run-%d-%d", s.runs, number))
		})
	}
	again(&result.offered, func(int) (time.Duration, error) { return s.edit(b.Context()) })
}

// rest measures how much the seed's manager still does some time after a run.
func (s *siege) rest(b *testing.B, after *measured) {
	b.Helper()
	s.pause(b, resting())
	before := s.used().seed
	s.pause(b, resting())
	after.rest = s.used().seed - before
}

// once installs, waits until it is applied, and has it removed.
func (p *platform) once(ctx context.Context, cluster sandbox.UserCluster, name string) (time.Duration, error) {
	seed, installation := p.Client(cluster.Seed), small(cluster, name)
	if err := seed.Create(ctx, installation); err != nil {
		return 0, err
	}
	took, err := p.applied(ctx, cluster, name)
	if err != nil {
		return 0, err
	}
	return took, seed.Delete(ctx, installation)
}

// applied waits for condition Applied, and tells how long it took.
func (p *platform) applied(ctx context.Context, cluster sandbox.UserCluster, name string) (time.Duration, error) {
	begin, found := time.Now(), &kubermaticv1.AddonInstallation{}
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := p.Client(cluster.Seed).Get(ctx, client.ObjectKey{Namespace: cluster.Namespace(), Name: name}, found)
		return err == nil && expect.Condition(found, kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied) == nil, nil
	})
	if err != nil {
		err = errors.Join(err, expect.Condition(found, kubermaticv1.ConditionReady, "True", "Ready"))
		return 0, fmt.Errorf("%s in cluster %s is not applied: %w", name, cluster.Name, err)
	}
	return time.Since(begin), nil
}

// meddle edits the attacker's installations, one after the other.
func (p *platform) meddle(ctx context.Context, attacker sandbox.UserCluster) {
	for i := 0; ctx.Err() == nil; i++ {
		installation := small(attacker, fmt.Sprintf("crowd-%d", i%crowd))
		changed := installation.DeepCopy()
		changed.Spec.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":%d}`, 1+i%3)}
		_ = p.Client(attacker.Seed).Patch(ctx, changed, client.MergeFrom(installation))
		pause := time.NewTimer(500 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

func (p *platform) pause(t testing.TB, during time.Duration) {
	timer := time.NewTimer(during)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func (p *platform) pid(cluster string) int { return p.Manager(cluster).Process().PID() }

func (p *platform) pids() (all []int) {
	for _, manager := range p.managers() {
		all = append(all, p.pid(manager))
	}
	return all
}
