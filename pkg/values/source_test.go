package values

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func TestATextGoesToItsPath(t *testing.T) {
	for _, test := range []struct {
		path, text string
		want       map[string]any
		refused    string
	}{
		{path: "password", text: "p", want: map[string]any{"password": "p"}},
		{path: "db.password", text: "0123", want: map[string]any{"db": map[string]any{"password": "0123"}}},
		{path: `a.b\.c/d`, text: "true", want: map[string]any{"a": map[string]any{"b.c/d": "true"}}},
		{path: "a", text: "x: 1\n", want: map[string]any{"a": "x: 1\n"}},
		{path: "a", text: "", want: map[string]any{"a": ""}},
		{path: "list[0]", text: "hunter2", refused: "has an index"},
		{path: "kkp.x", text: "hunter2", refused: "reserved"},
		{path: "a..b", text: "hunter2", refused: "empty key"},
		{path: "a", text: "hunter2\xff", refused: "is not UTF-8"},
		{path: "a", text: "hunter2" + strings.Repeat("x", MaxBytes), refused: "more than 262144 bytes"},
	} {
		got, err := TextAt(test.path, []byte(test.text))
		switch {
		case test.refused == "":
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, -want +got:\n%s", test.path, err, diff)
			}
		case err == nil || !strings.Contains(err.Error(), test.refused) || strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: got %.80v, want a refusal with %q, without the text", test.path, err, test.refused)
		}
	}
}

func TestPathsOfSourcesAreChecked(t *testing.T) {
	for _, test := range []struct {
		source  v1.ValuesSource
		refused string
	}{
		{v1.ValuesSource{}, ""},
		{v1.ValuesSource{ProviderRef: &v1.ProviderReference{}}, ""},
		{v1.ValuesSource{SecretRef: &v1.KeyReference{Name: "a"}}, ""},
		{v1.ValuesSource{SecretRef: &v1.KeyReference{Name: "a", Key: "b", TargetPath: "c.d"}}, ""},
		{v1.ValuesSource{SecretRef: &v1.KeyReference{Name: "a", TargetPath: "c.d"}}, "secretRef.targetPath needs key"},
		{v1.ValuesSource{ConfigMapRef: &v1.KeyReference{Name: "a", Key: "b", TargetPath: "c."}}, "configMapRef.targetPath: path"},
		{v1.ValuesSource{ConfigMapRef: &v1.KeyReference{Name: "a", Key: "b", TargetPath: "kkp"}}, "reserved"},
	} {
		if err := CheckSource(&test.source); test.refused == "" && err != nil ||
			test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%+v: got %v, want %q", test.source, err, test.refused)
		}
	}
}
