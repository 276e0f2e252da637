package laws

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apimachinery is what the kinds stand on.
const apimachinery = "k8s.io/apimachinery"

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// listPackages lists the packages of a module with everything that they need.
func listPackages(t *testing.T, folder string) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", "./...")
	command.Dir = filepath.Join(checkout(t), folder)
	command.Env = append(command.Environ(), "GOWORK=off")
	text, err := command.Output()
	if err != nil {
		t.Fatalf("listing the packages of %q: %v", folder, err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var found listed
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("listing the packages of %q: %v", folder, err)
		}
		all = append(all, found)
	}
}

// strangers are the packages that the kinds need and that neither Go nor apimachinery brings. Whoever imports the kinds gets
// them all.
func strangers(packages []listed) []string {
	imports := map[string][]string{}
	var open []string
	for _, found := range packages {
		imports[found.ImportPath] = found.Imports
		if within(found.ImportPath, []string{apimachinery}) {
			open = append(open, found.ImportPath)
		}
	}
	brought := map[string]bool{}
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if !brought[next] {
			brought[next] = true
			open = append(open, imports[next]...)
		}
	}
	var found []string
	for _, one := range packages {
		if !one.Standard && !brought[one.ImportPath] && !within(one.ImportPath, []string{module + "/" + kinds}) {
			found = append(found, one.ImportPath)
		}
	}
	return found
}

func TestKindsBringApimachineryAlone(t *testing.T) {
	packages := listPackages(t, kinds)
	for _, name := range []string{module + "/apis/kubermatic/v1", module + "/apis/kkp/v1", apimachinery + "/pkg/runtime"} {
		if !slices.ContainsFunc(packages, func(one listed) bool { return one.ImportPath == name }) {
			t.Errorf("%s is not listed: this test reads the wrong module", name)
		}
	}
	for _, name := range strangers(packages) {
		t.Errorf("the kinds need %s, which apimachinery does not bring: whoever imports them would get it", name)
	}
}

func TestKindsBringCatches(t *testing.T) {
	runtime := apimachinery + "/pkg/runtime"
	common := []listed{
		{ImportPath: "time", Standard: true}, {ImportPath: "k8s.io/klog/v2"}, {ImportPath: runtime, Imports: []string{"k8s.io/klog/v2", "time"}},
	}
	for _, test := range []struct {
		why  string
		kind listed
		more []listed
		want []string
	}{
		{"apimachinery and what it brings", listed{Imports: []string{runtime, "k8s.io/klog/v2"}}, nil, nil},
		{"a client", listed{Imports: []string{"k8s.io/client-go/rest"}},
			[]listed{{ImportPath: "k8s.io/client-go/rest", Imports: []string{runtime}}}, []string{"k8s.io/client-go/rest"}},
		{"by way of another kind", listed{Imports: []string{module + "/apis/kkp/v1"}},
			[]listed{{ImportPath: "k8s.io/api/core/v1"}, {ImportPath: module + "/apis/kkp/v1", Imports: []string{"k8s.io/api/core/v1"}}},
			[]string{"k8s.io/api/core/v1"}},
		{"a name that only begins like it", listed{Imports: []string{"k8s.io/apimachinery-more"}},
			[]listed{{ImportPath: "k8s.io/apimachinery-more"}}, []string{"k8s.io/apimachinery-more"}},
		{"the product", listed{Imports: []string{module + "/pkg/base/loop"}}, []listed{{ImportPath: module + "/pkg/base/loop"}}, []string{module + "/pkg/base/loop"}},
	} {
		test.kind.ImportPath = module + "/apis/kubermatic/v1"
		if got := strangers(slices.Concat(common, test.more, []listed{test.kind})); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
}
