package gotemplate

import (
	"fmt"
	"strings"
	"text/template/parse"
)

// markFunction is the function that marks call. Templates can't call it: it is unknown while they are parsed.
const markFunction = "markPlace"

// place is the position of a mark.
type place struct {
	file  string
	line  int
	lines int // of the text after the mark
}

type places []place

type marker struct {
	places *places
	file   file
}

// list adds a mark at the start of a list and before each piece of text.
func (m marker) list(list *parse.ListNode) *parse.ListNode {
	if list == nil {
		return nil
	}
	marked := make([]parse.Node, 0, 2*len(list.Nodes)+1)
	marked = append(marked, m.markAt(list.Pos, 0))
	for _, node := range list.Nodes {
		m.inside(node)
		if text, ok := node.(*parse.TextNode); ok {
			marked = append(marked, m.markAt(text.Pos, strings.Count(string(text.Text), "\n")))
		}
		marked = append(marked, node)
	}
	list.Nodes = marked
	return list
}

func (m marker) inside(node parse.Node) {
	var branch *parse.BranchNode
	switch node := node.(type) {
	case *parse.IfNode:
		branch = &node.BranchNode
	case *parse.RangeNode:
		branch = &node.BranchNode
	case *parse.WithNode:
		branch = &node.BranchNode
	default:
		return
	}
	branch.List, branch.ElseList = m.list(branch.List), m.list(branch.ElseList)
}

// markAt creates the node of a mark: {{ markPlace 17 }}.
func (m marker) markAt(pos parse.Pos, lines int) parse.Node {
	number := len(*m.places)
	*m.places = append(*m.places, place{file: m.file.path, line: 1 + strings.Count(m.file.text[:pos], "\n"), lines: lines})
	known := map[string]any{markFunction: func(int) string { return "" }}
	trees, err := parse.Parse("mark", fmt.Sprintf("{{%s %d}}", markFunction, number), "", "", known)
	if err != nil {
		panic(err) // the text is constant
	}
	return trees["mark"].Root.Nodes[0]
}
