package main

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
)

var (
	leads = regexp.MustCompile(` (href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
	// asks finds what a browser fetches by itself from another host.
	asks = regexp.MustCompile(`(?:src=|<link[^>]*href=|url\(|@import|fetch\(|importScripts\()["' ]*(?:https?:)?//[^"')\s]*`)
)

// built is the site of the checkout, by the paths of its files.
func built(t *testing.T) map[string]string {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	made, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := made.write(out); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(out, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		relative, _ := filepath.Rel(out, name)
		files[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSiteIsWhole(t *testing.T) {
	files := built(t)
	if len(files) < 100 {
		t.Fatalf("only %d files", len(files))
	}
	for name, text := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, link := range leads.FindAllStringSubmatch(text, -1) {
			if why := dead(files, name, strings.ReplaceAll(link[2], "&amp;", "&")); why != "" {
				t.Errorf("%s leads to %q: %s", name, link[2], why)
			}
		}
	}
}

// dead says why a link of a file of the site leads nowhere.
func dead(files map[string]string, name, link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if parsed.Scheme != "" {
		return ""
	}
	file := name
	if parsed.Path != "" {
		file = path.Join(path.Dir(name), parsed.Path)
	}
	text, is := files[file]
	if !is {
		return "no such file"
	}
	if parsed.Fragment == "" {
		return ""
	}
	for _, id := range ids.FindAllStringSubmatch(text, -1) {
		if id[1] == parsed.Fragment {
			return ""
		}
	}
	return "no such place"
}

func TestSiteAsksNoOtherHost(t *testing.T) {
	for name, text := range built(t) {
		if strings.HasSuffix(name, ".html") || strings.HasSuffix(name, ".css") || strings.HasSuffix(name, ".svg") || name == "search.js" {
			if found := asks.FindString(text); found != "" {
				t.Errorf("%s asks another host: %s", name, found)
			}
		}
	}
	for _, wrong := range []string{
		`<script src="https://x.example/a.js">`, `<link rel="stylesheet" href="//x.example/a.css">`, `@import "https://x.example/a.css"`,
		`a { background: url(https://x.example/a.png) }`, `fetch("https://x.example")`,
	} {
		if !asks.MatchString(wrong) {
			t.Errorf("%s is not found", wrong)
		}
	}
}

func TestOnlyASiteOfBeforeIsRemoved(t *testing.T) {
	out := filepath.Join(t.TempDir(), "docs")
	if err := removePrevious(out); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	if err := put(out, "mine.txt", nil); err != nil {
		t.Fatal(err)
	}
	if err := removePrevious(out); err == nil || !strings.Contains(err.Error(), "no previous site") {
		t.Errorf("with another file: %v", err)
	}
	if err := put(out, indexFile, nil); err != nil {
		t.Fatal(err)
	}
	if err := removePrevious(out); err != nil {
		t.Errorf("with a previous site: %v", err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("the previous site is still there: %v", err)
	}
}

func TestSearchKnowsEveryPage(t *testing.T) {
	files := built(t)
	text, isCall := strings.CutPrefix(strings.TrimSuffix(files["pages.js"], ");\n"), "trellisPages(")
	var index []found
	if err := json.Unmarshal([]byte(text), &index); err != nil || !isCall {
		t.Fatalf("the index of the search can't be read: %v", err)
	}
	texts := map[string]string{}
	for _, page := range index {
		if files[page.URL] == "" || page.Title == "" || page.Text == "" {
			t.Errorf("entry %q %q of the search is no page", page.Title, page.URL)
		}
		texts[page.URL] = page.Text
	}
	for page, words := range map[string]string{
		"docs/guides/moving.html": "ReleaseNameTaken", "docs/reference/flags.html": "--drift-interval", "index.html": "make sandbox",
	} {
		if !strings.Contains(texts[page], words) {
			t.Errorf("the search does not find %q in %s", words, page)
		}
	}
}

func TestEveryPageForReadersIsInTheMenu(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	made, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, section := range made.menu {
		for _, entry := range section.Entries {
			listed[entry.Target] = true
		}
	}
	for name := range made.pages {
		isFor := strings.HasPrefix(name, "docs/guides/") || strings.HasPrefix(name, "docs/reference/") || strings.HasPrefix(name, "docs/spec/")
		if isFor && !listed[name] {
			t.Errorf("%s is not in %s, which is the menu", name, contents)
		}
	}
}
