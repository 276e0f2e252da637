package tracing

// Kind is the kind of a span: the first word of its name.
type Kind string

// Kinds of spans. Their names continue with one of few words.
const (
	// Reconcile is one reconciliation of one object by a controller: "pass addoninstallation".
	Reconcile Kind = "pass"
	// Step is a step of a reconciliation, by its name in the controller's list: "step resolve".
	Step Kind = "step"
	// Call is a request to an API server, up to the head of its answer: "call apply
	// deployments.apps".
	Call Kind = "call"
	// Render is a rendering in a child process, by method: "render helm".
	Render Kind = "render"
	// Fetch is a check of a source, and the fetch of new content, by kind of source: "fetch git".
	Fetch Kind = "fetch"
	// Request is one to a server of content, up to the head of its answer, by method: "request
	// GET"; "request CONNECT" is a connection of git over ssh.
	Request Kind = "request"
)

// Key is the name of an attribute.
type Key string

// Attributes of spans.
const (
	// ObjectNamespace and ObjectName identify the object of a reconciliation.
	ObjectNamespace Key = "trellis.object.namespace"
	ObjectName      Key = "trellis.object.name"
	// Outcome is the type of the outcome that ended the reconciliation: Done, RetryAt, and so on.
	Outcome Key = "trellis.outcome"
	// Reason is that outcome's reason, as conditions have it.
	Reason Key = "trellis.reason"
	// Result is how a call, fetch, request or rendering ended: ok, or a result as metrics name it.
	Result Key = "trellis.result"
	// Server distinguishes the manager's own API server (own) from those of user clusters and seeds (remote).
	Server Key = "trellis.server"
	// Host is the server of a source, with its port if it has one.
	Host Key = "server.address"
	// StatusCode is the status of an HTTP answer.
	StatusCode Key = "http.response.status_code"
)

// OK is the Result of a success.
const OK = "ok"
