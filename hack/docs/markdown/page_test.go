package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const sample = "# The `title`\n\nSee [there](x.md#a).\n\n## Part, one\n\n<!-- Not here. -->\n```console\nrm x\n```\n\n- a list:\n\n  ```sh\n  ls\n  ```\n\n" +
	"## Part one\n\n| a | b |\n|---|---|\n| ![p](p.svg) | [q](q.md) |\n"

func TestPagesAreRead(t *testing.T) {
	page := Read([]byte(sample))
	headings := []Heading{{1, "The title", "the-title"}, {2, "Part, one", "part-one"}, {2, "Part one", "part-one-1"}}
	if diff := cmp.Diff(headings, page.Headings); diff != "" || page.Title != "The title" {
		t.Errorf("title %q, headings (-want +got):\n%s", page.Title, diff)
	}
	links := []Link{{Target: "x.md#a", Line: 3}, {Target: "p.svg", Line: 22}, {Target: "q.md", Line: 22}}
	if diff := cmp.Diff(links, page.Links, cmpopts.IgnoreUnexported(Link{})); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	blocks := []Block{{Info: "console", Text: "rm x\n", Line: 9, Comment: "Not here."}, {Info: "sh", Text: "ls\n", Line: 15}}
	if diff := cmp.Diff(blocks, page.Blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if sections := page.Sections(); len(sections) != 3 || len(sections[0].Links) != 1 || len(sections[2].Links) != 2 {
		t.Errorf("sections are %+v", sections)
	}
	if text := page.Text(); !strings.Contains(text, "See there") || !strings.Contains(text, "rm x") || strings.Contains(text, "x.md") {
		t.Errorf("the text is %q", text)
	}
}

func TestPagesAreRendered(t *testing.T) {
	html, err := Read([]byte(sample)).HTML(func(target string) string { return "to/" + target })
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<h2 id="part-one-1">`, `href="to/x.md#a"`, `src="to/p.svg"`, "<table>"} {
		if !strings.Contains(html, part) {
			t.Errorf("no %s in\n%s", part, html)
		}
	}
}

func TestAnchors(t *testing.T) {
	for heading, want := range map[string]string{
		"What status.seeds says": "what-statusseeds-says", "addons[].versions[]": "addonsversions", "A `b` c": "a-b-c", "Größe": "größe", "a_b - c": "a_b---c",
	} {
		if got := Anchor(heading, map[string]int{}); got != want {
			t.Errorf("anchor of %q is %q, want %q", heading, got, want)
		}
	}
}
