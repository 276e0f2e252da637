// Package markdown reads the project's pages: headings with their anchors, links, and blocks of code. The anchors are those that git
// hosts give headings, so that a link leads to the same place there and on the site.
package markdown
