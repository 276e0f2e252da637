package hostile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Kubeconfigs are contents of a kubeconfig Secret, by their problem. None of them is large.
func Kubeconfigs() map[string][]byte {
	cluster := func(inner string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n" +
			"users: [{name: x, user: {token: x}}]\nclusters: [{name: x, cluster: {" + inner + "}}]\n"
	}
	return map[string][]byte{
		"aliases":        []byte("a: &a \"" + strings.Repeat("a", 100<<10) + "\"\nb: [" + strings.Repeat("*a,", 4000) + "*a]\n"),
		"nested aliases": nestedAliases(),
		"deep":           []byte("a: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)),
		"a file":         []byte(cluster(`server: "https://127.0.0.1:1", certificate-authority: /etc/passwd`)),
		"a proxy":        []byte(cluster(`server: "https://127.0.0.1:1", proxy-url: "http://127.0.0.1:2"`)),
		"no TLS":         []byte(cluster(`server: "http://127.0.0.1:1"`)),
		"insecure":       []byte(cluster(`server: "https://127.0.0.1:1", insecure-skip-tls-verify: true`)),
		"a program": []byte(strings.Replace(cluster(`server: "https://127.0.0.1:1"`), "{token: x}",
			`{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}}`, 1)),
		"no YAML": []byte("\x00\x01\x02"),
		"empty":   {},
	}
}

// nestedAliases has nine to the seventh power parts with its aliases expanded.
func nestedAliases() []byte {
	var text strings.Builder
	text.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for _, pair := range []string{"ba", "cb", "dc", "ed", "fe", "gf"} {
		fmt.Fprintf(&text, "%c: &%c [%s*%c]\n", pair[0], pair[0], strings.Repeat(fmt.Sprintf("*%c,", pair[1]), 8), pair[1])
	}
	return []byte(text.String())
}

// RecordBombs are Secrets that look like the release record of an installation, under present and earlier names of
// records: a few kilobytes that become size bytes when they are unpacked, and far more when they are decoded.
func RecordBombs(namespace string, cluster types.UID, installation string, size int) []*corev1.Secret {
	plain := []byte(`{"format":1,"inventory":[{}` + strings.Repeat(",{}", size/3) + `]}`)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err) // it has no options that could be wrong
	}
	packed := encoder.EncodeAll(plain, nil)
	_ = encoder.Close() // nothing was streamed
	sum, owner := sha256.Sum256(packed), sha256.Sum256([]byte(string(cluster)+"/"+installation))
	id := hex.EncodeToString(owner[:])
	index, _ := json.Marshal(map[string]any{"format": 1, "digest": hex.EncodeToString(sum[:])}) // of strings and numbers
	var all []*corev1.Secret
	for _, digits := range []int{10, 32} {
		all = append(all, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("addon-%s-1", id[:digits]),
				Labels: map[string]string{
					kubermaticv1.LabelInstallation:      id[:16],
					"addons.kubermatic.k8c.io/revision": "1",
					"addons.kubermatic.k8c.io/state":    "Applied",
				},
			},
			Type: "addons.kubermatic.k8c.io/release.v1", Data: map[string][]byte{"index": index, "record": packed},
		})
	}
	return all
}

// Repositories are trees of a catalogue repository, by their problem.
func Repositories() map[string]map[string]string {
	return map[string]map[string]string{
		"aliases over many documents": aliasedDocuments(15, 16, 128),
		"aliases in one document":     aliasedDocuments(1, 1, 4000),
		"nested aliases":              {"a.yaml": string(nestedAliases())},
		"deep":                        {"a.yaml": "- name: a\n  versions: " + strings.Repeat("[", 100_000)},
		"many small maps":             {"a.yaml": "- name: a\n  versions: [{values: {a: [" + strings.Repeat("a: 1,", 160_000) + "1]}}]"},
		"many documents":              {"a.yaml": strings.Repeat("---\n- name: a\n", 100_000)},
		"many add-ons":                {"a.yaml": strings.Repeat("- {name: a, versions: [{version: \"1.0.0\"}]}\n", 50_000)},
	}
}

// aliasedDocuments are small as written and large with their aliases expanded.
func aliasedDocuments(files, documents, versions int) map[string]string {
	text := strings.Repeat("x", 29_000)
	tree := map[string]string{}
	for file := range files {
		var out strings.Builder
		for document := range documents {
			fmt.Fprintf(&out, "---\n- name: a%d-%d\n  versions:\n", file, document)
			for version := range versions {
				values := "*v"
				if version == 0 {
					values = `&v {a: "` + text + `"}`
				}
				fmt.Fprintf(&out, "  - version: \"%d.0.0\"\n    template: {method: go-template}\n"+
					"    source: {git: {remote: \"https://x.example/z.git\", path: a}}\n    values: %s\n", version+1, values)
			}
		}
		tree[fmt.Sprintf("f%02d.yaml", file)] = out.String()
	}
	return tree
}
