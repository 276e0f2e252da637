package helmrepo

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Limits on what an index says about charts that somebody wants. An entry is decoded at once, and what is kept stays in
// memory; chart and entries bound the time that it takes. Large charts have a few thousand entries, of a few KiB each.
const (
	entryLimit   = 512 << 10
	chartLimit   = 16 << 20
	keptLimit    = 8 << 20
	entriesLimit = 50_000
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

type collection struct {
	subject string
	wanted  func(chart string) bool
	charts  map[string][]version
	// entries and bytes that they have together.
	entries, kept int
}

func (c *collection) refused(rule string) error {
	return &fetch.RefusedError{Subject: c.subject, Rule: rule}
}

func (c *collection) tooLarge(chart string) error {
	return c.refused(fmt.Sprintf("it has an entry of more than %s for chart %q", outbound.Bytes(entryLimit), cut(chart)))
}

// begin notes that the index has a chart. The same chart twice would leave the choice to luck.
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
		if c.kept += len(version.Version) + len(version.Digest) + len(version.URL); c.kept > keptLimit {
			return c.refused("versions and addresses of the charts that are used have more than " + outbound.Bytes(keptLimit))
		}
		c.charts[chart] = append(c.charts[chart], version)
	}
	return nil
}
