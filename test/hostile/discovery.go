package hostile

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// discoveryModes lie about the identity and the kinds of the API server.
func discoveryModes() []Mode {
	return []Mode{
		{
			Name: "empty-kinds", About: "says that a group has millions of kinds without a name", Dose: sized(31 << 20),
			answer: discovery(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{}`)
					repeat(w, ",{}", x.dose.Size)
					fmt.Fprint(w, `]}`)
				})
			}),
		},
		{
			Name: "endless-verbs", About: "gives one kind millions of verbs", Dose: sized(31 << 20),
			answer: discovery(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","verbs":["get"`)
					repeat(w, `,""`, x.dose.Size)
					fmt.Fprint(w, `]}]}`)
				})
			}),
		},
		{
			Name: "long-kinds", About: "gives a kind a name of megabytes", Dose: sized(31 << 20),
			answer: discovery(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"`)
					repeat(w, "N", x.dose.Size)
					fmt.Fprint(w, `","verbs":["get"]}]}`)
				})
			}),
		},
		{
			Name: "many-groups", About: "says that it serves a hundred thousand versions of a group, each of which answers after seconds",
			Dose: Dose{Size: 100_000, Wait: 5 * time.Second}, answer: manyGroups,
		},
		{
			Name: "deep-discovery", About: "nests arrays without end in what it serves", Dose: sized(5 << 20),
			answer: about(deep, forDiscovery),
		},
		{
			Name: "long-version", About: "has a version of megabytes", Dose: sized(31 << 20),
			answer: about(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprint(w, `{"gitVersion":"v1.36.`)
					repeat(w, "0", x.dose.Size)
					fmt.Fprint(w, `"}`)
				})
			}, forVersion),
		},
		{
			Name: "wild-version", About: "has another version with each answer", answer: about(func(x *exchange) bool {
				return x.text(http.StatusOK, `{"gitVersion":"v1.%d.0"}`, 30+x.server.count("versions")%10)
			}, forVersion),
		},
		{
			Name: "nothing-served", About: "says that it serves no kind at all", answer: discovery(func(x *exchange) bool {
				return x.text(http.StatusOK, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
			}),
		},
	}
}

// discovery lists only the core group, and answers for its kinds with do.
func discovery(do func(*exchange) bool) func(*exchange) bool {
	return about(func(x *exchange) bool {
		switch strings.Trim(x.r.URL.Path, "/") {
		case "api":
			return x.text(http.StatusOK, `{"kind":"APIVersions","versions":["v1"]}`)
		case "apis":
			return x.text(http.StatusOK, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			return do(x)
		}
	}, forDiscovery)
}

func manyGroups(x *exchange) bool {
	path := strings.Trim(x.r.URL.Path, "/")
	switch {
	case x.asked != forDiscovery || path == "api" || path == "api/v1":
		return false
	case path != "apis":
		x.pause(x.dose.Wait)
		http.NotFound(x.w, x.r)
		return true
	}
	return x.json(http.StatusOK, func(w io.Writer) {
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"a.example","versions":[`)
		enumerate(w, x.dose.Size, func(i int) string {
			return fmt.Sprintf(`{"groupVersion":"a.example/v%d","version":"v%d"}`, i+1, i+1)
		})
		fmt.Fprint(w, `]}]}`)
	})
}

func deep(x *exchange) bool {
	return x.json(http.StatusOK, func(w io.Writer) {
		fmt.Fprint(w, `{"kind":"X","items":`)
		repeat(w, "[", x.dose.Size)
		repeat(w, "]", x.dose.Size)
		fmt.Fprint(w, `}`)
	})
}
