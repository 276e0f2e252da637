package child

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// frameOf is a frame as bytes; its length may be wrong.
func frameOf(kind kind, length uint32, payload string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(kind)}, length), payload...)
}

func frame(kind kind, payload string) []byte { return frameOf(kind, uint32(len(payload)), payload) }

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

const objectJSON = `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`

func hookJSON(events, policies string) string {
	list := func(words string) string {
		if words == "" {
			return "[]"
		}
		return `["` + strings.ReplaceAll(words, ",", `","`) + `"]`
	}
	return `{"Path":"a","Events":` + list(events) + `,"DeletePolicies":` + list(policies) + `,"Object":` + objectJSON + `}`
}

// TestHostileAnswers (AC06): The answer of a renderer's process is read within the limits of values. It includes
// answers that only a compromised child sends.
func TestHostileAnswers(t *testing.T) {
	object, chart, end := frame(kindObject, objectJSON), frame(kindChart, "{}"), frame(kindEnd, "")
	for why, answer := range map[string][]byte{
		"an unknown kind":         frame('Z', ""),
		"a request":               frame(kindRequest, "{}"),
		"a length beyond all":     frameOf(kindObject, 0xFFFFFFFF, ""),
		"an object too large":     frameOf(kindObject, manifest.MaxObjectBytes+1, ""),
		"nothing":                 end,
		"an end with a payload":   frame(kindEnd, "x"),
		"no object":               join(frame(kindObject, `{"a":1}`), end),
		"a list as an object":     join(frame(kindObject, `[]`), end),
		"no JSON":                 join(frame(kindObject, `{"apiVersion"`), end),
		"too deep":                join(frame(kindObject, strings.Repeat(`{"a":`, 300)+"1"+strings.Repeat("}", 300)), end),
		"too many values":         join(frame(kindObject, `{"a":[`+strings.Repeat("1,", 500_000)+`1]}`), frame(kindObject, `{"a":[`+strings.Repeat("1,", 500_000)+`1]}`), end),
		"objects and values":      join(object, frame(kindValues, "{}"), end),
		"values twice":            join(frame(kindValues, "{}"), frame(kindValues, "{}"), end),
		"a chart twice":           join(object, frame(kindChart, "{}"), frame(kindChart, "{}"), end),
		"a manifest alone":        join(object, frame(kindManifest, "x"), end),
		"a manifest twice":        join(object, frame(kindChart, "{}"), frame(kindManifest, "x"), frame(kindManifest, "x"), end),
		"a hook without a chart":  join(object, frame(kindHook, hookJSON("pre-install", "")), end),
		"a hook of no event":      join(object, chart, frame(kindHook, hookJSON("", "")), end),
		"a hook of a made-up one": join(object, chart, frame(kindHook, hookJSON("pre-install,whenever", "")), end),
		"an event twice":          join(object, chart, frame(kindHook, hookJSON("pre-install,pre-install", "")), end),
		"a policy that is none":   join(object, chart, frame(kindHook, hookJSON("test", "never")), end),
		"a hook without object":   join(object, chart, frame(kindHook, `{"Path":"a","Events":["test"]}`), end),
		"hooks inside of a chart": join(object, frame(kindChart, `{"Hooks":[`+hookJSON("test", "")+`]}`), end),
		"a text inside of one":    join(object, frame(kindChart, `{"Manifest":"x"}`), end),
		"a hook too large":        join(object, chart, frameOf(kindHook, 2*manifest.MaxObjectBytes, "")),
		"more hooks than taken":   join(object, chart, bytes.Repeat(frame(kindHook, hookJSON("test", "")), manifest.MaxObjects), end),
		"a failure that is none":  frame(kindFailure, "["),
		"a failure without depth": frame(kindFailure, strings.Repeat("[", 60_000)),
		"a second first word":     frame(kindReady, "{}"),
		"more objects than taken": join(bytes.Repeat(object, manifest.MaxObjects+1), end),
		"more bytes in all":       bytes.Repeat(frame(kindObject, `{"apiVersion":"v1","kind":"A","metadata":{"name":"`+strings.Repeat("a", 1<<20-100)+`"}}`), 40),
	} {
		t.Run(why, func(t *testing.T) {
			var refused *render.ProtocolError
			if _, err := readAnswer(bytes.NewReader(answer)); !errors.As(err, &refused) {
				t.Errorf("got %v, want ProtocolError", err)
			}
		})
	}
	for why, answer := range map[string][]byte{
		"cut in a header": frame(kindObject, objectJSON)[:3], "cut in a payload": frame(kindObject, objectJSON)[:20],
		"a length without bytes": frameOf(kindManifest, manifest.MaxBytes, ""),
	} {
		if _, err := readAnswer(bytes.NewReader(answer)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %v, want an unexpected end", why, err)
		}
	}
}

// TestLengthsAreNotBelieved: memory is allocated for bytes that arrived, not for those that a header announces.
func TestLengthsAreNotBelieved(t *testing.T) {
	promise := frameOf(kindManifest, manifest.MaxBytes, "few")
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = readAnswer(bytes.NewReader(promise))
		}
	})
	if most := int64(1 << 20); result.AllocedBytesPerOp() > most {
		t.Errorf("%d bytes are allocated for 3 that came", result.AllocedBytesPerOp())
	}
}

// TestDataCrossesWhole: every field of a sent value arrives, also fields that are added in future.
func TestDataCrossesWhole(t *testing.T) {
	var sent request
	fill(reflect.ValueOf(&sent).Elem(), 1)
	sent.Input.Found = nil // these and the content have separate frames
	encoded, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var received request
	if err := json.Unmarshal(encoded, &received); err != nil {
		t.Fatal(err)
	}
	versions := cmp.Comparer(func(a, b *semver.Version) bool { return a.Equal(b) })
	if diff := cmp.Diff(sent, received, versions, cmpopts.IgnoreUnexported(templatedata.Data{})); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
	if sent.Input.Data.Cluster.Name == "" || len(sent.Input.Data.Cluster.Features) == 0 || sent.Input.Data.Credentials.AWS.AccessKeyID == "" {
		t.Fatal("the filling has not filled")
	}
}

// fill gives every field a value other than zero.
func fill(value reflect.Value, seed int) {
	switch {
	case value.Type() == reflect.TypeFor[*semver.Version]():
		value.Set(reflect.ValueOf(semver.MustParse("1.36.3")))
		return
	case value.Type() == reflect.TypeFor[map[string]any]():
		value.Set(reflect.ValueOf(map[string]any{"whole": int64(7), "part": 1.5, "text": "x", "null": nil, "list": []any{true, map[string]any{"a": int64(1)}}}))
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Field(i).CanSet() { // unexported fields belong to the sender
				fill(value.Field(i), seed+i)
			}
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), seed)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		fill(value.Index(0), seed)
		fill(value.Index(1), seed+1)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key, seed)
		fill(element, seed)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.String:
		value.SetString(strings.Repeat("x", seed%9+1))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(int64(seed))
	}
}

// FuzzAnswer: for any answer of a child, the parent returns a result within the limits or an error of a known type.
func FuzzAnswer(f *testing.F) {
	object, end := frame(kindObject, objectJSON), frame(kindEnd, "")
	f.Add(join(object, frame(kindChart, `{"Name":"a","Config":{"b":1}}`), frame(kindManifest, "---\n"), end))
	f.Add(join(frame(kindValues, `{"a":[1,{"b":null}]}`), end))
	f.Add(frame(kindFailure, `{"Template":{"File":"a","Line":3,"Problem":"b"}}`))
	f.Add(frame(kindFailure, `{"Limit":{"What":"a"},"Other":"x"}`))
	f.Add(join(frame(kindChart, "{}"), frame(kindHook, hookJSON("pre-install,test", "hook-failed")), frame(kindEnd, "")))
	f.Add(frameOf(kindObject, 1<<31, "x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := readAnswer(bytes.NewReader(data))
		var refused *render.ProtocolError
		switch {
		case err == nil && read.failed != nil:
		case err == nil:
			if read.values == nil && len(read.result.Objects) == 0 {
				t.Fatal("an answer with nothing in it")
			}
			for _, object := range read.result.Objects {
				if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
					t.Fatalf("an object without identity: %v", object.Object)
				}
			}
		case !errors.As(err, &refused) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
			t.Fatalf("%v is of another type", err)
		}
	})
}

// FuzzRequest: the child's side of the pipe, which also accepts or refuses paths.
func FuzzRequest(f *testing.F) {
	var sent bytes.Buffer
	content := fstest.MapFS{"a.yaml": {Data: []byte("x")}, "b/c": {Data: nil}}
	input := render.Input{Addon: "a", Content: content, Data: templatedata.Data{}}
	if err := askObjects("helm", input, AllFiles)(bufio.NewWriter(&sent)); err != nil {
		f.Fatal(err)
	}
	f.Add(sent.Bytes())
	f.Add(join(frame(kindRequest, "{}")))
	f.Add(join(frame(kindRequest, `{"Method":"m"}`), frame(kindFile, "\x00\x04a/../x"), frame(kindOmitted, "/etc"), frame(kindEnd, "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := receive(bytes.NewReader(data))
		var refused *render.ProtocolError
		if err != nil && !errors.As(err, &refused) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Fatalf("%v is of another type", err)
		}
	})
}

// TestReceivedContent: received content behaves like other file systems.
func TestReceivedContent(t *testing.T) {
	content := fstest.MapFS{
		"a.yaml": {Data: []byte("x")}, "b/c/d.txt": {Data: []byte("longer")}, "b/e": {Data: nil},
	}
	var sent bytes.Buffer
	writer := bufio.NewWriter(&sent)
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "eA=="}}}
	if err := sendFound(writer, []*unstructured.Unstructured{secret}); err != nil {
		t.Fatal(err)
	}
	if err := sendContent(writer, content, AllFiles); err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	received, found, err := receiveContent(&frames{reader: &sent, limits: requestLimits, left: maxRequestBytes})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*unstructured.Unstructured{secret}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	large := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "a": strings.Repeat("a", render.MaxFoundObject)}}
	if _, refused := errors.AsType[*render.LimitError](sendFound(writer, []*unstructured.Unstructured{large})); !refused {
		t.Error("an object for lookup of any size is sent")
	}
	if err := fstest.TestFS(received, "a.yaml", "b/c/d.txt", "b/e"); err != nil {
		t.Error(err)
	}
	for why, add := range map[string][]string{
		"outside": {"../x"}, "absolute": {"/x"}, "twice": {"a", "a"}, "a file below a file": {"a", "a/b"}, "the top": {"."},
	} {
		memory := newMemory()
		var err error
		for _, path := range add {
			err = errors.Join(err, memory.add(path, nil, false))
		}
		if err == nil {
			t.Errorf("%s is taken", why)
		}
	}
}
