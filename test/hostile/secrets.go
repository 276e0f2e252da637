package hostile

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
)

// secretModes lie only about Secrets, such as those that the platform copies to user clusters.
func secretModes() []Mode {
	return []Mode{
		{
			Name: "huge-secrets", About: "gives each Secret annotations of 30 MB", Dose: sized(30 << 20),
			answer: aboutSecrets(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":%q,"annotations":{"a":"`, path.Base(x.r.URL.Path))
					repeat(w, "abababab", x.dose.Size)
					fmt.Fprint(w, `"}}}`)
				})
			}),
		},
		{
			Name: "no-secrets", About: "answers for each Secret with a Namespace, and for their list with a text", answer: func(x *exchange) bool {
				if !isAboutSecrets(x.r.URL.Path) {
					return false
				}
				if x.asked == forList {
					return x.text(http.StatusOK, `"none"`)
				}
				return x.text(http.StatusOK, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":[1]},"data":7}`)
			},
		},
		{
			Name: "losing-secrets", About: "says yes to each Secret that is written, with a UID, and has none",
			answer: aboutSecrets(func(x *exchange) bool {
				if x.asked != forWrite {
					return x.text(http.StatusNotFound, statusHead+`"reason":"NotFound","code":404}`)
				}
				text, _ := io.ReadAll(io.LimitReader(x.r.Body, 16<<20))
				object := map[string]any{}
				if json.Unmarshal(text, &object) != nil { // a deletion
					object = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}
				}
				metadataOf(object)["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", rand.IntN(1_000_000))
				answer, err := json.Marshal(object)
				return err == nil && x.text(http.StatusOK, "%s", answer)
			}),
		},
		{
			Name: "quoting-secrets", About: "refuses each Secret that is written, and quotes what it says",
			answer: aboutSecrets(func(x *exchange) bool {
				text, _ := io.ReadAll(io.LimitReader(x.r.Body, 1<<20))
				quoted, err := json.Marshal(string(text))
				return err == nil && x.text(http.StatusUnprocessableEntity, statusHead+`"reason":"Invalid","code":422,"message":%s}`, quoted)
			}),
		},
	}
}

func isAboutSecrets(path string) bool { return strings.Contains(path+"/", "/secrets/") }

// aboutSecrets answers all requests for single Secrets in one way.
func aboutSecrets(do func(*exchange) bool) func(*exchange) bool {
	return func(x *exchange) bool { return isAboutSecrets(x.r.URL.Path) && x.asked != forList && do(x) }
}
