package binaries

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownPrograms are the product's programs that the demo compiles.
var ownPrograms = []string{
	"./hack/controlplanes", "./hack/demo", "./cmd/master-controller-manager", "./cmd/seed-controller-manager", "./test/pod/enter",
}

// listed runs `go list -deps` in the folder of a module, with the flags that the demo is built with, and returns what the
// format gives for each package.
func listed(t *testing.T, folder string, arguments ...string) map[string]string {
	t.Helper()
	command := goCommand(t.Context(), folder, append([]string{"list", "-deps"}, arguments...)...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list in %q: %v\n%s", folder, err, complaints.String())
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[path] = value
	}
	return found
}

// compiledModules are the folders of the product and of the newer minor's programs, with what the demo builds there.
func compiledModules(t *testing.T) map[string][]string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	var programs []string
	for _, program := range Programs() {
		if program.Need == Base {
			programs = append(programs, program.Package)
		}
	}
	return map[string][]string{root: ownPrograms, filepath.Join(root, "hack", "controlplanes", newerModule): programs}
}

// compared is the value of each import path that both modules compile, or the difference.
func compared(t *testing.T, arguments ...string) (common int, differences []string) {
	t.Helper()
	var values []map[string]string
	for folder, packages := range compiledModules(t) {
		values = append(values, listed(t, folder, append(slices.Clone(arguments), packages...)...))
	}
	for _, path := range slices.Sorted(maps.Keys(values[0])) {
		other, both := values[1][path]
		if !both {
			continue
		}
		common++
		if values[0][path] != other {
			differences = append(differences, path+": "+values[0][path]+" and "+other)
		}
	}
	return common, differences
}

// sharedPackages is a floor for the packages that both modules compile: below it the comparison compares nothing.
const sharedPackages = 500

// TestVersionsAreTheProducts compares the versions of all packages, by import path, that the product and the programs of the
// newer minor have in common. Red when go.mod here and there select different versions: `go get` the newer one in the other.
func TestVersionsAreTheProducts(t *testing.T) {
	common, differences := compared(t, "-f", "{{.ImportPath}} {{with .Module}}{{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}}{{end}}")
	if common < sharedPackages || len(differences) > 0 {
		t.Errorf("%d packages in common, %d in two versions:\n%s", common, len(differences), strings.Join(differences, "\n"))
	}
}

// TestNoPackageIsCompiledTwice compares build IDs, which differ when the same package was compiled from other files, with
// other flags or against other versions. Red when flags or versions of the two modules come apart.
func TestNoPackageIsCompiledTwice(t *testing.T) {
	common, differences := compared(t, "-export", "-f", "{{.ImportPath}} {{.BuildID}}")
	if common < sharedPackages || len(differences) > 0 {
		t.Errorf("%d packages in common, %d compiled twice:\n%s", common, len(differences), strings.Join(differences, "\n"))
	}
}

// TestTheMakefileHasTheFlags: red when the Makefile compiles the product with other flags than the control planes' programs.
func TestTheMakefileHasTheFlags(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "grep", "-c", "^export GOFLAGS := "+CompileFlags+"$", filepath.Join(root, "Makefile")).Output()
	if err != nil || strings.TrimSpace(string(output)) != "1" {
		t.Errorf("the Makefile does not export GOFLAGS as %q: %v", CompileFlags, err)
	}
}
