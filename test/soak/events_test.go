package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// event is something that happens to a platform.
type event struct {
	name string
	// weight is how often it comes, beside the others'.
	weight int
	// do does it. Errors of the seed are no failure: others stand in the way on purpose.
	do func(ctx context.Context, p *platform, random *rand.Rand) (reported string)
}

// kills end the life of a process, so that what it held can't be compared over them.
var kills = event{"kill", 1, func(_ context.Context, p *platform, random *rand.Rand) string {
	name := p.managers()[random.IntN(len(p.managers()))]
	p.Manager(name).Process().Kill()
	return name
}}

var events = []event{
	{"mode", 6, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster, modes := anyCluster(random), hostile.Modes()
		mode := modes[random.IntN(len(modes))]
		if mode.Name == "other-identity" && !p.recognised(ctx, cluster) {
			return cluster.Name + " " + mode.Name + " not now: its Cluster was not connected to yet"
		}
		p.servers[cluster.Name].Set(mode)
		return cluster.Name + " " + mode.Name
	}},
	{"truth", 6, func(_ context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		p.servers[cluster.Name].Set(hostile.Truth)
		return cluster.Name
	}},
	{"flaky", 3, func(_ context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		p.servers[cluster.Name].Set(hostile.ModeNamed("flaky"))
		return cluster.Name
	}},
	{"swap", 1, func(ctx context.Context, p *platform, random *rand.Rand) string {
		one, other := anyCluster(random), anyCluster(random)
		if !p.recognised(ctx, one) || !p.recognised(ctx, other) {
			return one.Name + " " + other.Name + " not now: one was not connected to yet"
		}
		_ = p.connect(ctx, one, p.servers[other.Name])
		_ = p.connect(ctx, other, p.servers[one.Name])
		return one.Name + " " + other.Name
	}},
	{"swap back", 3, func(ctx context.Context, p *platform, _ *rand.Rand) string {
		for _, cluster := range sandbox.UserClusters() {
			_ = p.connect(ctx, cluster, p.servers[cluster.Name])
		}
		return "all"
	}},
	{"edit", 8, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		installation := intent(cluster)[random.IntN(2)]
		values := fmt.Sprintf(`{"message":"number %d","replicas":%d}`, random.IntN(1000), 1+random.IntN(3))
		if installation.Name == "web" {
			values = fmt.Sprintf(`{"replicas":%d}`, 1+random.IntN(3))
		}
		changed := installation.DeepCopy()
		changed.Spec.Values = &runtime.RawExtension{Raw: []byte(values)}
		_ = p.Client(cluster.Seed).Patch(ctx, changed, client.MergeFrom(installation))
		return cluster.Name + " " + installation.Name
	}},
	{"remove", 2, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		installation := intent(cluster)[random.IntN(2)]
		_ = p.Client(cluster.Seed).Delete(ctx, installation)
		return cluster.Name + " " + installation.Name
	}},
	{"install", 4, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		for _, installation := range intent(cluster) {
			_ = p.Client(cluster.Seed).Create(ctx, installation)
		}
		return cluster.Name
	}},
	{"meddle", 3, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		greeting := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "greeter", Name: "greeter-notes"}}
		greeting.SetGroupVersionKind(kinds[1])
		_ = p.Client(cluster.Name).Delete(ctx, greeting)
		return cluster.Name
	}},
	{"bad kubeconfig", 1, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		contents := hostile.Kubeconfigs()
		names := slices.Sorted(maps.Keys(contents))
		name := names[random.IntN(len(names))]
		_ = p.write(ctx, cluster, contents[name])
		return cluster.Name + " " + name
	}},
	{"forged record", 1, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		found := &kkpv1.Cluster{}
		if p.Client(cluster.Seed).Get(ctx, client.ObjectKey{Name: cluster.Name}, found) == nil {
			for _, secret := range hostile.RecordBombs(cluster.Namespace(), found.UID, forgedName, 60<<20) {
				secret.Labels[forgedLabel] = "true"
				_ = p.Client(cluster.Seed).Create(ctx, secret)
			}
			forged := intent(cluster)[0]
			forged.Name = forgedName
			_ = p.Client(cluster.Seed).Create(ctx, forged)
			_ = p.Client(cluster.Seed).Delete(ctx, forged)
		}
		return cluster.Name
	}},
	{"delete Cluster", 1, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		_ = p.Client(cluster.Seed).Delete(ctx, sandbox.ClusterObject(cluster))
		return cluster.Name
	}},
	{"make Cluster anew", 2, func(ctx context.Context, p *platform, random *rand.Rand) string {
		cluster := anyCluster(random)
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_ = p.remake(ctx, cluster) // it may be on its way out for longer
		return cluster.Name
	}},
}

const (
	// forgedLabel marks Secrets that look like records, of installation forgedName.
	forgedLabel = "soak.example/forged"
	forgedName  = "forged"
)

func anyCluster(random *rand.Rand) sandbox.UserCluster {
	return sandbox.UserClusters()[random.IntN(len(sandbox.UserClusters()))]
}

// happen lets events of the list come until the time is over.
func (p *platform) happen(t testing.TB, random *rand.Rand, during time.Duration, of []event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	total := 0
	for _, one := range of {
		total += one.weight
	}
	for begin := time.Now(); ctx.Err() == nil; {
		next := random.IntN(total)
		for _, one := range of {
			if next -= one.weight; next < 0 {
				t.Logf("%6.1f s: %s %s", time.Since(begin).Seconds(), one.name, one.do(ctx, p, random))
				break
			}
		}
		pause := time.NewTimer(time.Duration(500+random.IntN(2500)) * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
