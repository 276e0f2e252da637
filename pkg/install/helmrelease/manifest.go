package helmrelease

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

const (
	// headLimit bounds the identifying part of a document, with aliases expanded, in bytes: real
	// ones have a tenth of the 256 KiB of an object's annotations.
	headLimit = 1 << 20
	// headsLimit bounds the heads of all documents, in bytes; documentsLimit their number.
	headsLimit, documentsLimit = 8 << 20, 5 * ownership.MaxObjects
	// headPieces bounds maps, lists and values of a head, headDepth their nesting.
	headPieces, headDepth = 50_000, 64
	longestStart          = len(`"apiVersion":`)
)

// manifest reads the objects that a release's manifest names, from a stream. Helm begins documents with a line "---".
// Only the part that identifies an object is kept and decoded: objects can be large, and small texts can decode to a
// lot. A document that begins with a brace is kept whole.
type manifest struct {
	start []byte
	known bool
	keeps bool
	// begun: the document has begun. whole: all its lines are kept. over: there were too many.
	begun, whole, over bool
	head               []byte
	budget             *strictyaml.Budget

	objects []ownership.Entry
	// unread counts unreadable documents, documents those with content, heads their bytes.
	unread, documents, heads int
}

func newManifest() *manifest { return &manifest{budget: strictyaml.NewBudget(headsLimit)} }

// Write implements io.Writer; it accepts everything.
func (m *manifest) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		line, ends := rest, false
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line, ends = rest[:end+1], true
		}
		rest = rest[len(line):]
		m.line(line, ends)
	}
	return len(text), nil
}

func (m *manifest) line(part []byte, ends bool) {
	if m.known {
		m.add(part)
	} else {
		m.start = append(m.start, part...)
		if ends || len(m.start) >= longestStart {
			m.classify()
		}
	}
	if ends {
		m.start, m.known = m.start[:0], false
	}
}

// classify decides by a line's beginning; indented lines and comments continue the previous line.
func (m *manifest) classify() {
	m.known = true
	if after, found := bytes.CutPrefix(m.start, []byte("---")); found {
		m.end()
		m.keeps = true
		m.add(after)
		return
	}
	switch first(m.start) {
	case '{':
		m.whole = m.whole || !m.begun
		m.keeps = true
	case ' ', '\t', '\r', '\n', '#', '-', ']', '}':
	default:
		m.keeps = isHead(m.start)
		m.begun = true
	}
	m.add(m.start)
}

func isHead(start []byte) bool {
	start = bytes.TrimLeft(start, `"'`)
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		if after, found := bytes.CutPrefix(start, []byte(key)); found && bytes.ContainsAny(after[:min(1, len(after))], `:"' `) {
			return true
		}
	}
	return false
}

func (m *manifest) add(text []byte) {
	switch {
	case m.over || !m.keeps && !m.whole:
	case len(m.head)+len(text) > headLimit:
		m.over, m.head = true, m.head[:0]
	default:
		m.head = append(m.head, text...)
	}
}

func (m *manifest) end() {
	if len(m.start) > 0 && !m.known {
		m.classify()
	}
	head, over := m.head, m.over
	m.head, m.start, m.begun, m.keeps, m.whole, m.over = m.head[:0], m.start[:0], false, false, false, false
	if over {
		m.unread++
		return
	}
	if len(bytes.TrimSpace(head)) == 0 || m.isTooLarge() {
		return
	}
	m.documents, m.heads = m.documents+1, m.heads+len(head)
	content, err := strictyaml.Decode(head, strictyaml.Limits{
		Bytes: headLimit, Depth: headDepth, Pieces: headPieces, Duplicates: true, Budget: m.budget,
	})
	if err != nil {
		m.unread++
		return
	}
	object, _ := content.(map[string]any)
	about := unstructured.Unstructured{Object: object}
	gv, err := schema.ParseGroupVersion(about.GetAPIVersion())
	if err != nil || about.GetKind() == "" || about.GetName() == "" {
		return
	}
	m.objects = append(m.objects, ownership.Entry{Version: gv.Version, Key: ownership.Key{
		Group: gv.Group, Kind: about.GetKind(), Namespace: about.GetNamespace(), Name: about.GetName(),
	}})
}

// isTooLarge says whether limits are exceeded; then no object is accepted.
func (m *manifest) isTooLarge() bool {
	return m.documents > documentsLimit || m.heads > headsLimit || len(m.objects) > ownership.MaxObjects
}
