package world

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Stale makes lists of one kind look like those of an API server with a stale cache: edited, without later events.
// Single objects, and consistent lists, are read past that.
type Stale struct {
	// Next answers the requests.
	Next http.RoundTripper
	// Plural is the resource whose lists are edited.
	Plural string
	Edit   func(items []any) []any
}

// RoundTrip implements http.RoundTripper.
func (s Stale) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, "/"+s.Plural) {
		return s.Next.RoundTrip(request)
	}
	if query.Get("watch") == "" && !query.Has("resourceVersion") { // without a resourceVersion the list must be current
		return s.Next.RoundTrip(request)
	}
	if query.Get("watch") != "" {
		if query.Get("sendInitialEvents") != "" { // a client that can't get a list by a watch lists
			return Answered(request, http.StatusBadRequest, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":400}`)), nil
		}
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", "application/json") // the answer is edited
	response, err := s.Next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	var list map[string]any
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	items, _ := list["items"].([]any)
	list["items"] = s.Edit(items)
	content, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return Answered(request, http.StatusOK, content), nil
}

// Answered is an answer with a JSON body.
func Answered(to *http.Request, code int, content []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Request: to, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(content)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(content)),
	}
}
