package fieldsets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
)

// Red when an object that lost many fields, as one does that somebody else wrote as a whole, is not told by its first five: a panic here
// ended the whole manager.
func TestTheFirstOfManyLostFieldsAreNamed(t *testing.T) {
	for _, test := range []struct {
		why    string
		fields int
		want   int
	}{
		{"none", 0, 0},
		{"fewer than are named", 4, 4},
		{"as many as are named", 5, 5},
		{"one more", 6, 5},
		{"two more", 7, 5},
		{"many", 300, 5},
	} {
		t.Run(test.why, func(t *testing.T) {
			keys, want := []string{`"f:kind":{}`}, []string(nil)
			for i := range test.fields {
				keys = append(keys, fmt.Sprintf(`"f:k%03d":{}`, i))
			}
			for i := range test.want {
				want = append(want, fmt.Sprintf(".k%03d", i))
			}
			recorded, live := json.RawMessage("{"+strings.Join(keys, ",")+"}"), json.RawMessage(`{"f:kind":{}}`)
			if diff := cmp.Diff(want, fieldsets.Lost(recorded, live, false)); diff != "" {
				t.Errorf("lost fields (-want +got):\n%s", diff)
			}
		})
	}
}
