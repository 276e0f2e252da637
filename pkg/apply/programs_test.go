package apply_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/lab"
	"github.com/trellis-addons/trellis/test/long"
)

// program runs kubectl or helm in the test's namespace.
type program struct {
	lab        *lab.Lab
	home, path string
}

func programOf(l *lab.Lab, name string) program {
	l.Helper()
	cache := lab.Must(binaries.Cache())(l)
	p := program{lab: l, home: l.TempDir(), path: lab.Must(binaries.Find(cache, name, ""))(l)}
	p.write("kubeconfig", string(fleet.Shared().Cluster("user").Kubeconfig))
	p.write("chart/Chart.yaml", "{apiVersion: v2, name: web, version: 1.0.0}")
	return p
}

func (p program) write(name, content string) string {
	p.lab.Helper()
	path := filepath.Join(p.home, name)
	for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)} {
		if err != nil {
			p.lab.Fatal(err)
		}
	}
	return path
}

func (p program) run(arguments ...string) (output string, err error) {
	arguments = append(arguments, "--namespace", p.lab.Unique, "--kubeconfig", filepath.Join(p.home, "kubeconfig"))
	command := exec.CommandContext(p.lab.Context(), p.path, arguments...)
	command.Env = append(os.Environ(), "HOME="+p.home)
	text, err := command.CombinedOutput()
	return string(text), err
}

// bring writes a manifest by `kubectl apply` or `helm upgrade`.
func (p program) bring(name, manifest string) (output string, err error) {
	p.lab.Helper()
	manifest = strings.ReplaceAll(manifest, "NAME", p.lab.Unique)
	if name == "kubectl" {
		return p.run("apply", "-f", p.write("manifest.yaml", manifest))
	}
	p.write("chart/templates/manifest.yaml", manifest)
	return p.run("upgrade", "--install", "web", filepath.Join(p.home, "chart"))
}

// What kubectl apply and helm upgrade do, Trellis does, in both directions. Red when a program refuses
// more than the table says, or less.
func TestUnionsAsKubectlAndHelm(t *testing.T) {
	long.Skip(t, "rooms", "kubectl and helm are run for each union")
	for _, name := range []string{"kubectl", "helm"} {
		for _, test := range unions {
			t.Run(test.name+" by "+name, func(t *testing.T) {
				t.Parallel()
				l := lab.New(t)
				l.Namespace()
				p := programOf(l, name)
				if definition, _, more := strings.Cut(test.before, "\n---\n"); more {
					l.Create(lab.Definitions, "", definition)
					l.Eventually("the kind is served", func() bool {
						l.Target.Mapper.Reset()
						_, err := l.Target.Mapper.RESTMapping(l.Objects(test.before)[1].GroupVersionKind().GroupKind())
						return err == nil
					})
				}
				for at, manifest := range []string{test.before, test.after, test.before} {
					_, object, more := strings.Cut(manifest, "\n---\n")
					if !more {
						object = manifest
					}
					isRefused := at == 1 && test.name == "StatefulSet to OnDelete" // only Trellis does it
					if output, err := p.bring(name, object); (err != nil) != isRefused {
						t.Errorf("move %d: %v\n%s", at, err, output)
					}
				}
			})
		}
	}
}
