package installer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// TestNamesOfFieldManagersAreRead fails if a limit of names or a kind of them is not checked, if the annotation counts
// without adopt, and if an error does not name the correction.
func TestNamesOfFieldManagersAreRead(t *testing.T) {
	for _, test := range []struct {
		why, adopt, text string
		want             []string
		problem          string
	}{
		{"one", "true", "manager", []string{"manager"}, ""},
		{"several, with spaces and twice", "true", "manager, capi ,manager", []string{"capi", "manager"}, ""},
		{"as long as can be", "true", strings.Repeat("m", 128), []string{strings.Repeat("m", 128)}, ""},
		{"as many as can be", "true", "a,b,c,d,e,f,g,h", []string{"a", "b", "c", "d", "e", "f", "g", "h"}, ""},
		{"without adopt", "", "", nil, ""},
		{"with adopt said no", "false", ",", nil, ""},
		{"none", "true", "", nil, "a name in it is empty"},
		{"an empty one", "true", "manager,", nil, "a name in it is empty"},
		{"a long one", "true", strings.Repeat("m", 129), nil, "is longer than the 128 bytes"},
		{"a line", "true", "man\nager", nil, `"man ager" has a character`},
		{"too many", "true", "a,b,c,d,e,f,g,h,i", nil, "more than 8 field managers"},
		{"far too many", "true", strings.Repeat(",", 1<<18), nil, "more than 8 field managers"},
		{"an installation", "true", "addon-installation/0123456789abcdef", nil, "is an add-on installation"},
	} {
		got, err := installer.AdoptManagers(map[string]string{v1.AnnotationAdopt: test.adopt, v1.AnnotationAdoptManagers: test.text})
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != (test.problem != "") {
			t.Errorf("%s: %v (-want +got):\n%s", test.why, err, diff)
		}
		if err != nil && (!strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), "or remove it") || len(err.Error()) > 600) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
	if got, err := installer.AdoptManagers(map[string]string{v1.AnnotationAdopt: "true"}); got != nil || err != nil {
		t.Errorf("not set: %v, %v", got, err)
	}
}
