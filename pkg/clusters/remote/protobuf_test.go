package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// wired is an object as an API server sends it.
func wired(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var into bytes.Buffer
	scheme := metainternalscheme.Scheme
	if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &into); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

// page is a list of so many objects with all that metadata can have.
func page(items int) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: "more"},
	}
	now := metav1.NewTime(time.Unix(1700000000, 0))
	for i := range items {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("name-", i), Namespace: "ns", UID: "u", ResourceVersion: "12", Generation: 3, CreationTimestamp: now,
			DeletionTimestamp: &now, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "K", Name: "n"}}, Finalizers: []string{"f"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "m", Operation: "Apply", Time: &now, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:x":{}` + strings.Repeat(`,"f:metadata":{"f:labels":{"f:a":{}}}`, 20) + `}`),
			}},
		}})
	}
	return list
}

func scanWire(most limits, data []byte, piece int) string {
	s := newWireScanner(most)
	for rest := data; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
		if wrong := s.feed(rest[:min(piece, len(rest))]); wrong != "" {
			return wrong
		}
	}
	return s.end()
}

// emptyItems is what costs a decoder most: objects of two bytes.
func emptyItems(count int) []byte {
	return enveloped("PartialObjectMetadataList", bytes.Repeat([]byte{0x12, 0}, count))
}

func enveloped(kind string, raw []byte) []byte {
	about := append([]byte{0x12, byte(len(kind))}, kind...)
	data := append([]byte(magic), 0x0a, byte(len(about)))
	data = append(data, about...)
	data = binary.AppendUvarint(append(data, 0x12), uint64(len(raw)))
	return append(data, raw...)
}

func TestWireScannerEndsAtEachLimit(t *testing.T) {
	narrow := limits{bytes: mebi, values: 200, depth: 8, text: 10_000, name: 8, items: 40}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Message: "no", Code: 409,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: ".a"}, {Field: ".b"}}},
	}
	whole := wired(t, page(3))
	twice := append(enveloped("Status", nil), enveloped("PartialObjectMetadataList", nil)[len(magic):]...)
	for _, test := range []struct {
		why  string
		data []byte
		want string
	}{
		{"a page", whole, ""},
		{"an empty page", wired(t, page(0)), ""},
		{"an object", wired(t, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata"}, ObjectMeta: page(1).Items[0].ObjectMeta}), ""},
		{"a failure", wired(t, status), ""},
		{"elements that are empty cost most", emptyItems(41), "the answer has a list or an object of more than 40"},
		{"values in all", wired(t, page(20)), "the answer has more than 200 values"},
		{"a text", enveloped("Status", append(binary.AppendUvarint([]byte{0x1a}, 10_001), make([]byte, 10_001)...)), "the answer has a text of more than 10000 bytes"},
		{"what ends early", whole[:len(whole)-3], notProtobuf},
		{"another kind", enveloped("Secret", nil), "the answer is of a kind that was not requested"},
		{"no kind before the object", append([]byte(magic), 0x12, 0), "the answer is of a kind that was not requested"},
		{"two objects, looked at as the first", twice, notProtobuf},
		{"a field longer than what it is in", enveloped("Status", []byte{0x2a, 5, 0x22, 9, 0, 0, 0}), notProtobuf},
		{"a group", enveloped("Status", []byte{0x0b}), notProtobuf},
		{"a number without end", append([]byte(magic), bytes.Repeat([]byte{0xff}, 20)...), notProtobuf},
		{"JSON", []byte(`{"kind":"Status"}`), notProtobuf},
	} {
		t.Run(test.why, func(t *testing.T) {
			for _, piece := range []int{1, 7, 100_000} {
				if diff := cmp.Diff(test.want, scanWire(narrow, test.data, piece)); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
				}
			}
		})
	}
}

// FuzzWireScannerBoundsDecoding: what passes and decodes has no more items than were counted.
func FuzzWireScannerBoundsDecoding(f *testing.F) {
	f.Add(wired(f, page(2)), 3)
	f.Add(emptyItems(5), 1)
	f.Add(enveloped("Status", []byte{0x2a, 2, 0x22, 0}), 1)
	scheme := metainternalscheme.Scheme
	decoder := protobuf.NewSerializer(scheme, scheme)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		s := newWireScanner(wide)
		wrong := ""
		for rest := data; len(rest) > 0 && wrong == ""; {
			piece := min(1+max(0, size)%64, len(rest))
			wrong = s.feed(rest[:piece])
			rest = rest[piece:]
		}
		if wrong+s.end() != "" {
			return
		}
		object, _, err := decoder.Decode(data, nil, nil)
		if list, ok := object.(*metav1.PartialObjectMetadataList); ok && err == nil && len(list.Items) != s.items {
			t.Errorf("%x: counted %d items, decoded %d", data, s.items, len(list.Items))
		}
	})
}

func BenchmarkScanners(b *testing.B) {
	list := page(500)
	text, err := runtime.Encode(metainternalscheme.Codecs.LegacyCodec(metav1.SchemeGroupVersion), list)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if wrong := scan(listLimits, string(text), 32*kibi); wrong != "" {
				b.Fatal(wrong)
			}
		}
	})
	wire := wired(b, list)
	b.Run("protobuf", func(b *testing.B) {
		b.SetBytes(int64(len(wire)))
		for b.Loop() {
			if wrong := scanWire(listLimits, wire, 32*kibi); wrong != "" {
				b.Fatal(wrong)
			}
		}
	})
}
