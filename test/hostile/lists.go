package hostile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

const listHead = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":%q},"items":[`

// listModes lie in lists. The objects in them have the label that Trellis selects, of no installation.
func listModes() []Mode {
	return []Mode{
		{
			Name: "slow-pages", About: "drips each page of a list for half a minute, without end", Dose: slow(29 * time.Second),
			answer: about(func(x *exchange) bool {
				return x.drip(fmt.Sprintf(listHead, fmt.Sprint("c", x.server.count("pages"))) + "]}")
			}, forList),
		},
		{
			Name: "endless-pages", About: "has always one page more, at once and empty", answer: about(func(x *exchange) bool {
				return x.text(http.StatusOK, listHead+"]}", fmt.Sprint("c", x.server.count("pages")))
			}, forList),
		},
		{
			Name: "same-page", About: "goes on with the page that was there already", answer: about(func(x *exchange) bool {
				x.server.count("pages")
				return x.text(http.StatusOK, listHead+"]}", "again")
			}, forList),
		},
		{
			Name: "big-pages", About: "has pages of 30 MB without end, with a megabyte of fields in each object", Dose: sized(30 << 20),
			answer: about(func(x *exchange) bool {
				page, fields := x.server.count("pages"), `{"f:x":{"`+strings.Repeat("y", 1<<20)+`":{}}}`
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprintf(w, listHead, fmt.Sprint("c", page))
					enumerate(w, x.dose.Size>>20, func(i int) string { return listed(fmt.Sprintf("n%d-%d", page, i), fields) })
					fmt.Fprint(w, "]}")
				})
			}, forList),
		},
		{
			Name: "empty-items", About: "has millions of objects without a name in one page", Dose: sized(31 << 20),
			answer: about(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprintf(w, listHead, "")
					fmt.Fprint(w, "{}")
					repeat(w, ",{}", x.dose.Size)
					fmt.Fprint(w, "]}")
				})
			}, forList),
		},
		{
			Name: "scale-fields", About: "has an object with a million fields of subresource scale in random order", Dose: sized(20 << 20),
			answer: about(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprintf(w, listHead, "")
					fmt.Fprint(w, listedUpTo("n", "scale"))
					randomFields(w, x.dose.Size)
					fmt.Fprint(w, "}]}}]}")
				})
			}, forList),
		},
		{
			Name: "long-name", About: "has an object with a name of 30 MB", Dose: sized(30 << 20), answer: about(func(x *exchange) bool {
				return x.json(http.StatusOK, func(w io.Writer) {
					fmt.Fprintf(w, listHead, "")
					fmt.Fprint(w, `{"metadata":{"namespace":"x","name":"`)
					repeat(w, "n", x.dose.Size)
					fmt.Fprint(w, `"}}]}`)
				})
			}, forList),
		},
		{
			Name: "deep-list", About: "nests arrays without end in a list", Dose: sized(5 << 20), answer: about(deep, forList),
		},
		{
			Name: "empty-lists", About: "says that there is nothing at all", answer: about(func(x *exchange) bool {
				return x.text(http.StatusOK, listHead+"]}", "")
			}, forList),
		},
	}
}

func listedUpTo(name, subresource string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"x","labels":{"addons.kubermatic.k8c.io/installation":"a"},`+
		`"managedFields":[{"manager":"addon-installation/a","operation":"Apply","subresource":%q,"fieldsV1":`, name, subresource)
}

func listed(name, fields string) string { return listedUpTo(name, "") + fields + "}]}}" }

// randomFields is a field set in random order: an insertion sort moves all later fields each time.
func randomFields(w io.Writer, size int) {
	random := rand.New(rand.NewPCG(1, 2))
	fmt.Fprint(w, `{"f:x":{},`)
	enumerate(w, size/16, func(int) string { return fmt.Sprintf(`"f:%08x":{}`, random.Uint32()) })
	fmt.Fprint(w, "}")
}
