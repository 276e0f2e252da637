// Package docs runs the commands of the pages for users: of README.md, docs/guides and the sandbox's page, each page from its top to its
// end in one shell, on one sandbox, or on one of another kind where the page is for that.
//
// What stands after a block's fence says what the block is:
//
//	sh           runs, and each of its commands has to succeed
//	sh refused   is one command that has to fail, since the page says so
//	console      does not run; an HTML comment before it says why, where it has commands
//	others       (yaml, json, text …) are no commands
//
// A page sees the sandbox as a reader does, from the checkout, and has a home of its own. Pages run at once, so
// each has names of its own for what it makes, and takes it away at its end.
package docs
