// Package docs runs the commands of the pages for users: of README.md, docs/guides, docs/spec and deploy, each page from its top to its
// end in one shell, on one sandbox, or on one of another kind where the page is for that.
//
// What stands after a block's fence says what the block is:
//
//	sh           runs, and each of its commands has to succeed
//	sh refused   is one command that has to fail, since the page says so
//	console      does not run on the sandbox; an HTML comment before it says why
//	others       (yaml, json, text …) are no commands
//
// A page sees the sandbox as a reader does, from the checkout, and has a home of its own. Pages run at once, so
// each has names of its own for what it makes, and takes it away at its end.
//
// Each console block has an entry in the lists of blocks.go and specblocks.go, with what is there before it and what holds after it. Most
// run as they stand on an API server that has nothing, with Jobs of charts played. Where a program of somebody else, a pod or
// many minutes would be needed, the entry says so, and what is tried is less: a stand-in looks at names and flags, or make tells its
// plan. A block in neither class fails a test, and so does an entry whose block is gone.
//
// Figures that the page of sizes gives of the charts' values are held to them.
package docs
