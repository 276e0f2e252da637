package helmrepo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const (
	// lineLimit is the longest line of an index, blockLimit what it may say about one chart.
	lineLimit  = 4 << 20
	blockLimit = 16 << 20
)

// readIndex decodes the wanted charts of an index, in YAML's block style as Helm writes it, or in JSON.
func readIndex(from io.Reader, subject string, wanted func(chart string) bool) (map[string][]version, error) {
	buffered := bufio.NewReaderSize(from, 64<<10)
	charts := collection{subject: subject, wanted: wanted, charts: map[string][]version{}}
	first, err := buffered.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return nil, charts.refused("it is empty")
	case err != nil:
		return nil, err
	case first[0] == '{':
		err = charts.readJSON(buffered)
	default:
		err = charts.readYAML(buffered)
	}
	return charts.charts, err
}

// collection gathers the wanted charts.
type collection struct {
	subject string
	wanted  func(chart string) bool
	charts  map[string][]version
}

func (c *collection) refused(rule string) error {
	return &fetch.RefusedError{Subject: c.subject, Rule: rule}
}

// add takes a chart over. The same chart twice would leave the choice to luck.
func (c *collection) add(chart string, entries []*entry) error {
	if _, ok := c.charts[chart]; ok {
		return c.refused(fmt.Sprintf("the index has chart %q twice", cut(chart)))
	}
	c.charts[chart] = versionsOf(entries)
	return nil
}

// readYAML cuts the lines below "entries:" into blocks. In block style what belongs to a chart is indented deeper than its
// name, but for the dashes of its list, which may stand under the name's first letter.
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
		return c.refused("it is no index of a Helm repository: apiVersion or entries is missing (a login page?)")
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
	block            bytes.Buffer
	keep             bool
}

func (c *cutter) line(line []byte) error {
	text := bytes.TrimLeft(line, " ")
	depth := len(line) - len(text)
	if len(bytes.TrimSpace(text)) == 0 || text[0] == '#' && !c.keep {
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

// top handles a key of the whole document.
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

// start begins the block of a chart.
func (c *cutter) start(line []byte) error {
	if err := c.end(); err != nil {
		return err
	}
	var head map[string]any
	key, _, ok := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
	name := string(key)
	if ok && bytes.ContainsAny(key, `"'&*?[{!`) {
		if err := yaml.Unmarshal(append(bytes.Clone(key), ": null"...), &head); err != nil || len(head) != 1 {
			return c.refused("its entries are not in block style")
		}
		for name = range head {
			break
		}
	}
	if !ok {
		return c.refused("its entries are not in block style")
	}
	c.chart, c.keep = name, c.wanted(name)
	return c.append(line)
}

func (c *cutter) append(line []byte) error {
	if !c.keep {
		return nil
	}
	if c.block.Len()+len(line) > blockLimit {
		return c.refused(fmt.Sprintf("it says more than %s about chart %q", outbound.Bytes(blockLimit), cut(c.chart)))
	}
	c.block.Write(line)
	c.block.WriteByte('\n')
	return nil
}

// end decodes the block that is complete now.
func (c *cutter) end() error {
	if !c.keep {
		return nil
	}
	c.keep = false
	var decoded map[string][]*entry
	err := yaml.Unmarshal(c.block.Bytes(), &decoded)
	c.block.Reset()
	if err != nil || len(decoded) != 1 {
		return c.refused(fmt.Sprintf("its entry for chart %q can't be read", cut(c.chart)))
	}
	return c.add(c.chart, decoded[c.chart])
}

// readJSON walks the tokens of an index in JSON.
func (c *collection) readJSON(from io.Reader) error {
	decoder := json.NewDecoder(from)
	found := false
	err := eachField(decoder, func(key string) error {
		if key != "entries" {
			return decoder.Decode(&skipped{})
		}
		found = true
		return eachField(decoder, func(chart string) error {
			if !c.wanted(chart) {
				return decoder.Decode(&skipped{})
			}
			var entries []*entry
			if err := decoder.Decode(&entries); err != nil {
				return err
			}
			return c.add(chart, entries)
		})
	})
	var refusal *fetch.RefusedError
	var unavailable *fetch.UnavailableError
	switch {
	case errors.As(err, &refusal) || errors.As(err, &unavailable):
		return err
	case err != nil || !found:
		return c.refused("it is no index of a Helm repository")
	}
	return nil
}

// skipped is a value that nobody wants.
type skipped struct{}

// UnmarshalJSON leaves the value where it is.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

var errNoObject = errors.New("not an object")

// eachField calls visit for each key of an object; visit takes the value.
func eachField(decoder *json.Decoder, visit func(key string) error) error {
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return errNoObject
		}
		if err := visit(name); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
