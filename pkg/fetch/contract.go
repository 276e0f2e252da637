// Package fetch is the contract of content sources: a Reference goes in, a Snapshot comes out.
//
// Each kind of source has a package below: git, image and helmrepo, which call servers (the last two through
// registry). A kind implements the contract Kind, and is served once cmd adds it to its Kinds. Only the API types and
// pkg/catalogue also know kinds. Package archive unpacks content, store stores it by digest and answers at once.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Reference identifies the content to get.
type Reference struct {
	// Location is the place of the content.
	Location Location
	// Credentials for the server; never part of an error or a log line.
	Credentials Credentials
	// Interval is the requested time between two checks of the source; 0: the store's. It does not identify content: of
	// equal references the shortest interval counts.
	Interval time.Duration
	// Owner is the catalogue with the reference, for a fair share of the store. It does not identify content.
	Owner string
}

// Location is a place of content, for one kind of source: a struct of texts, which are all part of the keys of
// content. Fields that only select a revision are Selectors.
type Location interface {
	// Host is the host[:port], or "", for limits and metrics. It does not decide where credentials are sent.
	Host() string
	// Mirrored is the location at a mirror, if there is one.
	Mirrored(mirrors Mirrors) (Location, bool)
	// IsFixed says that the location always names the same revision.
	IsFixed() bool
}

// Kind is one kind of source. Only its package knows its locations' syntax.
type Kind[L Location] interface {
	Source
	// Name is unique and never changes: it is part of stores' keys of content.
	Name() string
	// Locate reads a catalogue's source of this kind.
	Locate(source v1.SourceKind) (location L, ok bool)
	// SecretKeys are the keys of source Secrets that it reads.
	SecretKeys() []SecretKey
}

// Credentials authenticate us to the source and the source to us.
type Credentials struct {
	Username, Password string
	// BearerToken is sent instead of user and password if set.
	BearerToken string
	// PrivateKey is for ssh, PEM; Password is its passphrase, if any. KnownHosts are the lines to
	// check the server's host key with.
	PrivateKey, KnownHosts []byte
	// DockerConfig is a .dockerconfigjson, used if Username and BearerToken are empty.
	DockerConfig []byte
	// CA has PEM certificates to trust instead of the system's.
	CA []byte
	// Hosts limit the hosts that get credentials, except CA and KnownHosts. Empty: the reference's host.
	Hosts []string
}

// Snapshot is complete, read-only content.
type Snapshot struct {
	// FS is the content below the reference's path; for a chart, Chart.yaml is on top.
	FS fs.FS
	// Revision is a commit hash, the digest of an image's tag, or a chart version.
	Revision string
	// Digest is "sha256:<hex>" of the files, or of a chart's archive.
	Digest string
	// Stale is why the last check of the source failed, if the content is from an earlier one.
	Stale error
}

// Source fetches content of one kind from servers. Both methods may take long: reconcilers must not call them.
//
// Fetch fetches exactly the revision that Resolve returned, or fails: a commit and the digests of manifests and
// charts can't change. So a wrapping Source can verify a signature of the revision before the fetch.
type Source interface {
	// Resolve returns the reference's current revision, with as little traffic as possible.
	Resolve(ctx context.Context, reference Reference) (Revision, error)
	// Fetch writes that revision's content into an existing, empty folder, and returns its digest.
	Fetch(ctx context.Context, reference Reference, revision Revision, folder string) (digest string, err error)
}

// Revision is the revision that a reference names at one time.
type Revision struct {
	// Name is the commit hash, manifest digest or chart version.
	Name string
	// Digest is the content's digest if known before the fetch (index.yaml), otherwise empty.
	Digest string
}

// Store returns snapshots without waiting, and fetches missing content in the background.
type Store interface {
	// Get returns a fresh snapshot. ErrPending: it is being fetched, and wake is called when that ends. Other errors are
	// from the last attempt; the store retries and calls wake. If the source can't be reached, Get still returns the
	// last snapshot.
	//
	// For an hour after the last Get, wake is also called when the reference names another revision: call Get at each
	// reconciliation. There is one wake per reference and subscriber, such as the installation's namespace/name. It may
	// be called concurrently and repeatedly, and must return at once.
	Get(reference Reference, subscriber string, wake func()) (Snapshot, error)
	// Refresh checks the source now. Until that ends, Get returns ErrPending.
	Refresh(reference Reference)
}

// ErrPending says that content is being fetched.
var ErrPending = errors.New("content is being fetched")

// NotFoundError reports that the server has no such ref, path, chart or version.
type NotFoundError struct {
	// What names the missing thing and its place, without credentials: `path "x" in https://… at main`.
	What string
	// Mend names an alternative that exists, or a correction; may be empty.
	Mend string
}

func (e *NotFoundError) Error() string {
	if e.Mend == "" {
		return e.What + " not found"
	}
	return e.What + " not found; " + e.Mend
}

// RefusedError reports that content or reference break a limit or a rule; a retry does not help.
type RefusedError struct {
	// Subject is the quoted thing, Rule the broken rule.
	Subject, Rule string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Subject, e.Rule) }

// NotServedError reports that this release does not support that kind of source.
type NotServedError struct {
	// Subject is the kind of source, Mend an alternative.
	Subject, Mend string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("%s is not supported by this release: %s", e.Subject, e.Mend)
}

// UnauthorizedError reports that the server requires credentials, or refuses the given ones.
type UnauthorizedError struct {
	// Subject is the URL, without user, password and query.
	Subject string
	// Status is the HTTP status, 401 or 403, otherwise 0.
	Status int
	// Sent reports whether credentials were sent.
	Sent bool
}

func (e *UnauthorizedError) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Sent {
		return e.Subject + ": the server refuses the credentials" + status
	}
	return e.Subject + ": the server asks for credentials" + status + ", and there are none for that host"
}

// UnavailableError reports that the source can't be reached, or that the connection broke; a retry may help.
type UnavailableError struct {
	// Subject is the URL, without user, password and query.
	Subject string
	// Err is the cause, without credentials.
	Err error
	// RetryAfter is how long retries are useless: the server says so, or it is silent. 0: unknown.
	RetryAfter time.Duration
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Subject, e.Err) }

func (e *UnavailableError) Unwrap() error { return e.Err }
