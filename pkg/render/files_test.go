package render_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/trellis-addons/trellis/pkg/render"
)

func TestReadAtMost(t *testing.T) {
	content := fstest.MapFS{"x": {Data: []byte("12345")}}
	for most, want := range map[int64]string{0: "", 4: "1234", 5: "12345", 6: "12345"} {
		text, whole, err := render.ReadAtMost(content, "x", most)
		if text != want || whole != (most >= 5) || err != nil {
			t.Errorf("%d bytes: got %q, %v, %v", most, text, whole, err)
		}
	}
	if _, _, err := render.ReadAtMost(content, "y", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
