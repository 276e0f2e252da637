package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// allocated is how many bytes the work takes in all.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Red when a release is decoded into Helm's own type: 6 MiB of small maps become hundreds of MiB there.
func TestDecodingARelease(t *testing.T) {
	plain := `{"name":"web","config":{"a":[` + strings.Repeat("{},", 2<<20) + `{}]},"version":1}`
	packed := packHelm(t, plain)
	taken := allocated(func() {
		if rel, err := decodeHelm(packed); err != nil || rel.Name != "web" || rel.Version != 1 {
			t.Errorf("got %v, %v", rel, err)
		}
	})
	if most := uint64(8 * len(plain)); taken > most {
		t.Errorf("decoding %d bytes took %d bytes, want at most %d", len(plain), taken, most)
	}
}

// Red when aliases are written out before they are counted, or documents decoded whose pieces were not.
func TestForeignManifestsAreBounded(t *testing.T) {
	aliases := "a: &a " + strings.Repeat("x", 50_000) + "\nb: [" + strings.Repeat("*a,", 2000) + "*a]\n"
	for why, manifest := range map[string]string{
		"aliases":   aliases,
		"pieces":    "a: [" + strings.Repeat("[],", 200_000) + "[]]",
		"depth":     strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"shared":    strings.Repeat("---\na: &a "+strings.Repeat("x", 1000)+"\nb: ["+strings.Repeat("*a,", 900)+"*a]\n", 60),
		"documents": strings.Repeat("---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n", 2001),
	} {
		taken := allocated(func() {
			if objects, ok := manifestObjects(manifest); ok {
				t.Errorf("%s: %d objects are believed", why, len(objects))
			}
		})
		if taken > 128<<20 {
			t.Errorf("%s: %d bytes of text took %d MiB", why, len(manifest), taken>>20)
		}
	}
}

// Red when a part of a release gets lost, or another than its status changes, where a later one takes its place.
func TestSupersededReleasesKeepTheirParts(t *testing.T) {
	plain := `{"name":"web","info":{"first_deployed":"2026-01-02T03:04:05Z","last_deployed":"2026-01-02T03:04:05Z","deleted":"",` +
		`"description":"Install complete","status":"deployed","notes":"hello"},"chart":{"metadata":{"name":"c"}},"config":{"a":1},` +
		`"manifest":"---\n<&>","hooks":[{"name":"h"}],"version":3,"namespace":"apps"}`
	stored, err := decodeHelm(packHelm(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := stored.superseded("owner")
	if err != nil {
		t.Fatal(err)
	}
	if secret.Name != "sh.helm.release.v1.web.v3" || secret.Labels["status"] != "superseded" || secret.Labels["version"] != "3" {
		t.Errorf("got Secret %q with labels %v", secret.Name, secret.Labels)
	}
	again, err := decodeHelm(secret.Data["release"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content(t, strings.Replace(plain, "deployed\",\"notes", "superseded\",\"notes", 1)), content(t, again)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// H7's relative in user clusters: a release of 16 MiB of "<" took 96 MiB and more when it was superseded, for each worker. Red when it
// is escaped as for web pages.
func TestSupersedingIsBounded(t *testing.T) {
	plain := `{"name":"web","info":{"status":"deployed"},"config":{"a":"` + strings.Repeat("<", 8<<20) + `"},"version":3}`
	stored, err := decodeHelm(packHelm(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	taken := allocated(func() { _, err = stored.superseded("owner") })
	if most := uint64(8 * len(plain)); err != nil || taken > most {
		t.Errorf("superseding %d bytes took %d bytes, want at most %d; %v", len(plain), taken, most, err)
	}
}

// content is JSON, or what becomes JSON, as maps.
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
