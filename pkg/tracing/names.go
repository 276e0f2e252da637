package tracing

// Kind is what a span is about: the first word of its name.
type Kind string

// Kinds of spans. What their names go on with is one of few words.
const (
	// Pass is one pass of a controller over one object: "pass addoninstallation".
	Pass Kind = "pass"
	// Step is a step of a pass, by its name in the controller's list: "step resolve".
	Step Kind = "step"
	// Call is a request to an API server, up to the head of its answer: "call apply
	// deployments.apps".
	Call Kind = "call"
	// Render is a rendering in a child process, by method: "render helm".
	Render Kind = "render"
	// Fetch is a look at a source, and the fetch of what is new there, by kind of source: "fetch
	// git".
	Fetch Kind = "fetch"
	// Request is one to a server of content, up to the head of its answer, by method: "request
	// GET"; "request CONNECT" is a connection of git over ssh.
	Request Kind = "request"
)

// Key is the name of an attribute.
type Key string

// Attributes of spans.
const (
	// ObjectNamespace and ObjectName are the object of a pass.
	ObjectNamespace Key = "trellis.object.namespace"
	ObjectName      Key = "trellis.object.name"
	// Outcome is how the step that ended the pass ended it, by type: Done, RetryAt, and so on.
	Outcome Key = "trellis.outcome"
	// Reason is that outcome's reason, as conditions have it.
	Reason Key = "trellis.reason"
	// Result is how a call, fetch, request or rendering ended: ok, or a word of metrics for it.
	Result Key = "trellis.result"
	// Server tells the manager's own API server (own) from those of user clusters and seeds
	// (remote).
	Server Key = "trellis.server"
	// Host is the server of a source, with its port if it has one.
	Host Key = "server.address"
	// StatusCode is of an answer over HTTP.
	StatusCode Key = "http.response.status_code"
)

// OK is the Result of what went well.
const OK = "ok"
