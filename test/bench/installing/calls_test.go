package installing

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
)

// calls counts requests by "VERB resource/subresource", as the API server tells them. Long-running ones count when they end.
type calls map[string]int

// requestLine is a line of apiserver_request_total.
var (
	requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)
	label       = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// calls is how many requests the API server has answered until now.
func (w *world) calls(b *testing.B) calls {
	b.Helper()
	clients, err := kubernetes.NewForConfig(w.both.Config)
	if err != nil {
		b.Fatal(err)
	}
	content, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	counted := calls{}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		found := requestLine.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(found[1], -1) {
			labels[pair[1]] = pair[2]
		}
		count, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			b.Fatal(err)
		}
		if name := callName(labels); name != "" {
			counted[name] += int(count)
		}
	}
	return counted
}

// callName is "" for what nobody but the API server itself asks for.
func callName(labels map[string]string) string {
	resource := labels["resource"]
	if resource == "" || resource == "leases" || labels["verb"] == "WATCH" || labels["group"] == "flowcontrol.apiserver.k8s.io" ||
		resource == "resourcequotas" || resource == "limitranges" {
		return ""
	}
	if labels["subresource"] != "" {
		resource += "/" + labels["subresource"]
	}
	return labels["verb"] + " " + resource
}

func (c calls) since(before calls) calls {
	made := calls{}
	for name, count := range c {
		if count > before[name] {
			made[name] = count - before[name]
		}
	}
	return made
}

// writes sums up what is not a reading call.
func (c calls) writes() (sum int) {
	for name, count := range c {
		if verb, _, _ := strings.Cut(name, " "); verb != "GET" && verb != "LIST" {
			sum += count
		}
	}
	return sum
}

func (c calls) sum() (sum int) {
	for _, count := range c {
		sum += count
	}
	return sum
}

// each is about how often one of so many makes the call.
func (c calls) each(name string, count int) int { return (c[name] + count/2) / count }

// text names the calls for one of so many, those made most often first.
func (c calls) text(count int) string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if c[a] != c[b] {
			return c[b] - c[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		if c[name]*20 >= count { // what happens once in a while is noise
			parts = append(parts, fmt.Sprintf("%s %.2f", name, float64(c[name])/float64(count)))
		}
	}
	return fmt.Sprintf("%.1f calls each, %.1f of them writes: %s",
		float64(c.sum())/float64(count), float64(c.writes())/float64(count), strings.Join(parts, ", "))
}
