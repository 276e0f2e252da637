package helmrelease

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

const (
	// headLimit bounds what is kept of a document of a manifest, in bytes, aliases written out: what says which object it is. Of real
	// ones it is a tenth of what an object may have in annotations, of which there are 256 KiB.
	headLimit = 1 << 20
	// headsLimit bounds the heads of all documents together, in bytes, and documentsLimit the documents that say something.
	headsLimit, documentsLimit = 8 << 20, 5 * ownership.MaxObjects
	// headPieces is about how many maps, lists and values a head may have, and headDepth how deep they may be in one another.
	headPieces, headDepth = 50_000, 64
	// longestSign is more than anything that a line is known by has.
	longestSign = len(`"apiVersion":`)
)

// manifest finds out which objects a release's manifest names, while it comes. Helm writes it in documents, each begun by a
// line "---". Of each, only the parts that say which object it is are kept and decoded: an object can be large, and small texts
// can be made to cost a lot. A document that begins with a brace is kept whole.
type manifest struct {
	// sign is how the present line begins, until it is known what the line is.
	sign  []byte
	known bool
	// keeps says that the present line is kept.
	keeps bool
	// begun says that the document has begun, whole that all lines of the document are, and over that there were too many.
	begun, whole, over bool
	head               []byte
	budget             *strictyaml.Budget

	objects []ownership.Entry
	// unread counts documents that can't be read, documents all that say something, and heads their bytes.
	unread, documents, heads int
}

func newManifest() *manifest { return &manifest{budget: strictyaml.NewBudget(headsLimit)} }

// Write implements io.Writer; it takes everything.
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

// line takes a line, or a part of one.
func (m *manifest) line(part []byte, ends bool) {
	if m.known {
		m.add(part)
	} else {
		m.sign = append(m.sign, part...)
		if ends || len(m.sign) >= longestSign {
			m.recognise()
		}
	}
	if ends {
		m.sign, m.known = m.sign[:0], false
	}
}

// recognise tells a line by its beginning. What is indented, a comment or an element belongs to the line before.
func (m *manifest) recognise() {
	m.known = true
	if after, found := bytes.CutPrefix(m.sign, []byte("---")); found {
		m.end()
		m.keeps = true
		m.add(after)
		return
	}
	switch first(m.sign) {
	case '{':
		m.whole = m.whole || !m.begun
		m.keeps = true
	case ' ', '\t', '\r', '\n', '#', '-', ']', '}':
	default:
		m.keeps = isHead(m.sign)
		m.begun = true
	}
	m.add(m.sign)
}

// isHead says whether a line begins a part of a document that says which object it is.
func isHead(sign []byte) bool {
	sign = bytes.TrimLeft(sign, `"'`)
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		if after, found := bytes.CutPrefix(sign, []byte(key)); found && bytes.ContainsAny(after[:min(1, len(after))], `:"' `) {
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

// end ends a document, and with the last one the manifest.
func (m *manifest) end() {
	if len(m.sign) > 0 && !m.known {
		m.recognise()
	}
	head, over := m.head, m.over
	m.head, m.sign, m.begun, m.keeps, m.whole, m.over = m.head[:0], m.sign[:0], false, false, false, false
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

// isTooLarge says whether there is more in it than is read; nothing of it is believed then.
func (m *manifest) isTooLarge() bool {
	return m.documents > documentsLimit || m.heads > headsLimit || len(m.objects) > ownership.MaxObjects
}
