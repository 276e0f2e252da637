package templatedata_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

func withPlatform(t *testing.T, given map[string]any, registries map[string]string) templatedata.Data {
	t.Helper()
	data, err := templatedata.New(fullCluster(), templatedata.Options{Platform: given, Registries: registries})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func canonical(t *testing.T, data templatedata.Data) string {
	t.Helper()
	encoded, err := templatedata.Canonical(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// AG25: Templates find every key of .Platform, also where the platform says nothing; registries are the flag's, with
// what the list says above them, but for those that it takes out. Charts find the same, and a child process too.
func TestTemplatesFindAllKeysOfThePlatform(t *testing.T) {
	mirrors := map[string]string{"docker.io": "a.example.com", "quay.io": "b.example.com"}
	given := map[string]any{
		"nodeSelector": map[string]any{"pool": "shared"}, "proxy": map[string]any{"http": "http://proxy.example.com"},
		"tolerations": []any{map[string]any{"operator": "Exists", "tolerationSeconds": int64(60)}},
		"registries":  map[string]any{"docker.io": nil, "gcr.io": "c.example.com"},
	}
	for _, test := range []struct {
		why        string
		given      map[string]any
		registries map[string]string
		want       string
	}{
		{"nothing", nil, nil,
			`{"nodeSelector":{},"proxy":{"caBundle":"","http":"","https":"","noProxy":""},"registries":{},"tolerations":[]}`},
		{"mirrors alone", nil, mirrors, `{"nodeSelector":{},"proxy":{"caBundle":"","http":"","https":"","noProxy":""},` +
			`"registries":{"docker.io":"a.example.com","quay.io":"b.example.com"},"tolerations":[]}`},
		{"both", given, mirrors, `{"nodeSelector":{"pool":"shared"},` +
			`"proxy":{"caBundle":"","http":"http://proxy.example.com","https":"","noProxy":""},` +
			`"registries":{"gcr.io":"c.example.com","quay.io":"b.example.com"},"tolerations":[{"operator":"Exists","tolerationSeconds":60}]}`},
	} {
		data := withPlatform(t, test.given, test.registries)
		charts, err := templatedata.Map(data)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		var received templatedata.Data
		if err := json.Unmarshal(sent, &received); err != nil {
			t.Fatal(err)
		}
		for seen, platform := range map[string]any{"manifests": data.Platform, "charts": charts["Platform"], "a child": received.Platform} {
			got, err := json.Marshal(platform)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("%s, %s see (-want +got):\n%s", test.why, seen, diff)
			}
		}
	}
}

// AG25: Hashes have what the list says, and nothing where there is none: those of installations of before stay as they
// were, byte for byte, with mirrors too, which are in the hash by themselves.
func TestHashesHaveOnlyWhatTheListSays(t *testing.T) {
	before := canonical(t, withPlatform(t, nil, nil))
	for why, same := range map[string]templatedata.Data{
		"mirrors": withPlatform(t, nil, map[string]string{"docker.io": "a.example.com"}), "nothing for the cluster": withPlatform(t, map[string]any{}, nil),
	} {
		if diff := cmp.Diff(before, canonical(t, same)); diff != "" {
			t.Errorf("%s (-before +now):\n%s", why, diff)
		}
	}
	given := map[string]any{"nodeSelector": map[string]any{"pool": "shared"}}
	data := withPlatform(t, given, nil)
	with := canonical(t, data)
	if with == before {
		t.Error("what the list says is in no hash")
	}
	given["nodeSelector"].(map[string]any)["pool"] = "other"
	data.Platform["nodeSelector"].(map[string]any)["pool"] = "another"
	if diff := cmp.Diff(with, canonical(t, data)); diff != "" {
		t.Errorf("the data shares what others change:\n%s", diff)
	}
}
