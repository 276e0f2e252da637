// Package web runs the web view as browsers use it, over HTTP, against API servers and query endpoints: the main job without scripts,
// hostile text, rights, and bad input.
package web
