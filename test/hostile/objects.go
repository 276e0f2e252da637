package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// statusHead is the beginning of a refusal.
const statusHead = `{"kind":"Status","apiVersion":"v1","status":"Failure",`

// objectModes lie about single objects that are read.
func objectModes() []Mode {
	return []Mode{
		{
			Name: "many-conditions", About: "gives each object a million conditions", Dose: sized(1_000_000),
			change: onObjects(func(dose Dose, object map[string]any) {
				object["status"] = map[string]any{"conditions": json.RawMessage("[" + strings.Repeat(`{"type":"x"},`, dose.Size) + "{}]")}
			}),
		},
		{
			Name: "many-owners", About: "gives each object a hundred thousand owners", Dose: sized(100_000),
			change: onObjects(func(dose Dose, object map[string]any) {
				metadataOf(object)["ownerReferences"] = json.RawMessage("[" + strings.Repeat(`{"uid":"a","kind":"X"},`, dose.Size) + `{"uid":"b"}]`)
			}),
		},
		{
			Name: "many-finalizers", About: "gives each object a hundred thousand finalizers", Dose: sized(100_000),
			change: onObjects(func(dose Dose, object map[string]any) {
				metadataOf(object)["finalizers"] = json.RawMessage("[" + strings.Repeat(`"x/y",`, dose.Size) + `"x/z"]`)
			}),
		},
		{
			Name: "other-object", About: "answers with another object than the one that was asked for",
			change: onObjects(func(_ Dose, object map[string]any) {
				metadataOf(object)["name"], metadataOf(object)["namespace"] = "of-somebody-else", "kube-system"
			}),
		},
		{
			Name: "other-identity", About: "has another UID for kube-system with each answer",
			answer: func(x *exchange) bool {
				if x.r.URL.Path != "/api/v1/namespaces/kube-system" {
					return false
				}
				const namespace = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"00000000-0000-4000-8000-%012d"}}`
				return x.text(http.StatusOK, namespace, x.server.count("identities"))
			},
		},
	}
}

// writeModes lie in answers to writes.
func writeModes() []Mode {
	return []Mode{
		{
			Name: "lying-fields", About: "says that we own megabytes of fields in what we applied", Dose: sized(5_500_000),
			change: onWrites(func(dose Dose, object map[string]any) {
				managed, _ := metadataOf(object)["managedFields"].([]any)
				for _, entry := range managed {
					if fields, ok := entry.(map[string]any); ok {
						fields["fieldsV1"] = map[string]any{"f:data": map[string]any{"f:" + noise(dose.Size): map[string]any{}}}
					}
				}
			}),
		},
		{
			Name: "lying-uid", About: "gives what we applied a UID of megabytes", Dose: sized(5_500_000),
			change: onWrites(func(dose Dose, object map[string]any) {
				metadataOf(object)["uid"] = noise(dose.Size)
			}),
		},
		{
			Name: "changing-uid", About: "gives what we applied another UID with each answer",
			change: onWrites(func(_ Dose, object map[string]any) {
				metadataOf(object)["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", rand.IntN(1_000_000))
			}),
		},
		{
			Name: "forgets-fields", About: "says that we own no field of what we applied",
			change: onWrites(func(_ Dose, object map[string]any) {
				delete(metadataOf(object), "managedFields")
			}),
		},
		{
			Name: "long-refusal", About: "refuses with a message of 30 MB", Dose: sized(30 << 20),
			answer: about(func(x *exchange) bool {
				return x.json(http.StatusBadRequest, func(w io.Writer) {
					fmt.Fprint(w, statusHead+`"reason":"BadRequest","code":400,"message":"`)
					repeat(w, "abababab", x.dose.Size)
					fmt.Fprint(w, `"}`)
				})
			}, forWrite),
		},
		{
			Name: "many-conflicts", About: "names thousands of fields that conflict", Dose: sized(100_000),
			answer: about(func(x *exchange) bool {
				return x.json(http.StatusConflict, func(w io.Writer) {
					fmt.Fprint(w, statusHead+`"reason":"Conflict","code":409,"message":"x","details":{"causes":[`)
					enumerate(w, x.dose.Size, func(i int) string {
						return fmt.Sprintf(`{"reason":"FieldManagerConflict","field":".f%d"}`, i)
					})
					fmt.Fprint(w, `]}}`)
				})
			}, forWrite),
		},
		{
			Name: "refuses-writes", About: "refuses every write as an internal error", answer: about(func(x *exchange) bool {
				return x.text(http.StatusInternalServerError, statusHead+`"reason":"InternalError","code":500,"message":"no"}`)
			}, forWrite),
		},
		{
			Name: "forgets-writes", About: "says yes to every write and does nothing",
			answer: about(func(x *exchange) bool {
				text, err := io.ReadAll(io.LimitReader(x.r.Body, 16<<20))
				if err != nil || !json.Valid(text) {
					text = []byte(`{}`)
				}
				x.w.Header().Set("Content-Type", "application/json")
				_, _ = x.w.Write(text)
				return true
			}, forWrite),
		},
	}
}

// onObjects changes single objects in true answers to reads, and the items of lists.
func onObjects(lie func(Dose, map[string]any)) func(Dose, asked, []byte) []byte {
	return func(dose Dose, about asked, body []byte) []byte {
		if about != forObject {
			return nil
		}
		return rewritten(dose, body, lie)
	}
}

// onWrites changes the object in true answers to writes.
func onWrites(lie func(Dose, map[string]any)) func(Dose, asked, []byte) []byte {
	return func(dose Dose, about asked, body []byte) []byte {
		if about != forWrite {
			return nil
		}
		return rewritten(dose, body, lie)
	}
}

func rewritten(dose Dose, body []byte, lie func(Dose, map[string]any)) []byte {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil || object["metadata"] == nil {
		return nil
	}
	lie(dose, object)
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return text
}

func metadataOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

// noise is data that can't be compressed well.
func noise(size int) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-"
	random := rand.New(rand.NewPCG(3, uint64(size)))
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[random.Uint32()%uint32(len(letters))]
	}
	return string(text)
}
