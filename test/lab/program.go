package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Program runs kubectl or helm in the test's namespace.
type Program struct {
	lab        *Lab
	name, home string
	path       string
}

// Program is the program of that name, "kubectl" or "helm", with a home of its own.
func (l *Lab) Program(name string) Program {
	l.Helper()
	cache := Must(binaries.Cache())(l)
	p := Program{lab: l, name: name, home: l.TempDir(), path: Must(binaries.Find(cache, name, ""))(l)}
	p.write("kubeconfig", string(fleet.Shared().Cluster("user").Kubeconfig))
	p.write("chart/Chart.yaml", "{apiVersion: v2, name: web, version: 1.0.0}")
	return p
}

func (p Program) write(name, content string) {
	p.lab.Helper()
	path := filepath.Join(p.home, name)
	for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)} {
		if err != nil {
			p.lab.Fatal(err)
		}
	}
}

// Run runs the program in its home. It gives what is printed on both outputs, and an error where the code is not 0.
func (p Program) Run(arguments ...string) (output string, err error) {
	arguments = append(arguments, "--namespace", p.lab.Unique, "--kubeconfig", "kubeconfig")
	command := exec.CommandContext(p.lab.Context(), p.path, arguments...)
	command.Dir = p.home // kubectl takes a comma in a path, as names of tests have it, for the end of it
	command.Env = append(os.Environ(), "HOME="+p.home)
	text, err := command.CombinedOutput()
	return string(text), err
}

// Bring writes a manifest by `kubectl apply` or `helm upgrade --install`, with NAME for the test's name.
func (p Program) Bring(manifest string) (output string, err error) {
	p.lab.Helper()
	manifest = strings.ReplaceAll(manifest, "NAME", p.lab.Unique)
	if p.name == "kubectl" {
		p.write("manifest.yaml", manifest)
		return p.Run("apply", "-f", "manifest.yaml")
	}
	p.write("chart/templates/manifest.yaml", manifest)
	return p.Run("upgrade", "--install", "web", "./chart")
}
