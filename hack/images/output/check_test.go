package output

import (
	"strings"
	"testing"
)

// Where images are pushed to is refused in words before a build, not in a look-up minutes later. Red when a
// scheme, an empty part, a tag or a path without a host passes, or when the error does not name the value.
func TestARegistryIsAHostAndAPath(t *testing.T) {
	for path, says := range map[string]string{
		"":                                     "",
		"registry.example.com":                 "",
		"registry.example.com/trellis/builds":  "",
		"127.0.0.1:5000/trellis":               "",
		"localhost/trellis":                    "",
		"https://registry.example.com/trellis": `leave out "https://"`,
		"oci://registry.example.com/trellis":   `leave out "oci://"`,
		"registry.example.com/trellis/":        "empty",
		"registry.example.com//trellis":        "empty",
		"registry.example.com:/trellis":        "empty",
		"registry.example.com/../trellis":      "empty",
		"registry.example.com:port/trellis":    "registries must be valid",
		"registry.example.com/trellis:1.0":     "can only contain",
		"registry.example.com/Trellis":         "can only contain",
		"registry/trellis":                     "registry to be explicitly defined",
		"/trellis":                             "registry to be explicitly defined",
	} {
		err := Registry{Path: path}.Check()
		if says == "" {
			if err != nil {
				t.Errorf("%q is refused: %v", path, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "PUSH (flag -push) is \""+path+`"`) {
			t.Errorf("%q: got %v, want %q", path, err, says)
		}
	}
}
