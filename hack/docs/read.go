package main

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
)

// contents is the page whose sections and links are the menu of the site.
const contents = "docs/README.md"

// site is all that is written.
type site struct {
	root string
	// pages by their slash-separated path in the checkout.
	pages map[string]*markdown.Page
	menu  []section
	// files and folders that pages lead to and that are no pages.
	files, folders map[string]bool
}

// section is a part of the menu.
type section struct {
	Title   string
	Entries []entry
}

// entry leads to a page, or to a file or a folder.
type entry struct{ Title, Target string }

// places are where pages for readers are.
var places = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs", "deploy", "charts", "hack/ci",
}

// read reads all pages of a checkout.
func read(root string) (*site, error) {
	made := &site{root: root, pages: map[string]*markdown.Page{}, files: map[string]bool{}, folders: map[string]bool{}}
	for _, place := range places {
		err := filepath.WalkDir(filepath.Join(root, place), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".md" {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, name)
			made.pages[filepath.ToSlash(relative)] = markdown.Read(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	made.menu = made.sections()
	for _, name := range slices.Sorted(maps.Keys(made.pages)) {
		made.collect(name)
	}
	return made, nil
}

// sections are the headings of the page of contents with the links below each.
func (s *site) sections() []section {
	page := s.pages[contents]
	made := []section{{Title: "Trellis", Entries: []entry{{"Overview", "README.md"}, {"All pages", contents}}}}
	for _, below := range page.Sections() {
		next := section{Title: below.Heading.Text}
		for _, link := range below.Links {
			if target, _, isOurs := s.target(contents, link.Target); isOurs && s.pages[target] != nil {
				next.Entries = append(next.Entries, entry{s.pages[target].Title, target})
			}
		}
		if below.Heading.Level > 1 && len(next.Entries) > 0 {
			made = append(made, next)
		}
	}
	return made
}

// collect notes the files and folders that a page leads to.
func (s *site) collect(name string) {
	for _, link := range s.pages[name].Links {
		target, _, isOurs := s.target(name, link.Target)
		if !isOurs || s.pages[target] != nil {
			continue
		}
		about, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(target)))
		switch {
		case err != nil:
		case about.IsDir():
			s.folders[target] = true
		default:
			s.files[target] = true
		}
	}
}

// target is the path in the checkout that a link of a page leads to, and its anchor with "#"; false for one to elsewhere.
func (s *site) target(from, link string) (target, anchor string, isOurs bool) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return "", "", false
	}
	target, anchor, hasAnchor := strings.Cut(link, "#")
	if hasAnchor {
		anchor = "#" + anchor
	}
	if target == "" {
		return from, anchor, true
	}
	target = path.Join(path.Dir(from), target)
	if page := path.Join(target, "README.md"); s.pages[page] != nil {
		return page, anchor, true
	}
	return target, anchor, true
}

// address is where something of the checkout is on the site, from its top.
func (s *site) address(target string) string {
	switch folder, base := path.Split(target); {
	case base == "README.md":
		return folder + "index.html"
	case s.pages[target] != nil:
		return strings.TrimSuffix(target, ".md") + ".html"
	case s.folders[target]:
		return target + "/index.html"
	}
	return target
}

// way leads from one address to another.
func way(from, to string) string {
	relative, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return filepath.ToSlash(relative)
}
