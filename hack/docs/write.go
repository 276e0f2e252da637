package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
)

//go:embed site
var parts embed.FS

var layout = template.Must(template.ParseFS(parts, "site/page.html"))

// indexFile has the texts of all pages, for the search.
const indexFile = "pages.js"

// view is what the layout shows.
type view struct {
	Title, Top string
	Menu       []section
	Places     []markdown.Heading
	Body       template.HTML
	Here       string
}

// found is an entry of the search.
type found struct {
	Title string `json:"t"`
	URL   string `json:"u"`
	Text  string `json:"x"`
}

// write writes the site into an empty folder.
func (s *site) write(out string) error {
	var index []found
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		page := s.pages[name]
		index = append(index, found{page.Title, s.address(name), page.Text()})
		body, err := page.HTML(func(target string) string { return s.rewrite(name, target) })
		if err != nil {
			return fmt.Errorf("page %q: %w", name, err)
		}
		if err := s.show(out, s.address(name), page.Title, body, page.Headings); err != nil {
			return err
		}
	}
	for folder := range s.folders {
		if err := s.list(out, folder); err != nil {
			return err
		}
	}
	for file := range s.files {
		text, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(file)))
		if err == nil {
			err = put(out, file, text)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range []string{"style.css", "search.js"} {
		text, err := parts.ReadFile("site/" + name)
		if err == nil {
			err = put(out, name, text)
		}
		if err != nil {
			return err
		}
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return put(out, indexFile, append([]byte("trellisPages("), append(text, ");\n"...)...))
}

// rewrite leads a link of a page to where its target is on the site.
func (s *site) rewrite(from, link string) string {
	target, anchor, isOurs := s.target(from, link)
	if !isOurs {
		return link
	}
	if target == from {
		return anchor
	}
	return way(s.address(from), s.address(target)) + anchor
}

func (s *site) show(out, address, title, body string, headings []markdown.Heading) error {
	// The renderer leaves raw HTML of pages out.
	shown := view{Title: title, Top: way(address, "."), Body: template.HTML(body), Here: way(address, address)}
	for _, heading := range headings {
		if heading.Level == 2 {
			shown.Places = append(shown.Places, heading)
		}
	}
	for _, part := range s.menu {
		moved := section{Title: part.Title}
		for _, one := range part.Entries {
			moved.Entries = append(moved.Entries, entry{one.Title, way(address, s.address(one.Target))})
		}
		shown.Menu = append(shown.Menu, moved)
	}
	var text bytes.Buffer
	if err := layout.Execute(&text, shown); err != nil {
		return fmt.Errorf("page %q: %w", address, err)
	}
	return put(out, address, text.Bytes())
}

// list writes a page for a folder that pages lead to: what is in it, with links to the pages.
func (s *site) list(out, folder string) error {
	entries, err := os.ReadDir(filepath.Join(s.root, filepath.FromSlash(folder)))
	if err != nil {
		return err
	}
	var body strings.Builder
	fmt.Fprintf(&body, "<h1>%s</h1>\n<ul>\n", template.HTMLEscapeString(folder))
	for _, one := range entries {
		name := template.HTMLEscapeString(one.Name())
		if page := s.pages[folder+"/"+one.Name()]; page != nil {
			name = fmt.Sprintf("<a href=%q>%s</a>", way(s.address(folder), s.address(folder+"/"+one.Name())), template.HTMLEscapeString(page.Title))
		}
		fmt.Fprintf(&body, "<li>%s</li>\n", name)
	}
	return s.show(out, s.address(folder), folder, body.String()+"</ul>\n", nil)
}

func put(out, address string, text []byte) error {
	file := filepath.Join(out, filepath.FromSlash(address))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
