package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Limits of a watch: of one event, and of all until the watch ends. Metadata are requested; managed fields are most
// of them.
const (
	eventBytes  = 2 * mebi
	watchBytes  = 256 * mebi
	watchEvents = 50_000
)

var eventLimits = limits{bytes: eventBytes, values: 100_000, depth: 128, text: mebi, name: 64 * kibi, items: 50_000}

// metadataType requests the metadata of objects only.
const metadataType = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

// Change is an event of a watch, with names only: callers read the change with another call.
type Change struct {
	// Name of the object; empty for a bookmark.
	Name            string
	ResourceVersion string
}

// StaleError says that a watch can't continue from its resourceVersion: list again.
type StaleError struct{}

func (e *StaleError) Error() string {
	return "the API server no longer has the changes since then"
}

// watchKey marks the context of the one call whose answer is a stream.
type watchKey struct{}

// Watch watches the objects below a path, "/apis/<group>/<version>/namespaces/<name>/<kind>", from a resourceVersion,
// until the server ends it after most, or the context ends. It then returns nil. It calls changed for each event,
// which must not block. The stream is bounded by event and in total; it uses no memory of the budget.
func (c *Client) Watch(ctx context.Context, path, from string, most time.Duration, changed func(Change)) error {
	target, _, err := rest.DefaultServerURL(c.Config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return errors.New("the API server's address can't be read")
	}
	target = target.JoinPath(path)
	target.RawQuery = url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {from},
		"timeoutSeconds": {strconv.Itoa(int(most / time.Second))},
	}.Encode()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, watchKey{}, true), most+requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("starting a watch: %w", err)
	}
	request.Header.Set("Accept", metadataType)
	response, err := (&http.Client{Transport: c, CheckRedirect: noRedirect}).Do(request)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusGone:
		return &StaleError{}
	case response.StatusCode != http.StatusOK:
		return &WatchRefusedError{Status: response.StatusCode}
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != jsonType {
		return c.refuse(request, "the changes are not JSON")
	}
	return c.follow(request, response.Body, changed)
}

// WatchRefusedError says that an API server did not answer with a watch.
type WatchRefusedError struct{ Status int }

func (e *WatchRefusedError) Error() string {
	return fmt.Sprintf("the API server answers a watch with HTTP status %d", e.Status)
}

// follow reads events until the stream ends: one line of JSON each.
func (c *Client) follow(request *http.Request, body io.Reader, changed func(Change)) error {
	reader := bufio.NewReader(body)
	var all int64
	for events := 0; ; events++ {
		line, err := c.line(reader)
		if all += int64(len(line)); all > watchBytes || events > watchEvents {
			return c.refuse(request, "a change of the watch has no end")
		}
		select {
		case <-request.Context().Done():
			return nil
		default:
		}
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, errLongLine):
			return c.refuse(request, fmt.Sprintf("a change has more than %d KiB, or all answers together are too large", eventBytes>>10))
		case err != nil: // the connection broke
			return fmt.Errorf("reading changes: %w", err)
		}
		found, err := eventOf(line)
		if err != nil {
			if _, isStale := errors.AsType[*StaleError](err); isStale {
				return err
			}
			return c.refuse(request, err.Error())
		}
		changed(found)
	}
}

var errLongLine = errors.New("the line is too long")

// line reads to the end of a line.
func (c *Client) line(reader *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := reader.ReadSlice('\n')
		if c.traffic.read(len(part), time.Now()) || len(whole)+len(part) > eventBytes {
			return nil, errLongLine
		}
		whole = append(whole, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}

// eventOf reads one event. Errors describe its problem.
func eventOf(line []byte) (Change, error) {
	check := &scanner{limits: eventLimits}
	if wrong := check.feed(line); wrong != "" {
		return Change{}, errors.New(wrong)
	}
	if wrong := check.end(); wrong != "" {
		return Change{}, errors.New(wrong)
	}
	var event struct {
		Type   string
		Object struct {
			Metadata struct{ Name, ResourceVersion string }
			Code     int
		}
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Change{}, errors.New("a change has an unexpected form")
	}
	version := event.Object.Metadata.ResourceVersion
	switch {
	case event.Type == "ERROR" && event.Object.Code == http.StatusGone:
		return Change{}, &StaleError{}
	case event.Type == "ERROR":
		return Change{}, &WatchRefusedError{Status: event.Object.Code}
	case len(version) > 64 || len(event.Object.Metadata.Name) > 253:
		return Change{}, errors.New("a change has a name that is not valid for an object")
	case event.Type == "BOOKMARK":
		return Change{ResourceVersion: version}, nil
	}
	return Change{Name: event.Object.Metadata.Name, ResourceVersion: version}, nil
}

// isWatched says whether a request comes from Watch.
func isWatched(request *http.Request) bool {
	watched, _ := request.Context().Value(watchKey{}).(bool)
	return watched
}

// stream is the body of a watch. Closing it ends its context.
type stream struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (s stream) Close() error {
	defer s.cancel(nil)
	return s.ReadCloser.Close()
}
