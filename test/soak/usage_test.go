package soak

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// usage is what a manager holds at a moment.
type usage struct {
	heap, goroutines, files, children, stored int
}

func (u usage) String() string {
	return fmt.Sprintf("heap %d MiB, %d goroutines, %d open files, %d children, %d files in its store",
		u.heap>>20, u.goroutines, u.files, u.children, u.stored)
}

func (p *platform) managers() []string { return append(sandbox.Seeds(), sandbox.Master) }

// resting is what each manager holds. It takes the least of several looks: what is used between two collections of garbage is not held.
func (p *platform) resting(t testing.TB) map[string]usage {
	t.Helper()
	held := map[string]usage{}
	for look := range 9 {
		if look > 0 {
			p.pause(t, time.Second)
		}
		for _, manager := range p.managers() {
			now := p.usage(t, manager)
			least, known := held[manager]
			if !known {
				least = now
			}
			held[manager] = usage{
				min(least.heap, now.heap), min(least.goroutines, now.goroutines), min(least.files, now.files),
				min(least.children, now.children), min(least.stored, now.stored),
			}
		}
	}
	return held
}

func (p *platform) usage(t testing.TB, manager string) usage {
	t.Helper()
	pid := p.Manager(manager).Process().PID()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	expect.NoError(t, err)
	reported := p.metrics(t, manager)
	return usage{
		heap: int(reported["go_memstats_heap_alloc_bytes"]), goroutines: int(reported["go_goroutines"]), files: len(files),
		children: len(childrenOf(pid)), stored: filesBelow(p.Manager(manager).Store()),
	}
}

// metrics are those without labels.
func (p *platform) metrics(t testing.TB, manager string) map[string]float64 {
	t.Helper()
	reported := map[string]float64{}
	expect.Eventually(t, expect.Patience, func() error {
		content, err := fleet.Get(t.Context(), p.Manager(manager).MetricsURL())
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			if name, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				if value, err := strconv.ParseFloat(text, 64); err == nil {
					reported[name] = value
				}
			}
		}
		return nil
	})
	return reported
}

// childrenOf are the processes whose parent is the given one.
func childrenOf(parent int) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name in parentheses may hold spaces: fields count from behind it.
		_, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

// tick is the unit in which the system counts processor time.
const tick = 10 * time.Millisecond

// cpu is the processor time of a process and of its children that still run, and of those that ended.
func cpu(pid int) time.Duration {
	total := ticksOf(pid, true)
	for _, child := range childrenOf(pid) {
		total += ticksOf(child, false)
	}
	return time.Duration(total) * tick
}

// ticksOf reads hundredths of a second.
func ticksOf(pid int, withEnded bool) int {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	last := 13
	if withEnded {
		last = 15
	}
	total := 0
	for i := 11; i < last && i < len(fields); i++ {
		ticks, _ := strconv.Atoi(fields[i])
		total += ticks
	}
	return total
}

// expectFlat holds that a manager holds hardly more than before.
func expectFlat(t testing.TB, manager string, before, after usage) {
	t.Helper()
	t.Logf("%s before: %s", manager, before)
	t.Logf("%s after:  %s", manager, after)
	for _, grown := range before.growth(after) {
		t.Errorf("%s: %s", manager, grown)
	}
}

// growth is what a manager holds more than before. Garbage and pools of connections move a little.
func (u usage) growth(after usage) (grown []string) {
	for _, one := range []struct {
		what                string
		before, after, most int
	}{
		{"the heap", u.heap, after.heap, u.heap*3/2 + (16 << 20)},
		{"goroutines", u.goroutines, after.goroutines, u.goroutines + 30},
		{"open files", u.files, after.files, u.files + 20},
		{"children", u.children, after.children, max(u.children, 4)},
		{"files in the store", u.stored, after.stored, u.stored*2 + 20},
	} {
		if one.after > one.most {
			grown = append(grown, fmt.Sprintf("%s grew from %d to %d", one.what, one.before, one.after))
		}
	}
	return grown
}

// stored are bytes in the etcd of the seeds: the attacker's release records; the values, labels and annotations of the attacker's installations;
// and the largest of what the clusters are offered.
type stored struct{ records, values, available int }

func (s stored) String() string {
	return fmt.Sprintf("records %d KiB, values %d KiB, the largest offer %d KiB", s.records>>10, s.values>>10, s.available>>10)
}

func (s stored) orMore(other stored) stored {
	return stored{max(s.records, other.records), max(s.values, other.values), max(s.available, other.available)}
}

func (p *platform) stored(t testing.TB, attacker sandbox.UserCluster) (found stored) {
	t.Helper()
	var secrets corev1.SecretList
	var installations kubermaticv1.AddonInstallationList
	seed, home := p.Client(attacker.Seed), client.InNamespace(attacker.Namespace())
	p.must(t, seed.List(t.Context(), &secrets, home, client.MatchingFields{"type": "addons.kubermatic.k8c.io/release.v1"}))
	p.must(t, seed.List(t.Context(), &installations, home))
	for i := range secrets.Items {
		for _, data := range secrets.Items[i].Data {
			found.records += len(data)
		}
	}
	for i := range installations.Items {
		found.values += installation.Bytes(&installations.Items[i])
	}
	for _, cluster := range sandbox.UserClusters() {
		available := sandbox.AvailableIn(cluster)
		p.must(t, p.Client(cluster.Seed).Get(t.Context(), client.ObjectKeyFromObject(available), available))
		text, err := json.Marshal(available.Spec)
		p.must(t, err)
		found.available = max(found.available, len(text))
	}
	return found
}

// used is the processor time so far of the managers of the attacked seed and of the master, of that seed's API server, and of what runs
// beside the platform on the machine.
type used struct{ seed, master, server, beside time.Duration }

func (s *siege) used() used {
	now := used{seed: cpu(s.pid(s.attacker.Seed)), master: cpu(s.pid(sandbox.Master)), beside: machineTime() - time.Duration(ticksOf(os.Getpid(), false))*tick}
	for _, process := range s.Fleet.Processes() {
		took := cpu(process.PID())
		if now.beside -= took; process.Name() == s.attacker.Seed+"-kube-apiserver" {
			now.server = took
		}
	}
	return now
}

func (u used) since(before used) used {
	return used{u.seed - before.seed, u.master - before.master, u.server - before.server, u.beside - before.beside}
}

// each second of a time.
func (u used) each(during time.Duration) string {
	return fmt.Sprintf("%.2f s/s, of the master's %.2f, of the seed's API server %.2f, beside the platform %.2f",
		ratio(u.seed, during), ratio(u.master, during), ratio(u.server, during), ratio(u.beside, during))
}

// machineTime is 0 where the system does not tell.
func machineTime() time.Duration {
	content, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(content), "\n")
	total := 0
	for i, field := range strings.Fields(line) {
		if isIdle := i == 4 || i == 5; i > 0 && i < 9 && !isIdle {
			ticks, _ := strconv.Atoi(field)
			total += ticks
		}
	}
	return time.Duration(total) * tick
}

// secretBytes are those of all Secrets in a cluster's namespace on its seed.
func (p *platform) secretBytes(t testing.TB, cluster sandbox.UserCluster) int {
	t.Helper()
	var list corev1.SecretList
	expect.List(t, p.Client(cluster.Seed), &list, client.InNamespace(cluster.Namespace()))
	total := 0
	for i := range list.Items {
		total += list.Items[i].Size()
	}
	return total
}

// etcdBytes is what the etcd of all clusters uses, with the earlier revisions that it still has.
func (p *platform) etcdBytes(t testing.TB) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Fleet.EtcdURL()+"/v3/maintenance/status", strings.NewReader("{}"))
	expect.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	var reported struct {
		InUse int `json:"dbSizeInUse,string"`
	}
	if err := json.NewDecoder(response.Body).Decode(&reported); err != nil || reported.InUse == 0 {
		t.Fatalf("asking etcd for its size: %v, %d bytes", err, reported.InUse)
	}
	return reported.InUse
}
