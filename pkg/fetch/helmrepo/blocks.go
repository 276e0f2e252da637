package helmrepo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// lineLimit is the maximum length of a line of an index, nameLimit that of a chart name. Decoding needs up to a
// hundred times the memory, so whole charts and long names are never decoded.
const (
	lineLimit = 4 << 20
	nameLimit = 1 << 10
)

// readYAML divides the lines below "entries:" into blocks. In block style a chart's content is
// indented deeper than its name, except its list's dashes, which may be below the name's first
// letter.
func (c *collection) readYAML(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), lineLimit)
	cutter := cutter{collection: c, indent: -1}
	for lines.Scan() {
		if err := cutter.line(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return c.refused("it has a line longer than " + outbound.Bytes(lineLimit))
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := cutter.end(); err != nil {
		return err
	}
	if !cutter.versioned || !cutter.found {
		return c.refused("it is not an index of a Helm repository: apiVersion or entries is missing (a login page?)")
	}
	return nil
}

// cutter follows the structure of an index line by line.
type cutter struct {
	*collection
	versioned, found bool
	inside           bool // below "entries:"
	indent           int  // of the charts' names
	chart            string
	used             bool
	size             int          // of all text about the chart
	dashes           int          // indentation of the dashes of its list; -1 before the first
	head             []byte       // the line with its name
	piece            bytes.Buffer // the lines of one entry
}

func (c *cutter) line(line []byte) error {
	text := bytes.TrimLeft(line, " ")
	depth := len(line) - len(text)
	if len(bytes.TrimSpace(text)) == 0 || text[0] == '#' && !c.used {
		return c.append(line)
	}
	switch {
	case depth == 0 && text[0] != '-' && text[0] != '#':
		return c.top(text)
	case !c.inside:
		return nil
	case c.indent < 0:
		c.indent = depth
	case depth < c.indent && text[0] != '#':
		return c.refused("it is not indented as block style YAML")
	}
	if depth == c.indent && text[0] != '-' && text[0] != '#' {
		return c.start(line)
	}
	return c.append(line)
}

func (c *cutter) top(line []byte) error {
	if err := c.end(); err != nil {
		return err
	}
	c.inside = false
	key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
	switch string(bytes.Trim(key, `"'`)) {
	case "apiVersion":
		c.versioned = true
	case "entries":
		if c.found {
			return c.refused("it has entries twice")
		}
		c.found = true
		switch value := string(bytes.TrimSpace(value)); {
		case value == "{}" || value == "null" || value == "~":
		case value == "" || value[0] == '#':
			c.inside = true
		default:
			return c.refused("its entries are not in block style")
		}
	}
	return nil
}

func (c *cutter) start(line []byte) error {
	if err := c.end(); err != nil {
		return err
	}
	var head map[string]any
	key, _, ok := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
	if len(key) > nameLimit {
		return c.refused("it names a chart with more than " + outbound.Bytes(nameLimit))
	}
	name := string(key)
	if ok && bytes.ContainsAny(key, `"'&*?[{!`) {
		if err := read(append(bytes.Clone(key), ": null"...), &head); err != nil || len(head) != 1 {
			return c.refused("its entries are not in block style")
		}
		for name = range head {
			break
		}
	}
	if !ok {
		return c.refused("its entries are not in block style")
	}
	c.chart, c.used = name, c.wanted(name)
	if !c.used {
		return nil
	}
	c.size, c.dashes, c.head = 0, -1, bytes.Clone(line)
	return c.begin(name)
}

// append adds a line of a chart, and decodes the previous entry when the next one begins.
func (c *cutter) append(line []byte) error {
	if !c.used {
		return nil
	}
	if c.size += len(line) + 1; c.size > chartLimit {
		return c.refused(fmt.Sprintf("it has more than %s about chart %q", outbound.Bytes(chartLimit), cut(c.chart)))
	}
	if text := bytes.TrimLeft(line, " "); isDash(text) {
		depth := len(line) - len(text)
		if c.dashes < 0 {
			c.dashes = depth
		} else if depth == c.dashes {
			if err := c.decode(); err != nil {
				return err
			}
		}
	}
	if c.piece.Len()+len(line) > entryLimit {
		return c.tooLarge(c.chart)
	}
	c.piece.Write(line)
	c.piece.WriteByte('\n')
	return nil
}

func isDash(text []byte) bool {
	return len(text) > 0 && text[0] == '-' && (len(text) == 1 || strings.IndexByte(" \t\r", text[1]) >= 0)
}

func (c *cutter) end() error {
	if !c.used {
		return nil
	}
	c.used = false
	return c.decode()
}

// decode decodes an entry below its chart's name, which detects pieces that are no list.
func (c *cutter) decode() error {
	if len(c.head) > entryLimit {
		return c.tooLarge(c.chart)
	}
	var decoded map[string][]*entry
	err := read(slices.Concat(c.head, []byte{'\n'}, c.piece.Bytes()), &decoded)
	c.piece.Reset()
	if err != nil {
		return c.refused(fmt.Sprintf("its entry for chart %q can't be read: it %v", cut(c.chart), err))
	}
	if len(decoded) != 1 {
		return c.refused(fmt.Sprintf("its entry for chart %q can't be read", cut(c.chart)))
	}
	return c.add(c.chart, decoded[c.chart])
}

// yamlDepth bounds the nesting in an entry of an index or a Chart.yaml, yamlPieces its maps, lists and values: a
// parser needs a hundred times the size of the smallest ones. Large entries have some hundred.
const (
	yamlDepth  = 64
	yamlPieces = 20_000
)

// read decodes a part of an index: a chart's name, or one entry with its name.
func read(part []byte, into any) error {
	return strictyaml.DecodeInto(part, strictyaml.Limits{Bytes: 2*entryLimit + 1, Depth: yamlDepth, Pieces: yamlPieces}, into)
}
