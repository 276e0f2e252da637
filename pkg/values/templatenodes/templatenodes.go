// Package templatenodes visits what Go templates are parsed to: which functions they call, which names
// and texts they have. Nothing is executed, and no function has to be known.
package templatenodes

import "text/template/parse"

// unnamed is the name of the text itself; no template that it defines has it.
const unnamed = "\x00"

// Each visits all nodes of a text's templates, those that it defines too; none of a text that can't be
// parsed. A branch that a template does not have, such as {{ else }}, is no node.
func Each(text string, visit func(parse.Node)) {
	trees := map[string]*parse.Tree{}
	tree := parse.New(unnamed)
	tree.Mode = parse.SkipFuncCheck
	parsed, err := tree.Parse(text, "", "", trees)
	if err != nil {
		return
	}
	walk(parsed.Root, visit)
	for _, one := range trees {
		if one != parsed {
			walk(one.Root, visit)
		}
	}
}

func walk(node parse.Node, visit func(parse.Node)) {
	visit(node)
	switch node := node.(type) {
	case *parse.ListNode:
		walkAll(node.Nodes, visit)
	case *parse.ActionNode:
		walk(node.Pipe, visit)
	case *parse.TemplateNode:
		walkPipe(node.Pipe, visit)
	case *parse.IfNode:
		walkBranch(&node.BranchNode, visit)
	case *parse.RangeNode:
		walkBranch(&node.BranchNode, visit)
	case *parse.WithNode:
		walkBranch(&node.BranchNode, visit)
	case *parse.PipeNode:
		walkPipe(node, visit)
	case *parse.CommandNode:
		walkAll(node.Args, visit)
	case *parse.ChainNode:
		walk(node.Node, visit)
	}
}

func walkAll(nodes []parse.Node, visit func(parse.Node)) {
	for _, node := range nodes {
		walk(node, visit)
	}
}

func walkPipe(pipe *parse.PipeNode, visit func(parse.Node)) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		walk(command, visit)
	}
}

func walkBranch(branch *parse.BranchNode, visit func(parse.Node)) {
	walkPipe(branch.Pipe, visit)
	walk(branch.List, visit)
	if branch.ElseList != nil {
		walk(branch.ElseList, visit)
	}
}
