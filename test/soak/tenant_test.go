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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var (
	each = flag.Duration("each", time.Minute, "how long each mode of the kit lasts in BenchmarkHostileTenant")
	only = flag.String("modes", "", "names of the modes in BenchmarkHostileTenant, with commas; empty: all")
)

// resting is when a manager has to be at rest again, and how long that is looked at.
const resting = 10 * time.Second

// crowd is how many installations the attacker has.
const crowd = 12

// BenchmarkHostileTenant has one tenant take every mode of the kit in turn, with the managers under their charts' memory limits,
// while installations come and go in three other clusters, one of them on the same seed. For each mode it tells how long these
// took until they were applied, against a quiet run, what the seed's manager took of the processor, and how soon it came to rest.
func BenchmarkHostileTenant(b *testing.B) {
	p := start(b)
	attacker := sandbox.UserClusters()[0]
	for i := range crowd {
		p.must(b, p.Client(attacker.Seed).Create(b.Context(), small(attacker, fmt.Sprintf("crowd-%d", i))))
	}
	for i := range crowd {
		if _, err := p.applied(b.Context(), attacker, fmt.Sprintf("crowd-%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	warm, calm := hostile.Truth, hostile.Truth
	warm.Name, calm.Name = "warm", "calm"
	_ = p.measure(b, warm) // fills caches and pools
	quiet := p.measure(b, calm)
	b.Logf("%-16s %s", "quiet", quiet.against(quiet))
	for _, mode := range hostile.Modes() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), mode.Name) {
			continue
		}
		pids := p.pids()
		under := p.measure(b, mode)
		b.Logf("%-16s %s", mode.Name, under.against(quiet))
		if !slices.Equal(pids, p.pids()) {
			b.Errorf("mode %s: a manager died", mode.Name)
		}
	}
}

// small is an installation of a chart of a few objects, in a namespace of its own.
func small(cluster sandbox.UserCluster, name string) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(), Name: name},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: "web"}, TargetNamespace: name, CreateNamespace: true,
		},
	}
}

// measured is what one mode did.
type measured struct {
	// took are the times until installations of other clusters were applied, sorted; those of the attacker's seed apart.
	same, others []time.Duration
	// failed are those that were not applied while the mode lasted and a minute more.
	failed int
	// cpu of the attacker's seed manager while the mode lasted, and in the ten seconds after it and a pause of ten.
	cpu, rest time.Duration
	// seedBytes is by how much the attacker's Secrets on the seed grew.
	seedBytes int
	// etcdBytes is by how much the etcd of all clusters grew, with what it keeps of earlier revisions.
	etcdBytes int
	during    time.Duration
}

func (m measured) against(quiet measured) string {
	percentile := func(sorted []time.Duration, of int) time.Duration {
		if len(sorted) == 0 {
			return 0
		}
		return sorted[min(len(sorted)-1, len(sorted)*of/100)]
	}
	ratio := func(a, b time.Duration) float64 { return a.Seconds() / max(0.001, b.Seconds()) }
	return fmt.Sprintf("same seed: n=%d p50 %.2fs (%.2fx) p99 %.2fs (%.2fx); other seed: n=%d p99 %.2fs (%.2fx); not applied: %d; "+
		"CPU %.2f s/s (quiet %.2f); at rest again %.2f s/s (quiet %.2f); Secrets +%d KiB, etcd +%d KiB (quiet +%d)",
		len(m.same), percentile(m.same, 50).Seconds(), ratio(percentile(m.same, 50), percentile(quiet.same, 50)),
		percentile(m.same, 99).Seconds(), ratio(percentile(m.same, 99), percentile(quiet.same, 99)),
		len(m.others), percentile(m.others, 99).Seconds(), ratio(percentile(m.others, 99), percentile(quiet.others, 99)), m.failed,
		ratio(m.cpu, m.during), ratio(quiet.cpu, quiet.during), ratio(m.rest, resting), ratio(quiet.rest, resting), m.seedBytes>>10,
		m.etcdBytes>>10, quiet.etcdBytes>>10)
}

// measure lets the attacker's API server be in a mode, and its tenant edit what he has.
func (p *platform) measure(b *testing.B, mode hostile.Mode) measured {
	b.Helper()
	attacker := sandbox.UserClusters()[0]
	result := measured{during: *each}
	before, bytes, stored := cpu(p.pid(attacker.Seed)), p.secretBytes(b, attacker), p.etcdBytes(b)
	p.servers[attacker.Name].Set(mode)
	ctx, cancel := context.WithTimeout(b.Context(), *each)
	defer cancel()
	var running sync.WaitGroup
	var lock sync.Mutex
	for _, cluster := range sandbox.UserClusters()[1:] {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				took, err := p.once(b.Context(), cluster, fmt.Sprintf("%s-%d", mode.Name, i))
				lock.Lock()
				switch {
				case err != nil:
					result.failed++
					b.Logf("cluster %s: %v", cluster.Name, err)
				case cluster.Seed == attacker.Seed:
					result.same = append(result.same, took)
				default:
					result.others = append(result.others, took)
				}
				lock.Unlock()
				p.pause(b, 250*time.Millisecond)
			}
		})
	}
	running.Go(func() { p.meddle(ctx, attacker) })
	<-ctx.Done()
	result.cpu = cpu(p.pid(attacker.Seed)) - before
	running.Wait()
	result.etcdBytes = p.etcdBytes(b) - stored
	p.servers[attacker.Name].Set(hostile.Truth)
	p.pause(b, resting)
	before = cpu(p.pid(attacker.Seed))
	p.pause(b, resting)
	result.rest = cpu(p.pid(attacker.Seed)) - before
	result.seedBytes = p.secretBytes(b, attacker) - bytes
	slices.Sort(result.same)
	slices.Sort(result.others)
	return result
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
		return 0, fmt.Errorf("%s is not applied: %w", name, errors.Join(err, expect.Condition(found, kubermaticv1.ConditionReady, "True", "Ready")))
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
