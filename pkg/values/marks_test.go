package values_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/values"
)

// What a chart may give to tpl beside the secrets of a cluster holds nothing that a template would
// run. Red when keys are not looked at, when lists are not, or when a mark may be split over two
// texts that are joined.
func TestTemplateMarksAreFoundEverywhere(t *testing.T) {
	for _, test := range []struct{ why, document, want string }{
		{"nothing", `{}`, ""},
		{"JSON in a text", `{"a": "{\"b\": {\"c\": {}}}"}`, ""},
		{"closing marks only", `{"a": "}}"}`, ""},
		{"braces apart", `{"a": "{ {x"}`, ""},
		{"a text", `{"a": "x {{ .Values.kkp }}"}`, `the text at "a"`},
		{"behind an escape of JSON", `{"a": "\u007b\u007b .Values.kkp }}"}`, `the text at "a"`},
		{"behind an escape of YAML", `a: "\x7b{ .Values.kkp }}"`, `the text at "a"`},
		{"in a block", "a: |\n  {\n  {{- .Values.kkp }}", `the text at "a"`},
		{"nested", `{"a": {"b": [1, {"c": "{{x}}"}]}}`, `the text at "a.b[1].c"`},
		{"a key", `{"a": {"{{x}}": 1}}`, `a key below "a"`},
		{"a key at the top", `{"{{x}}": 1}`, `a key below ""`},
		{"split over joined texts", `{"list": ["{", "{ .Values.kkp }}"]}`, `the text at "list[0]"`},
		{"split, with space that is cut off", `{"a": "x{ \n", "b": "{ .Values.kkp }}"}`, `the text at "a"`},
		{"a long key is cut", `{"` + strings.Repeat("k", 100) + `": "{{"}`, `the text at "` + strings.Repeat("k", 64) + `…"`},
	} {
		content, err := values.Decode([]byte(test.document))
		if err != nil {
			t.Fatalf("%s: %v", test.why, err)
		}
		err = values.CheckMarks(content)
		var marks *values.MarksError
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &marks) || !strings.HasPrefix(err.Error(), test.want+" contains")) {
			t.Errorf("%s: got %v, want %q", test.why, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "kkp") {
			t.Errorf("%s: the error tells a value: %v", test.why, err)
		}
	}
}
