package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Page is one page as it was read.
type Page struct {
	// Title is the text of the first heading.
	Title string
	// Headings in their order.
	Headings []Heading
	// Links to pages, places and pictures, in their order.
	Links []Link
	// Blocks of code in their order.
	Blocks []Block

	root   ast.Node
	source []byte
}

// Heading of a page.
type Heading struct {
	// Level is 1 for the title.
	Level int
	// Text without marks.
	Text string
	// Anchor is what a link names after "#".
	Anchor string
}

// Link is where a page leads.
type Link struct {
	// Target as it is written.
	Target string
	// Line of the block that has the link, from 1.
	Line int

	// below is the number of headings before it.
	below int
	node  ast.Node
}

// Block is one block of code.
type Block struct {
	// Info is the text after the fence; "" also for an indented block.
	Info string
	// Text of the block.
	Text string
	// Line of its first line of code, from 1.
	Line int
	// Indented is a block that has no fence.
	Indented bool
	// Comment is the text of an HTML comment just before it.
	Comment string
}

// Read reads a page.
func Read(source []byte) *Page {
	page := &Page{source: source}
	page.root = engine().Parser().Parse(text.NewReader(source))
	taken := map[string]int{}
	_ = ast.Walk(page.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			page.note(node, taken)
		}
		return ast.WalkContinue, nil
	})
	return page
}

func engine() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithAttribute()))
}

func (p *Page) note(node ast.Node, taken map[string]int) {
	switch node := node.(type) {
	case *ast.Heading:
		words := p.words(node)
		anchor := Anchor(words, taken)
		node.SetAttributeString("id", []byte(anchor))
		p.Headings = append(p.Headings, Heading{Level: node.Level, Text: words, Anchor: anchor})
		if p.Title == "" {
			p.Title = words
		}
	case *ast.Link:
		p.Links = append(p.Links, p.link(node, node.Destination))
	case *ast.Image:
		p.Links = append(p.Links, p.link(node, node.Destination))
	case *ast.FencedCodeBlock:
		block := Block{Text: p.lines(node), Line: p.line(node), Comment: p.comment(node.PreviousSibling())}
		if node.Info != nil {
			block.Info = strings.TrimSpace(string(node.Info.Value(p.source)))
		}
		p.Blocks = append(p.Blocks, block)
	case *ast.CodeBlock:
		p.Blocks = append(p.Blocks, Block{Text: p.lines(node), Line: p.line(node), Indented: true})
	}
}

func (p *Page) link(node ast.Node, target []byte) Link {
	return Link{Target: string(target), Line: p.line(node), below: len(p.Headings), node: node}
}

// Section is a heading with what is below it, up to the next one.
type Section struct {
	Heading Heading
	Links   []Link
}

// Sections of the page, in their order.
func (p *Page) Sections() []Section {
	made := make([]Section, len(p.Headings))
	for i, heading := range p.Headings {
		made[i].Heading = heading
	}
	for _, link := range p.Links {
		if link.below > 0 {
			made[link.below-1].Links = append(made[link.below-1].Links, link)
		}
	}
	return made
}

// words are the text of a node without marks.
func (p *Page) words(node ast.Node) string {
	var words strings.Builder
	_ = ast.Walk(node, func(part ast.Node, entering bool) (ast.WalkStatus, error) {
		if piece, is := part.(*ast.Text); is && entering {
			words.Write(piece.Value(p.source))
			if piece.SoftLineBreak() {
				words.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return words.String()
}

func (p *Page) lines(node ast.Node) string {
	var lines strings.Builder
	for _, segment := range node.Lines().Sliced(0, node.Lines().Len()) {
		lines.Write(segment.Value(p.source))
	}
	return lines.String()
}

// line is where the block begins that a node is, or is in.
func (p *Page) line(node ast.Node) int {
	for ; node != nil; node = node.Parent() {
		if node.Type() == ast.TypeBlock && node.Lines() != nil && node.Lines().Len() > 0 {
			return 1 + bytes.Count(p.source[:node.Lines().At(0).Start], []byte("\n"))
		}
	}
	return 1
}

func (p *Page) comment(node ast.Node) string {
	block, is := node.(*ast.HTMLBlock)
	if !is {
		return ""
	}
	words := strings.TrimSpace(p.lines(block))
	if block.HasClosure() {
		words = strings.TrimSpace(words + string(block.ClosureLine.Value(p.source)))
	}
	words, _ = strings.CutPrefix(words, "<!--")
	words, _ = strings.CutSuffix(words, "-->")
	return strings.TrimSpace(words)
}

// Text is all that a reader sees of a page, for a search.
func (p *Page) Text() string {
	var words strings.Builder
	_ = ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Text:
			if entering {
				words.Write(node.Value(p.source))
				words.WriteByte(' ')
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				words.WriteString(p.lines(node))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(words.String()), " ")
}

// HTML renders the page. rewrite gives the target of each link and picture on the site.
func (p *Page) HTML(rewrite func(target string) string) (string, error) {
	for _, link := range p.Links {
		switch node := link.node.(type) {
		case *ast.Link:
			node.Destination = []byte(rewrite(link.Target))
		case *ast.Image:
			node.Destination = []byte(rewrite(link.Target))
		}
	}
	var out bytes.Buffer
	err := engine().Renderer().Render(&out, p.source, p.root)
	return out.String(), err
}
