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

func (p Program) write(name, content string) string {
	p.lab.Helper()
	path := filepath.Join(p.home, name)
	for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)} {
		if err != nil {
			p.lab.Fatal(err)
		}
	}
	return path
}

// Run gives what the program prints on both outputs, and an error where it ends with another code than 0.
func (p Program) Run(arguments ...string) (output string, err error) {
	arguments = append(arguments, "--namespace", p.lab.Unique, "--kubeconfig", filepath.Join(p.home, "kubeconfig"))
	command := exec.CommandContext(p.lab.Context(), p.path, arguments...)
	command.Env = append(os.Environ(), "HOME="+p.home)
	text, err := command.CombinedOutput()
	return string(text), err
}

// Bring writes a manifest by `kubectl apply` or `helm upgrade --install`, with NAME for the test's name.
func (p Program) Bring(manifest string) (output string, err error) {
	p.lab.Helper()
	manifest = strings.ReplaceAll(manifest, "NAME", p.lab.Unique)
	if p.name == "kubectl" {
		return p.Run("apply", "-f", p.write("manifest.yaml", manifest))
	}
	p.write("chart/templates/manifest.yaml", manifest)
	return p.Run("upgrade", "--install", "web", filepath.Join(p.home, "chart"))
}
