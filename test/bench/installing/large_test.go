package installing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
)

// BenchmarkLargeAddon applies an add-on of 150 objects, 20 of them large CRDs, beside `kubectl apply --server-side` of the same
// objects: the CRDs first, then waited for, then the rest. Ours is the time from the request to Applied; fetching, rendering
// and the record are in it.
func BenchmarkLargeAddon(b *testing.B) {
	w := newWorld(b)
	w.startManager(b)
	watching := w.watch(b)
	if _, err := w.sources.Commit("four", map[string]string{"addon.yaml": addonTemplate}); err != nil {
		b.Fatal(err)
	}
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource("four"))
	for b.Loop() {
		w.install(b, watching, "four", names("warm", 1))
		var ours, theirs []time.Duration
		for round := range rounds {
			inTurns(round, func() {
				took := w.largeRound(b, watching, fmt.Sprintf("ours%d", round))
				ours = append(ours, took)
			}, func() {
				took := w.kubectlRound(b, fmt.Sprintf("kubectl%d", round))
				theirs = append(theirs, took)
			}, func() {})
		}
		b.Logf("Trellis %v, kubectl %v", ours, theirs)
		slices.Sort(ours)
		slices.Sort(theirs)
		ratio := ours[rounds/2].Seconds() / theirs[rounds/2].Seconds()
		b.Logf("an add-on of %d objects with %d CRDs of %d KiB is Applied after %s, kubectl takes %s",
			largeObjects, largeCRDs, len(largeCRD("size", 0))>>10, ours[rounds/2], theirs[rounds/2])
		bar.AtMost(b, "ratio-kubectl", ratio, 1.5)
		memory := UsageOf(b, w.manager.process.PID())
		bar.AtMost(b, "manager-MiB-peak", float64(memory.peak>>20), largeMemoryBar)
		bar.None(b, "renderers-MiB-peak", float64(memory.children>>20))
	}
}

// largeRound installs the add-on of a round, gives the time to Applied, and takes it away again.
func (w *world) largeRound(b *testing.B, watching *watcher, round string) time.Duration {
	b.Helper()
	if _, err := w.sources.Commit(round, map[string]string{"crds.yaml": largeFoundation(round), "objects.yaml": largeRest(round)}); err != nil {
		b.Fatal(err)
	}
	w.offer(b, round, &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource(round))
	w.calm(b)
	w.manager.profile()
	begin, before, callsBefore := time.Now(), w.costs(b), w.calls(b)
	came := w.install(b, watching, round, []string{round})
	spent, made := w.costs(b).since(before), w.calls(b).since(callsBefore)
	w.manager.profile()
	b.Logf("Trellis: Applied after %.2f s, Ready after %.2f s; %s; %s",
		came.applied.Sub(begin).Seconds(), came.ready.Sub(begin).Seconds(), spent.text(1), made.text(1))
	w.removeLarge(b, round)
	return came.applied.Sub(begin)
}

func (w *world) removeLarge(b *testing.B, round string) {
	b.Helper()
	installed := installation(round, round)
	expect.Delete(b, w.seed, installed)
	expect.Eventually(b, patience, func() error {
		err := w.seed.Get(b.Context(), client.ObjectKeyFromObject(installed), installed)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("installation %q is still there", round))
	})
	w.removeCRDs(b, round) // those that the add-on's policy keeps
}

// removeCRDs asks for the end of a round's CRDs, and of their objects with them.
func (w *world) removeCRDs(b *testing.B, round string) {
	b.Helper()
	clients, err := apiextensions.NewForConfig(w.both.Config)
	expect.NoError(b, err)
	definitions := clients.ApiextensionsV1().CustomResourceDefinitions()
	for number := range largeCRDs {
		err := definitions.Delete(b.Context(), largePlural(number)+"."+largeGroup(round), metav1.DeleteOptions{})
		if client.IgnoreNotFound(err) != nil {
			b.Fatal(err)
		}
	}
}

// kubectlRound has kubectl do the same, and gives the time of all three of its calls.
func (w *world) kubectlRound(b *testing.B, round string) time.Duration {
	b.Helper()
	folder := b.TempDir()
	files := map[string]string{
		"kubeconfig": string(w.both.Kubeconfig), "crds.yaml": largeFoundation(round), "objects.yaml": largeRest(round),
	}
	for name, content := range files {
		expect.NoError(b, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	wait := []string{"wait", "--for=condition=Established", "--timeout=60s"}
	for number := range largeCRDs {
		wait = append(wait, "crd/"+largePlural(number)+"."+largeGroup(round))
	}
	w.calm(b)
	begin, before := time.Now(), w.costs(b)
	for _, arguments := range [][]string{
		{"apply", "--server-side", "-f", "crds.yaml"}, wait, {"apply", "--server-side", "-f", "objects.yaml"},
	} {
		expect.NoError(b, runKubectl(b.Context(), folder, arguments))
	}
	took := time.Since(begin)
	b.Logf("kubectl: %.2f s; %s", took.Seconds(), w.costs(b).since(before).text(1))
	w.removeCRDs(b, round)
	return took
}

func runKubectl(ctx context.Context, folder string, arguments []string) error {
	cache, err := binaries.Cache()
	if err != nil {
		return err
	}
	program, err := binaries.Find(cache, "kubectl", "")
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", "kubeconfig", "--namespace", targetNamespace}, arguments...)...)
	command.Dir, command.Env = folder, []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		text := output.String()
		return fmt.Errorf("kubectl %s: %w: %s", arguments[0], err, text[max(0, len(text)-2000):])
	}
	return nil
}

// calm waits until API server and manager have used little for a second: the API server works on for a while after CRDs changed.
func (w *world) calm(b *testing.B) {
	b.Helper()
	const little = 300 * time.Millisecond
	last, at := w.costs(b), time.Now()
	expect.Eventually(b, patience, func() error {
		if time.Since(at) < time.Second {
			return errors.New("not a second since the last look")
		}
		used := w.costs(b).since(last)
		last, at = w.costs(b), time.Now()
		if busy := used[serverProcess] + used[managerProcess]; busy > little {
			return fmt.Errorf("API server and manager used %s of CPU in a second", busy)
		}
		return nil
	})
}

const (
	// largeMemoryBar is for the manager's process, in MiB.
	largeMemoryBar = 200
	largeObjects   = 150
	largeCRDs      = 20
	// largeFields is how many fields the schema of a CRD has, in groups of ten.
	largeFields = 900
)

func largeGroup(round string) string { return round + ".example.com" }

func largePlural(number int) string { return fmt.Sprintf("thing%ds", number) }

// largeFoundation is the CRDs.
func largeFoundation(round string) string {
	var all strings.Builder
	for number := range largeCRDs {
		all.WriteString("---\n" + largeCRD(round, number))
	}
	return all.String()
}

// largeCRD is a definition as operators generate them: hundreds of fields, each with some lines about it.
func largeCRD(round string, number int) string {
	var crd strings.Builder
	fmt.Fprintf(&crd, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, singular: thing%[3]d, kind: Thing%[3]d, listKind: Thing%[3]dList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
          spec:
            type: object
            properties:
`, largePlural(number), largeGroup(round), number)
	for field := range largeFields {
		if field%10 == 0 {
			fmt.Fprintf(&crd, `              group%d:
                description: What belongs together in part %[1]d of thing %[2]d. It is left out where none of its fields is set.
                type: object
                properties:
`, field/10, number)
		}
		fmt.Fprintf(&crd, `                  field%d:
                    description: >-
                      Field %[1]d of thing %[2]d says how often, how long and with what result the part of the thing that it is
                      named for is looked at before anything is done about it; see section %[3]d of the manual for its default.
                    type: string
                    maxLength: %[4]d
                    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'
`, field, number, field*7%101, 63+field%190)
	}
	return crd.String()
}

// largeRest is everything else: an object of each CRD, and what comes with operators.
func largeRest(round string) string {
	kinds := []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {settings: 'level=info'}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {app: a}, ports: [{port: 80}]}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s}\n" +
			"rules: [{apiGroups: [''], resources: [pods], verbs: [get, list, watch]}]\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: %[1]s}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}\n" +
			"subjects: [{kind: ServiceAccount, name: %[1]s, namespace: bench}]\n",
	}
	var all strings.Builder
	for number := range largeCRDs {
		fmt.Fprintf(&all, "---\napiVersion: %s/v1\nkind: Thing%d\nmetadata: {name: %[3]s}\nspec: {group0: {field0: a}}\n",
			largeGroup(round), number, round)
	}
	for number := range largeObjects - 2*largeCRDs {
		fmt.Fprintf(&all, "---\n"+kinds[number%len(kinds)], fmt.Sprintf("%s-%d", round, number/len(kinds)))
	}
	return all.String()
}
