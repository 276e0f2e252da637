package hostile

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// transportModes lie below the level of objects: in time, in headers, in bytes.
func transportModes() []Mode {
	return []Mode{
		{Name: "slow", About: "answers truly, each time just before the client gives up", Dose: slow(29 * time.Second), answer: late},
		{Name: "drip", About: "sends a byte a second of every answer", Dose: slow(29 * time.Second), answer: func(x *exchange) bool {
			return x.drip(`{}`)
		}},
		{Name: "silent", About: "takes requests and never answers", Dose: slow(time.Minute), answer: func(x *exchange) bool {
			x.server.count("silences")
			x.pause(x.dose.Wait)
			panic(http.ErrAbortHandler)
		}},
		{Name: "endless-body", About: "answers with white space without end", Dose: sized(4 << 30), answer: func(x *exchange) bool {
			return x.json(http.StatusOK, func(w io.Writer) { repeat(w, " ", x.dose.Size) })
		}},
		{Name: "cut", About: "cuts every answer in the middle", answer: func(x *exchange) bool {
			x.server.count("cuts")
			x.w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(x.w, `{"kind":"`)
			_ = http.NewResponseController(x.w).Flush()
			panic(http.ErrAbortHandler)
		}},
		{Name: "many-headers", About: "answers with headers of megabytes", Dose: sized(8 << 20), answer: func(x *exchange) bool {
			for i := range x.dose.Size >> 14 {
				x.w.Header().Set(fmt.Sprint("X-Flood-", i), strings.Repeat("x", 16<<10))
			}
			return x.text(http.StatusOK, `{}`)
		}},
		{Name: "redirects", About: "sends every request to another address of the platform's network", answer: func(x *exchange) bool {
			http.Redirect(x.w, x.r, "http://127.0.0.1:9/latest/meta-data", http.StatusTemporaryRedirect)
			return true
		}},
		{Name: "later", About: "asks to come back in an hour", Dose: sized(3600), answer: func(x *exchange) bool {
			x.w.Header().Set("Retry-After", fmt.Sprint(x.dose.Size))
			x.w.WriteHeader(http.StatusTooManyRequests)
			return true
		}},
		{Name: "fails", About: "fails every request", answer: func(x *exchange) bool {
			http.Error(x.w, "no", http.StatusInternalServerError)
			return true
		}},
		{Name: "flaky", About: "fails one request in ten", Dose: sized(10), answer: func(x *exchange) bool {
			if x.server.count("requests seen")%x.dose.Size != 0 {
				return false
			}
			http.Error(x.w, "no", http.StatusInternalServerError)
			return true
		}},
		{Name: "forbids", About: "forbids everything, with the name of somebody else", answer: func(x *exchange) bool {
			return x.text(http.StatusForbidden, statusHead+`"reason":"Forbidden","code":403,"message":"ANSWER-OF-AN-INNER-SERVICE"}`)
		}},
		{Name: "absent", About: "says that nothing exists", answer: func(x *exchange) bool {
			return x.text(http.StatusNotFound, statusHead+`"reason":"NotFound","code":404,"message":"no"}`)
		}},
		{Name: "other-format", About: "answers in a format that was not asked for", Dose: sized(8 << 20), answer: func(x *exchange) bool {
			x.w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = io.WriteString(x.w, "k8s\x00")
			repeat(stopping{x.r.Context(), x.w}, "\x0a\x00", x.dose.Size)
			return true
		}},
		{Name: "no-json", About: "answers with a page for people", answer: func(x *exchange) bool {
			return x.json(http.StatusOK, func(w io.Writer) { fmt.Fprint(w, "<html>Sign in</html>") })
		}},
		{Name: "pings", About: "answers truly, and floods the connection with HTTP/2 pings", floods: true},
	}
}

// ModesOfSeeds are the modes of a seed's API server towards the master, in addition to Modes.
func ModesOfSeeds() []Mode {
	table := func(x *exchange) bool {
		return strings.HasSuffix(x.r.URL.Path, "/addoninstallations") && x.asked == forList
	}
	return []Mode{
		{
			Name: "seed-flood", About: "answers the question for installations with gigabytes", Dose: sized(3 << 30),
			answer: func(x *exchange) bool {
				return table(x) && x.json(http.StatusOK, func(w io.Writer) { repeat(w, " ", x.dose.Size) })
			},
		},
		{
			Name: "seed-usage", About: "has a hundred thousand installations of made-up add-ons", Dose: sized(100_000),
			answer: func(x *exchange) bool {
				return table(x) && x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprint(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},`,
						`"columnDefinitions":[{"name":"Addon"},{"name":"Version"}],"rows":[`)
					enumerate(w, x.dose.Size, func(i int) string {
						return fmt.Sprintf(`{"cells":["made-up-%d","1.0.%d"]}`, i, i)
					})
					fmt.Fprint(w, `]}`)
				})
			},
		},
		{Name: "seed-echo", About: "refuses writes with the text of what was written", answer: about(func(x *exchange) bool {
			text, _ := io.ReadAll(io.LimitReader(x.r.Body, 1<<20))
			return x.text(http.StatusForbidden, statusHead+`"reason":"Forbidden","code":403,"message":%q}`, text)
		}, forWrite)},
	}
}

// late waits as long as a client waits for headers, and leaves the answer to the true cluster.
func late(x *exchange) bool {
	if x.asked == forDiscovery || x.asked == forVersion {
		return false
	}
	x.server.count("slow")
	x.pause(min(x.dose.Wait, 9500*time.Millisecond))
	return false
}
