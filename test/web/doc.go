// Package web runs the web view as browsers use it, over HTTP, against API servers and query endpoints: the main job without scripts,
// hostile text, rights, and bad input. With build tag browser (make test-web) it also runs it in Chromium.
package web
