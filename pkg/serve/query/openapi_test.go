package query_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/trellis-addons/trellis/pkg/serve/query"
)

// document is the OpenAPI document as it is served.
func document(t testing.TB) map[string]any {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(query.Document))
	if err != nil {
		t.Fatalf("the OpenAPI document: %v", err)
	}
	return parsed.(map[string]any)
}

// at goes down a document; nil where there is nothing.
func at(value any, path ...string) any {
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// TestDocumentHasTheRoutes compares the document with the table that is served, both ways.
func TestDocumentHasTheRoutes(t *testing.T) {
	described := map[string][]string{}
	for path, operations := range at(document(t), "paths").(map[string]any) {
		for method, operation := range operations.(map[string]any) {
			var inQuery, inPath []string
			parameters, _ := at(operation, "parameters").([]any)
			for _, parameter := range parameters {
				name := at(parameter, "name").(string)
				switch at(parameter, "in") {
				case "query":
					inQuery = append(inQuery, name)
				case "path":
					inPath = append(inPath, "{"+name+"}")
				}
			}
			described[strings.ToUpper(method)+" "+path] = inQuery
			if braces := regexp.MustCompile(`\{[^}]*\}`).FindAllString(path, -1); !slices.Equal(braces, inPath) {
				t.Errorf("%s: the path has %q and its parameters are %q", path, braces, inPath)
			}
			_, open := at(operation, "responses", "401").(map[string]any)
			if open == (path == query.PathOpenAPI) {
				t.Errorf("%s: 401 is described: %t", path, open)
			}
		}
	}
	if diff := cmp.Diff(query.RouteTable(), described); diff != "" {
		t.Errorf("(-served +described):\n%s", diff)
	}
}

// conforms says what a response has that the document has not; every response of every test goes
// through it.
func conforms(method, path string, got response) error {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(query.Document))
	if err != nil {
		return err
	}
	route := query.RouteOf(strings.SplitN(path, "?", 2)[0])
	if route == "" {
		return nil // what is not served is not described
	}
	operations := at(parsed, "paths", route)
	lower := strings.ToLower(method)
	if lower == "head" {
		lower = "get"
	}
	if at(operations, lower) == nil && got.status == http.StatusMethodNotAllowed {
		return nil
	}
	described := at(operations, lower, "responses", fmt.Sprint(got.status))
	if described == nil {
		return fmt.Errorf("status %d is not described", got.status)
	}
	schema := at(described, "content", "application/json", "schema")
	if schema == nil || method == http.MethodHead || got.header.Get("Content-Encoding") != "" {
		if schema == nil && len(got.body) > 0 {
			return fmt.Errorf("status %d has a body that is not described", got.status)
		}
		return nil
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("content type %q is not described", kind)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", parsed); err != nil {
		return err
	}
	reference, ok := at(schema, "$ref").(string)
	if !ok {
		return nil
	}
	compiled, err := compiler.Compile("openapi.json" + reference)
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.body))
	if err != nil {
		return err
	}
	return compiled.Validate(body)
}

func TestConformsCatches(t *testing.T) {
	for why, got := range map[string]response{
		"a field too many":     {status: 200, body: []byte(`{"kkpVersion":"","k8sVersion":"","addons":[],"more":1}`)},
		"a field too few":      {status: 200, body: []byte(`{"kkpVersion":"","k8sVersion":""}`)},
		"a nested field":       {status: 200, body: []byte(`{"kkpVersion":"","k8sVersion":"","addons":[{"name":"web","versions":[{}]}]}`)},
		"a status too many":    {status: 418, body: []byte(`{}`)},
		"another content type": {status: 404, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(`{"reason":"a","message":"b"}`)},
	} {
		if got.header == nil {
			got.header = http.Header{"Content-Type": {"application/json"}}
		}
		if conforms(http.MethodGet, "/api/v1/addons?k8sVersion=1.36.3", got) == nil {
			t.Errorf("%s conforms", why)
		}
	}
}

func TestDocumentIsServedToEverybody(t *testing.T) {
	w := newWorld(t)
	w.start()
	got := w.get(query.PathOpenAPI, "")
	got.expectStatus(t, "without a token", http.StatusOK)
	if !bytes.Equal(got.body, query.Document) {
		t.Error("another document is served")
	}
	if w.counted.calls() != 0 {
		t.Error("the document costs calls")
	}
}
