package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/golden"
)

const previewedSet = `apiVersion: kubermatic.k8c.io/v1
kind: AddonSet
metadata: {name: previewed, namespace: kubermatic, resourceVersion: "7"}
spec:
  type: Custom
  clusterSelector: {matchExpressions: [{key: addons.kubermatic.k8c.io/name, operator: In, values: [set-preview]}]}
  addons:
  - {name: web, addonRef: {name: web, version: 1.0.0}}
  - {name: wob, addonRef: {name: wob}}
status: {revision: none}
`

// Red when the verb asks about something else than its file, when a blocked item is not shown, when the exit code hides that something would
// change, and when callers without rights over all clusters get an answer.
func TestSetPreviewsAreShown(t *testing.T) {
	_, shell := shown(t, "set-preview")
	file := filepath.Join(t.TempDir(), "set.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(previewedSet), 0o600))
	admin := on(t, "seed")
	got := admin.run("set", "preview", file)
	golden.Match(t, "testdata/set-preview.txt", got.out+got.err)
	if got.code != cli.ExitNo {
		t.Errorf("exit code %d", got.code)
	}
	admin.runWith(strings.ReplaceAll(previewedSet, "set-preview", "no-cluster"), "set", "preview", "-", "-o", "json").works(t)
	shell.run("set", "preview", file).fails(t, cli.ExitForbidden, "addonsets.kubermatic.k8c.io in the catalogue namespace")
	for text, says := range map[string]string{
		strings.Replace(previewedSet, "kind: AddonSet", "kind: Addon", 1):  "no AddonSet",
		strings.Replace(previewedSet, "type: Custom", "type: Core", 1):     "Custom",
		strings.Replace(previewedSet, "  addons:", "  colour: red", 1):     "set.yaml",
		strings.Replace(previewedSet, "operator: In", "operator: Near", 1): "clusterSelector",
	} {
		expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		if got := admin.run("set", "preview", file); got.code == cli.ExitNo || got.code == cli.ExitDone || !strings.Contains(got.err, says) {
			t.Errorf("exit code %d without %q: %s", got.code, says, got.err)
		}
	}
}
