package helmrepo

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const depthLimit = 100

var (
	errShape = errors.New("not an index")
	errLarge = errors.New("too large a value")
)

// tokens bounds the memory of a JSON decoder: an unfinished value may have one entry's bytes.
type tokens struct {
	from    io.Reader
	given   int64
	decoder *json.Decoder
}

func (t *tokens) Read(into []byte) (int, error) {
	if t.given-t.decoder.InputOffset() > entryLimit {
		return 0, errLarge
	}
	count, err := t.from.Read(into)
	t.given += int64(count)
	return count, err
}

func (c *collection) readJSON(from io.Reader) error {
	walk := &tokens{from: from}
	walk.decoder = json.NewDecoder(walk)
	found, chart := false, ""
	err := walk.fields(func(key string) error {
		if key != "entries" {
			return walk.skip()
		}
		found = true
		return walk.fields(func(name string) error {
			chart = name
			if !c.wanted(name) {
				return walk.skip()
			}
			return c.readList(name, walk.decoder)
		})
	})
	var refusal *fetch.RefusedError
	var unavailable *fetch.UnavailableError
	switch {
	case errors.As(err, &refusal) || errors.As(err, &unavailable):
		return err
	case errors.Is(err, errLarge):
		return c.tooLarge(chart)
	case err != nil || !found:
		return c.refused("it is not an index of a Helm repository")
	}
	return nil
}

// readList reads a chart's entries one by one; null means none.
func (c *collection) readList(chart string, decoder *json.Decoder) error {
	if err := c.begin(chart); err != nil {
		return err
	}
	switch open, err := decoder.Token(); {
	case err != nil:
		return err
	case open == nil:
		return nil
	case open != json.Delim('['):
		return errShape
	}
	for decoder.More() {
		var one *entry
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		if err := c.add(chart, []*entry{one}); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

// fields calls visit for each key of an object; visit reads the value.
func (t *tokens) fields(visit func(key string) error) error {
	open, err := t.decoder.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return errShape
	}
	for t.decoder.More() {
		key, err := t.decoder.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return errShape
		}
		if err := visit(name); err != nil {
			return err
		}
	}
	_, err = t.decoder.Token()
	return err
}

func (t *tokens) skip() error {
	for depth := 0; ; {
		token, err := t.decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		if depth > depthLimit {
			return errShape
		}
	}
}
