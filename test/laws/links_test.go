package laws

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
)

// pagesOf reads every page of a folder of folders, by its slash-separated path.
func pagesOf(t *testing.T, root string) map[string]*markdown.Page {
	t.Helper()
	found := map[string]*markdown.Page{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		found[filepath.ToSlash(relative)] = markdown.Read(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// brokenLinks complains about links of pages that lead nowhere: to no file of the checkout, or to no heading of a page. Links to other
// hosts are not followed.
func brokenLinks(root string, pages map[string]*markdown.Page) []string {
	var complaints []string
	for name, page := range pages {
		for _, link := range page.Links {
			if why := broken(root, name, link.Target, pages); why != "" {
				complaints = append(complaints, fmt.Sprintf("%s:%d: link %q: %s", name, link.Line, link.Target, why))
			}
		}
	}
	slices.Sort(complaints)
	return complaints
}

func broken(root, name, target string, pages map[string]*markdown.Page) string {
	parsed, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if parsed.Scheme != "" || parsed.Host != "" {
		if parsed.Scheme != "https" && parsed.Scheme != "http" {
			return "neither a file nor a site"
		}
		return ""
	}
	file := name
	if parsed.Path != "" {
		file = path.Join(path.Dir(name), parsed.Path)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil || strings.HasPrefix(file, "../") {
		return "no such file"
	}
	to, isPage := pages[file]
	switch {
	case parsed.Fragment == "":
		return ""
	case !isPage:
		return "only pages have places"
	case !slices.ContainsFunc(to.Headings, func(heading markdown.Heading) bool { return heading.Anchor == parsed.Fragment }):
		return "no heading of " + file + " has this anchor"
	}
	return ""
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	root := checkout(t)
	pages := pagesOf(t, root)
	links := 0
	for _, page := range pages {
		links += len(page.Links)
	}
	if len(pages) < 80 || links < 400 {
		t.Fatalf("only %d pages with %d links found", len(pages), links)
	}
	for _, complaint := range brokenLinks(root, pages) {
		t.Error(complaint)
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.md":        "# A\n\n[own](#a) [other](docs/b.md#two-words) [file](docs/x.yaml) [site](https://example.com/x#y) [twice](docs/b.md#two-words-1)\n",
		"docs/b.md":   "# Two words\n\n## `Two` words\n\n[up](../a.md)\n",
		"c.md":        "# C\n\n[gone](docs/gone.md)\n\n[place](docs/b.md#three-words) [mine](#b) [out](../x) [yaml](docs/x.yaml#x) [odd](ftp://x)\n\n![p](p.svg)\n",
		"docs/x.yaml": "a: b\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := brokenLinks(root, pagesOf(t, root))
	for _, want := range []string{"c.md:3: link \"docs/gone.md\"", "#three-words", "\"#b\"", "../x", "only pages have places", "neither", "p.svg"} {
		if !slices.ContainsFunc(found, func(complaint string) bool { return strings.Contains(complaint, want) }) {
			t.Errorf("nothing says %q", want)
		}
	}
	if len(found) != 7 {
		t.Errorf("7 links lead nowhere, found %q", found)
	}
}
