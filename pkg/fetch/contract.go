// Package fetch is the contract of content sources: a Reference goes in, a Snapshot comes out.
//
// Each kind of source is a room below: git, image and helmrepo, which talk to servers (the last two
// through registry). A kind implements the contract Kind, and is served once cmd adds it to its
// Kinds. Only the API types and pkg/catalogue also know kinds. Package archive unpacks content,
// store stores it by digest and answers at once.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Reference says what to get.
type Reference struct {
	// Location is where it is.
	Location Location
	// Credentials for the server; never part of an error or a log line.
	Credentials Credentials
	// Interval is the wanted time between two checks of the source; 0: the store's. It does not
	// identify content: of equal references the shortest interval counts.
	Interval time.Duration
	// Owner is the catalogue that names it, for a fair share of the store. It does not identify content.
	Owner string
}

// Location is a place of content, for one kind of source: a struct of texts, which are all part of
// the keys of content. Fields that only select a revision are Selectors.
type Location interface {
	// Host is the host[:port], or "", for limits and metrics. Credentials are not sent by it.
	Host() string
	// Mirrored is the location at a mirror, if there is one.
	Mirrored(mirrors Mirrors) (Location, bool)
	// IsFixed says that the location always names the same revision.
	IsFixed() bool
}

// Kind is one kind of source. Only its room knows its locations' syntax.
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
	// DockerConfig is a .dockerconfigjson, used where Username and BearerToken are empty.
	DockerConfig []byte
	// CA has PEM certificates to trust instead of the system's.
	CA []byte
	// Hosts limit where credentials except CA and KnownHosts go. Empty: the reference's host.
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
	// Stale is why the last check of the source failed, if the content is of an earlier one.
	Stale error
}

// Source gets content of one kind from servers. Both methods may take long: not for reconciles.
//
// Fetch brings exactly what Resolve returned, or fails: a commit and the digests of manifests and
// charts can't change. So a wrapping Source can verify a signature of the revision before the
// fetch.
type Source interface {
	// Resolve returns the reference's current revision, with as little traffic as possible.
	Resolve(ctx context.Context, reference Reference) (Revision, error)
	// Fetch puts that revision's content into an existing, empty folder, and returns its digest.
	Fetch(ctx context.Context, reference Reference, revision Revision, folder string) (digest string, err error)
}

// Revision is what a reference names at one time.
type Revision struct {
	// Name is the commit hash, manifest digest or chart version.
	Name string
	// Digest is the content's digest if known before the fetch (index.yaml), else empty.
	Digest string
}

// Store returns snapshots without waiting, and fetches missing content in the background.
type Store interface {
	// Get returns a fresh snapshot. ErrPending: it is being fetched, and wake is called when that
	// ends. Other errors are of the last attempt; the store retries and calls wake. If the source
	// can't be reached, Get still returns the last snapshot.
	//
	// For an hour after the last Get, wake is also called when the reference names another
	// revision: call Get at each reconcile. There is one wake per reference and subscriber, such as
	// the installation's namespace/name. It may be called concurrently and repeatedly, and must
	// return at once.
	Get(reference Reference, subscriber string, wake func()) (Snapshot, error)
	// Refresh checks the source now. Until that ends, Get returns ErrPending.
	Refresh(reference Reference)
}

// ErrPending says that content is being fetched.
var ErrPending = errors.New("content is being fetched")

// NotFoundError says that the server has no such ref, path, chart or version.
type NotFoundError struct {
	// What is missing and where, without credentials: `path "x" in https://… at main`.
	What string
	// Mend says what exists instead, or what to do; may be empty.
	Mend string
}

func (e *NotFoundError) Error() string {
	if e.Mend == "" {
		return e.What + " not found"
	}
	return e.What + " not found; " + e.Mend
}

// RefusedError says that content or reference break a limit or a rule; a retry does not help.
type RefusedError struct {
	// Subject is the quoted thing, Rule what it breaks.
	Subject, Rule string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Subject, e.Rule) }

// NotServedError says that this release does not support that kind of source.
type NotServedError struct {
	// Subject is the kind of source, Mend what to use instead.
	Subject, Mend string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("%s is not served by this release: %s", e.Subject, e.Mend)
}

// UnauthorizedError says that the server wants credentials, or refuses the given ones.
type UnauthorizedError struct {
	// Subject is the URL, without user, password and query.
	Subject string
	// Status is the HTTP status, 401 or 403, else 0.
	Status int
	// Sent says whether credentials were sent.
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

// UnavailableError says that the source can't be reached or breaks off; a retry may help.
type UnavailableError struct {
	// Subject is the URL, without user, password and query.
	Subject string
	// Err is the cause, without credentials.
	Err error
	// RetryAfter is how long retries are useless, by the server or as it is silent. 0: unknown.
	RetryAfter time.Duration
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Subject, e.Err) }

func (e *UnavailableError) Unwrap() error { return e.Err }
