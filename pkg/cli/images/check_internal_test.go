package images

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Red when a tag, a version or a digest of others gets into a list of copies, which people pass to a shell.
func TestOnlyReferencesAreListed(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, test := range []struct {
		of   view.ContentKey
		want string
	}{
		{view.ContentKey{Kind: view.ContentContainer, Reference: "quay.io/a/b", Revision: "1.0"}, "quay.io/a/b:1.0"},
		{view.ContentKey{Kind: view.ContentContainer, Reference: "quay.io/a/b", Digest: digest}, "quay.io/a/b@" + digest},
		{view.ContentKey{Kind: view.ContentContainer, Reference: "quay.io/a/b", Revision: "1;id"}, ""},
		{view.ContentKey{Kind: view.ContentContainer, Reference: "quay.io/a/b", Digest: digest + "$(id)"}, ""},
		{view.ContentKey{Kind: v1.ContentImage, Reference: "quay.io/a/b:1.0", Revision: digest}, "quay.io/a/b@" + digest},
		{view.ContentKey{Kind: v1.ContentImage, Reference: "quay.io/a/b:1.0", Revision: "`id`"}, ""},
		{view.ContentKey{Kind: v1.ContentChart, Reference: "oci://quay.io/a b 1.0.0+x"}, "quay.io/a/b:1.0.0_x"},
		{view.ContentKey{Kind: v1.ContentChart, Reference: "oci://quay.io/a b 1.0.0;id"}, ""},
		{view.ContentKey{Kind: view.ContentContainer, Reference: "no reference", Revision: "1"}, ""},
	} {
		var got string
		for _, one := range referencesOf(&view.Contents{Contents: []view.Content{{ContentKey: test.of}}}) {
			got += one.String()
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.of, got, test.want)
		}
	}
}
