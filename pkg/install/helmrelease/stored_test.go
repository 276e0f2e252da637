package helmrelease

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-addons/trellis/test/long"
)

// packHelm packs a text as Helm packs releases.
func packHelm(t *testing.T, plain string) []byte {
	t.Helper()
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	if _, err := packer.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// allocated is how many bytes the function allocates in total.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDecodingARelease fails if a release is decoded into Helm's own type: 6 MiB of small maps become hundreds of MiB
// there.
func TestDecodingARelease(t *testing.T) {
	plain := `{"name":"web","config":{"a":[` + strings.Repeat("{},", 2<<20) + `{}]},"version":1}`
	packed := packHelm(t, plain)
	taken := allocated(func() {
		if rel, err := decode(t.Context(), packed); err != nil || rel.Name != "web" || rel.Version != 1 {
			t.Errorf("got %v, %v", rel, err)
		}
	})
	if most := uint64(2 << 20); taken > most {
		t.Errorf("decoding %d bytes took %d bytes, want at most %d", len(plain), taken, most)
	}
}

// storedText is a release with a manifest.
func storedText(t *testing.T, manifest string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": "web", "namespace": "apps", "version": 1, "manifest": manifest})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestForeignManifestsAreBounded fails if aliases are expanded before they are counted, or documents are decoded whose
// parts were not counted.
func TestForeignManifestsAreBounded(t *testing.T) {
	long.Heavy(t)
	aliases := "kind: &a " + strings.Repeat("x", 50_000) + "\nmetadata: [" + strings.Repeat("*a,", 2000) + "*a]\n"
	for why, manifest := range map[string]string{
		"aliases": aliases,
		"pieces":  "kind: [" + strings.Repeat("[],", 200_000) + "[]]",
		"depth":   "metadata: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"braces":  "{" + strings.Repeat("a: {", 300_000),
		"shared":  strings.Repeat("---\nkind: &a "+strings.Repeat("x", 1000)+"\nmetadata: ["+strings.Repeat("*a,", 900)+"*a]\n", 60),
		"large":   "metadata:\n  name: " + strings.Repeat("x", 2<<20) + "\n",
		"many":    strings.Repeat("---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n", 2001),
		"empty":   strings.Repeat("---\nkind: A\n", 20_000),
	} {
		packed := packHelm(t, storedText(t, manifest))
		taken := allocated(func() {
			stored, err := decode(t.Context(), packed)
			if err == nil && (len(stored.Objects) > 0 || stored.Unread == 0) {
				t.Errorf("%s: %d objects are believed, %d documents are unread", why, len(stored.Objects), stored.Unread)
			}
		})
		if taken > 256<<20 {
			t.Errorf("%s: %d bytes of text took %d MiB", why, len(manifest), taken>>20)
		}
	}
}

// TestObjectsOfManifests fails if an object is not found because of its document's notation.
func TestObjectsOfManifests(t *testing.T) {
	for _, test := range []struct{ why, manifest, want string }{
		{"as helm writes", "---\n# Source: a.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: b\ndata: {}\n", "v1//Secret/b/a"},
		{"in another order", "data:\n  kind: no\nmetadata:\n  annotations:\n    x: |\n      y\n\n  name: a\nkind: Secret\n\napiVersion: v1\n", "v1//Secret//a"},
		{"in braces", "---\n# Source: a.json\n{\n\"kind\": \"Role\", \"metadata\":\n{\"name\": \"a\"},\n\"apiVersion\": \"rbac.authorization.k8s.io/v1\"}\n", "v1/rbac.authorization.k8s.io/Role//a"},
		{"quoted keys", "\"apiVersion\": v1\n'kind' : Pod\n\"metadata\": {name: a}\n", "v1//Pod//a"},
		{"nothing around", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}", "v1//Pod//a"},
		{"ends of lines of Windows", "---\r\napiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: a\r\n", "v1//Pod//a"},
		{"a text that looks like one", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: |\n    ---\n    kind: Pod\n", "v1//ConfigMap//a"},
		{"kinds beside", "kindOf: Pod\napiVersion: v1\nkind: Pod\nmetadata: {name: \"\\u00e9<&>\"}\n", "v1//Pod//é<&>"},
		{"a list in the first column", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n- kind: B\n- metadata: {}\n", "v1//Pod//a"},
	} {
		stored, err := decode(t.Context(), packHelm(t, storedText(t, test.manifest)))
		if err != nil || len(stored.Objects) != 1 || stored.Unread > 0 {
			t.Errorf("%s: got %+v, %v", test.why, stored, err)
			continue
		}
		one := stored.Objects[0]
		if got := fmt.Sprintf("%s/%s/%s/%s/%s", one.Version, one.Group, one.Kind, one.Namespace, one.Name); got != test.want {
			t.Errorf("%s: got %s, want %s", test.why, got, test.want)
		}
	}
}

// A release as large as Helm can store: a Secret of 1 MiB, which unpacks to 40 MiB, with a definition of 2 MiB and a
// document that is not YAML. It fails if the limit is lower: such charts could not be adopted. Its memory is reported,
// and limited.
func TestLargeReleasesAreRead(t *testing.T) {
	long.Heavy(t)
	var text strings.Builder
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		fmt.Fprintf(&text, "---\n# Source: t/%d.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-%d\ndata:\n", i, i)
		size := 120 << 10
		if i == 7 {
			size = 2 << 20
		}
		for begun := text.Len(); text.Len() < begun+size; {
			fmt.Fprintf(&text, "      description: What is said of field number %d, in the words of all others, which say it at some length, "+
				"as definitions do: a list of them is kept in order, and the last one counts\n", chance.IntN(20))
		}
	}
	text.WriteString("---\nkind: ]\n")
	plain := storedText(t, text.String())
	packed := packHelm(t, plain)
	if len(packed) > corev1.MaxSecretSize {
		t.Fatalf("%d bytes don't fit into a Secret", len(packed))
	}
	var stored *storedRelease
	begun := time.Now()
	taken := allocated(func() {
		var err error
		if stored, err = decode(t.Context(), packed); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d MiB in a Secret of %d KiB: read in %s with %d KiB", len(plain)>>20, len(packed)>>10, time.Since(begun), taken>>10)
	if len(stored.Objects) != 300 || stored.Unread != 1 {
		t.Errorf("%d objects are read, and %d documents are not", len(stored.Objects), stored.Unread)
	}
	if taken > 32<<20 {
		t.Errorf("%d MiB took %d MiB", len(plain)>>20, taken>>20)
	}
}

// TestSupersededReleasesKeepTheirParts fails if a part of a release is lost, or changes in addition to its status, when
// a later one replaces it.
func TestSupersededReleasesKeepTheirParts(t *testing.T) {
	plain := `{"name":"web","info":{"first_deployed":"2026-01-02T03:04:05Z","last_deployed":"2026-01-02T03:04:05Z","deleted":"",` +
		`"description":"Install complete","status":"deployed","notes":"hello"},"chart":{"metadata":{"name":"c"}},"config":{"a":1},` +
		`"manifest":"---\n<&>\"\u00e9","hooks":[{"name":"h"}],"version":3,"namespace":"apps"}`
	stored, secret, err := superseded(t.Context(), packHelm(t, plain), "owner")
	if err != nil {
		t.Fatal(err)
	}
	if secret.Name != "sh.helm.release.v1.web.v3" || secret.Labels["status"] != "superseded" || secret.Labels["version"] != "3" ||
		stored.Name != "web" || stored.Version != 3 {
		t.Errorf("got Secret %q with labels %v of %+v", secret.Name, secret.Labels, stored)
	}
	if diff := cmp.Diff(content(t, strings.Replace(plain, "deployed\",\"notes", "superseded\",\"notes", 1)), content(t, unpacked(t, secret))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// unpacked is the content of a release's Secret.
func unpacked(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(secret.Data["release"])))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// In user clusters a release of 16 MiB of "<" needed more than 96 MiB to be superseded, for each worker. It fails if
// the release is kept in memory while it is rewritten.
func TestSupersedingIsBounded(t *testing.T) {
	plain := `{"name":"web","info":{"status":"deployed"},"config":{"a":"` + strings.Repeat("<", 8<<20) + `"},"version":3}`
	packed := packHelm(t, plain)
	var err error
	taken := allocated(func() { _, _, err = superseded(t.Context(), packed, "owner") })
	if most := uint64(4 << 20); err != nil || taken > most {
		t.Errorf("superseding %d bytes took %d bytes, want at most %d; %v", len(plain), taken, most, err)
	}
}

// TestWhatIsNoRelease fails if data that is no release counts as one, or is read beyond its end.
func TestWhatIsNoRelease(t *testing.T) {
	for _, plain := range []string{
		"", "null", "{", "[]", `{"name"}`, `{"name":1}`, `{"name":"web"`, `{"name":"web",}`, `{"name":"we\x"}`, `{"manifest":"a`, `{"manifest":"\u12`,
		`{"manifest":1}`, `{"hooks":{}}`, `{"a":` + strings.Repeat("[", 2000), `{"version":"1"}`, `{"a":"\`,
	} {
		stored, err := decode(t.Context(), packHelm(t, plain))
		if err == nil && (plain != "null" || stored.Name != "") {
			t.Errorf("%.20q is read as %+v", plain, stored)
		}
		if _, _, err := superseded(t.Context(), packHelm(t, plain), "owner"); err == nil && plain != "null" && !strings.Contains(plain, "manifest\":1") && !strings.Contains(plain, "hooks") {
			t.Errorf("%.20q is superseded", plain)
		}
	}
}

// Parts take time, and one release is read at a time for all. It fails without step: each of these is read to its end.
func TestReleasesHaveABoundOfParts(t *testing.T) {
	long.Heavy(t)
	for why, plain := range map[string]string{
		"escapes":  `{"name":"web","manifest":"` + strings.Repeat(`\n`, 9<<20) + `"}`,
		"values":   `{"name":"web","chart":[` + strings.Repeat("0,", 9<<20) + `0]}`,
		"elements": `{"name":"web","hooks":[` + strings.Repeat("{},", 9<<20) + `{}]}`,
		"names":    `{"name":"web"` + strings.Repeat(`,"info":{}`, 3<<20) + `}`,
	} {
		begin := time.Now()
		if _, err := decode(t.Context(), packHelm(t, plain)); err == nil {
			t.Errorf("%s: %d bytes are read", why, len(plain))
		}
		t.Logf("%s: %d MiB took %s", why, len(plain)>>20, time.Since(begin))
	}
}

// content is JSON, or a value that becomes JSON, as maps.
func content(t *testing.T, from any) (content any) {
	t.Helper()
	text, isText := from.(string)
	if !isText {
		encoded, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}
