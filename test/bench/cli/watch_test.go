package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	watched = 200
	// rounds of changes of all installations count as eachSeconds seconds each.
	rounds      = 4
	eachSeconds = 30
	mostPercent = 2.0
	mostMiB     = 60.0
)

// BenchmarkStatusWatch holds bars about `status --watch` of 200 installations that change every 30 seconds: CPU as a share of a core, and
// memory of the process.
func BenchmarkStatusWatch(b *testing.B) {
	server := fleet.ForTest(b, fleet.ClusterOptions{Name: "seed"}).Cluster("seed")
	seed := kit.Client(b, server.Config)
	var all []*v1.AddonInstallation
	for number := range watched {
		namespace := fmt.Sprintf("cluster-%03d", number/10)
		if number%10 == 0 {
			expect.Create(b, seed, kit.Namespace(namespace))
		}
		one := given.Installation(namespace, fmt.Sprintf("app-%d", number%10), "web", "apps")
		expect.Create(b, seed, one)
		all = append(all, one)
	}
	folder := b.TempDir()
	program, kubeconfig := filepath.Join(folder, "kubectl-addons"), filepath.Join(folder, "kubeconfig")
	expect.NoError(b, os.WriteFile(kubeconfig, server.Kubeconfig, 0o600))
	if output, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "../../../cmd/kubectl-addons").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, output)
	}
	for b.Loop() {
		command := exec.CommandContext(b.Context(), program, "status", "--watch", "--kubeconfig", kubeconfig)
		command.Stderr = os.Stderr
		output, err := command.StdoutPipe()
		expect.NoError(b, err)
		expect.NoError(b, command.Start())
		lines := bufio.NewScanner(output)
		read(b, lines, watched)
		before := processorSeconds(b, command.Process.Pid)
		for round := range rounds {
			change(b, seed, all, round) // a pipe has space for these lines
			read(b, lines, watched)
		}
		spent := processorSeconds(b, command.Process.Pid) - before
		bar.Time(b, "percent-of-a-core", 100*spent/(rounds*eachSeconds), mostPercent)
		bar.AtMost(b, "MiB", peak(b, command.Process.Pid), mostMiB)
		expect.NoError(b, command.Process.Signal(syscall.SIGINT))
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait() // it was interrupted
	}
}

// change gives all installations another message.
func change(b *testing.B, seed client.Client, all []*v1.AddonInstallation, round int) {
	for _, one := range all {
		one.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonUnhealthy, LastTransitionTime: metav1.Now(),
			Message: fmt.Sprintf("Deployment apps/web: it has no replica that is available (%d)", round),
		}}
		expect.UpdateStatus(b, seed, one)
	}
}

// read waits for so many lines.
func read(b *testing.B, lines *bufio.Scanner, count int) {
	b.Helper()
	for range count {
		if !lines.Scan() {
			b.Fatalf("the program ended: %v", lines.Err())
		}
	}
}

// processorSeconds is the CPU time of a process.
func processorSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	expect.NoError(b, err)
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		number, err := strconv.Atoi(field)
		expect.NoError(b, err)
		ticks += number
	}
	return float64(ticks) / 100
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that a process had, in MiB.
func peak(b *testing.B, pid int) float64 {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	expect.NoError(b, err)
	found := highWater.FindSubmatch(content)
	if found == nil {
		b.Fatalf("the process has no VmHWM:\n%s", content)
	}
	number, err := strconv.Atoi(string(found[1]))
	expect.NoError(b, err)
	return float64(number) / 1024
}
