package installing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// validated is how many releases of a round the SDK makes with its defaults: it takes its time.
const validated = 60

// BenchmarkHelm installs a chart of four objects 200 times, beside Helm's SDK called directly: without OpenAPI validation and with
// one discovery for all releases; with validation and that discovery; and as it comes, with validation and a discovery for each
// release. It has no rate limit and one HTTP connection in all cases, which is more than its defaults do.
func BenchmarkHelm(b *testing.B) {
	w := newWorld(b)
	if err := w.sources.Chart(ChartFiles()); err != nil {
		b.Fatal(err)
	}
	w.offer(b, "chart", &kubermaticv1.Template{Method: kubermaticv1.MethodHelm}, given.Chart(w.sources.ChartsURL, "four", "1.0.0"))
	sdk := w.buildSDK(b)
	w.startManager(b)
	watching := w.watch(b)
	for b.Loop() {
		w.install(b, watching, "chart", names("warm", warmUp))
		w.quiet(b)
		sdk.round(b, "cold", warmUp)
		sdk.round(b, "coldest", concurrency, "-validate")

		var ours, without, validating, defaults []outcome
		for round := range rounds {
			own, bare := fmt.Sprintf("ours-%d", round), fmt.Sprintf("bare-%d", round)
			checked, full := fmt.Sprintf("checked-%d", round), fmt.Sprintf("full-%d", round)
			inTurns(round, func() {
				made, _ := w.trellis(b, watching, "chart", names(own, installations))
				b.Log(made.text("Trellis"))
				ours = append(ours, made)
			}, func() {
				made := w.sdkRound(b, sdk, bare, installations)
				b.Log(made.text("SDK without validation"))
				without = append(without, made)
				w.quiet(b)
				made = w.sdkRound(b, sdk, checked, validated, "-validate")
				b.Log(made.text("SDK with validation and one discovery"))
				validating = append(validating, made)
				w.quiet(b)
				made = w.sdkRound(b, sdk, full, validated, "-validate", "-apart")
				b.Log(made.text("SDK with its defaults"))
				defaults = append(defaults, made)
			}, func() { w.quiet(b) })
			w.expectObjects(b, own, installations)
			w.expectObjects(b, bare, installations)
			w.expectObjects(b, checked, validated)
			w.expectObjects(b, full, validated)
		}
		reportRatio(b, "ratio-sdk-without-validation", ours, without, 0.5)
		reportRatio(b, "ratio-sdk-validating", ours, validating, 3)
		reportRatio(b, "ratio-sdk-defaults", ours, defaults, 3)
		w.reportManager(b, ours, 28)
	}
}

// sdk is the program of hack/peers/helm and what it needs.
type sdk struct{ program, kubeconfig, chart string }

// buildSDK builds the program, which is a module of its own.
func (w *world) buildSDK(b *testing.B) *sdk {
	b.Helper()
	root, err := binaries.Root()
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	made := &sdk{
		program: filepath.Join(folder, "helm-sdk"), kubeconfig: filepath.Join(folder, "kubeconfig"), chart: filepath.Join(folder, "four.tgz"),
	}
	command := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", made.program, ".")
	command.Dir = filepath.Join(root, "hack", "peers", "helm")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, output)
	}
	archive, err := fleet.PackChart(ChartFiles())
	if err != nil {
		b.Fatal(err)
	}
	for path, content := range map[string][]byte{made.chart: archive, made.kubeconfig: w.both.Kubeconfig} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return made
}

// sdkReport is what the program prints.
type sdkReport struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
}

// round makes releases, with further flags, and gives what the program says of it.
func (s *sdk) round(b *testing.B, prefix string, count int, how ...string) sdkReport {
	b.Helper()
	command := exec.CommandContext(b.Context(), s.program, append([]string{"-kubeconfig", s.kubeconfig, "-chart", s.chart,
		"-namespace", targetNamespace, "-prefix", prefix, "-count", fmt.Sprint(count), "-concurrency", fmt.Sprint(concurrency)}, how...)...)
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		b.Fatalf("the SDK's program: %v: %s", err, complaint.String())
	}
	var said sdkReport
	if err := json.Unmarshal(output.Bytes(), &said); err != nil {
		b.Fatal(err)
	}
	return said
}

// sdkRound measures a round of the SDK. Its wall time and CPU are those that it tells: the start of its process is not in it.
func (w *world) sdkRound(b *testing.B, s *sdk, prefix string, count int, how ...string) outcome {
	b.Helper()
	var said sdkReport
	made := w.measure(b, count, func() time.Time {
		said = s.round(b, prefix, count, how...)
		return time.Now()
	})
	made.wall = time.Duration(said.Seconds * float64(time.Second))
	made.cost[benchProcess] = time.Duration(said.CPUSeconds * float64(time.Second))
	return made
}
