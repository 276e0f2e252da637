package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wide limits are beyond what the cases have.
var wide = limits{bytes: mebi, values: 10_000, depth: deepest, text: 10_000, name: 10_000, items: 10_000}

// scan feeds a text in pieces of a size.
func scan(most limits, text string, piece int) string {
	s := &scanner{limits: most}
	for rest := []byte(text); len(rest) > 0; rest = rest[min(piece, len(rest)):] {
		if wrong := s.feed(rest[:min(piece, len(rest))]); wrong != "" {
			return wrong
		}
	}
	return s.end()
}

var texts = []string{
	`{}`, `[]`, `null`, ` true `, `false`, `0`, `-0.5e+10`, `12.5E-3`, `"a\u00e9\n\"b"`, `{"a":{"b":[1,2,{"c":null}]},"d":""}`,
	`[[],{},[{}]]`, `{"a":1,"a":2}`, "\t[1 , 2]\r\n", "\"\xff\xfe\"", `"\ud800"`,
	``, ` `, `{`, `[`, `]`, `[1`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `01`, `1.`, `.5`, `-`, `1e`, `1e+`, `+1`,
	`tru`, `truth`, `nul`, `"a`, "\"a\nb\"", `"\x"`, `"\u12g4"`, `"\u12`, `{}{}`, `[1]2`, `[1}`, `{"a":1]`, `1 2`, `--1`, `1-1`, `"a"b`, `00`, `-01`,
}

// FuzzScannerAgrees: what passes is valid for encoding/json and what is not does not pass, in
// pieces of any size.
func FuzzScannerAgrees(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		wrong := scan(wide, string(text), 1+max(0, piece)%64)
		if valid := json.Valid(text); (wrong == "") != valid && wrong != "" == (wrong == notJSON) {
			t.Errorf("%q: the scanner says %q, encoding/json says valid: %v", text, wrong, valid)
		}
		if wrong == "" && !isWithin(t, text, wide) {
			t.Errorf("%q passes the limits", text)
		}
	})
}

// isWithin counts what a text holds by encoding/json.
func isWithin(t *testing.T, text []byte, most limits) bool {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	depth, tokens := 0, 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return tokens <= 3*most.values
		}
		tokens++
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if text, ok := token.(string); depth > most.depth || ok && len(text) > 3*max(most.text, most.name) {
			return false
		}
	}
}

func TestScannerEndsAtEachLimit(t *testing.T) {
	narrow := limits{bytes: mebi, values: 10, depth: 3, text: 8, name: 4, items: 5}
	for _, test := range []struct{ why, text, want string }{
		{"all that is allowed", `{"abcd":[[1,2,3,4,5],"12345678"]}`, ""},
		{"elements that are empty cost most", `[{},{},{},{},{},{}]`, "the answer has a list or an object of more than 5"},
		{"members of one object", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}`, "the answer has a list or an object of more than 5"},
		{"values in all", `[[1,2,3],[1,2,3],[1,2,3]]`, "the answer has more than 10 values"},
		{"levels", `[[[[]]]]`, "the answer is more than 3 levels deep"},
		{"a text", `"123456789"`, "the answer has a text of more than 8 bytes"},
		{"a text of escapes", `"\u0041\u0041"`, "the answer has a text of more than 8 bytes"},
		{"a name", `{"abcde":1}`, "the answer has a name of more than 4 bytes"},
		{"a number", strings.Repeat("1", numberLimit+2), "the answer has a number of more than 512 bytes"},
		{"what is left open", `{"a":`, notJSON},
	} {
		t.Run(test.why, func(t *testing.T) {
			for _, piece := range []int{1, 3, 1000} {
				if diff := cmp.Diff(test.want, scan(narrow, test.text, piece)); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
				}
			}
		})
	}
}

// TestScannerTakesNoMemory: what is scanned costs nothing by its size.
func TestScannerTakesNoMemory(t *testing.T) {
	text := []byte(`{"items":[` + strings.Repeat(`{"a":["b",1.5,true,null]},`, 1000) + `{}]}`)
	took := testing.AllocsPerRun(10, func() {
		s := scanner{limits: wide}
		if wrong := s.feed(text) + s.end(); wrong != "" {
			t.Error(wrong)
		}
		if values, items := s.cost(); values != 6003 || items != 1001 {
			t.Errorf("counted %d values and %d items", values, items)
		}
	})
	if took > 0 {
		t.Errorf("%v allocations", took)
	}
}
