package helmrepo

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Limits of an index's used charts. An entry is decoded at once, and the results stay in memory;
// chart and entries bound the time. Large charts have a few thousand entries, of a few KiB each.
const (
	entryLimit   = 512 << 10
	chartLimit   = 16 << 20
	resultLimit  = 8 << 20
	entriesLimit = 50_000
)

// readIndex decodes the wanted charts of an index: YAML in Helm's block style, or JSON.
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

type collection struct {
	subject string
	wanted  func(chart string) bool
	charts  map[string][]version
	// entries and bytes that they have together.
	entries, bytes int
}

func (c *collection) refused(rule string) error {
	return &fetch.RefusedError{Subject: c.subject, Rule: rule}
}

func (c *collection) tooLarge(chart string) error {
	return c.refused(fmt.Sprintf("it has an entry of more than %s for chart %q", outbound.Bytes(entryLimit), cut(chart)))
}

func (c *collection) begin(chart string) error {
	if _, ok := c.charts[chart]; ok {
		return c.refused(fmt.Sprintf("the index has chart %q twice", cut(chart)))
	}
	c.charts[chart] = []version{}
	return nil
}

func (c *collection) add(chart string, entries []*entry) error {
	if c.entries += len(entries); c.entries > entriesLimit {
		return c.refused(fmt.Sprintf("it has more than %d entries for the charts that are used", entriesLimit))
	}
	for _, version := range versionsOf(entries) {
		if c.bytes += len(version.Version) + len(version.Digest) + len(version.URL); c.bytes > resultLimit {
			return c.refused("versions and addresses of the charts that are used have more than " + outbound.Bytes(resultLimit))
		}
		c.charts[chart] = append(c.charts[chart], version)
	}
	return nil
}
