// Package fetch is the contract between what wants content and what gets it: a Reference goes in, a
// Snapshot comes out.
//
// Each kind of source is a room below: git, image and helmrepo, which talk to servers (the last two
// through registry, where there is one). A kind says by one contract, Kind, all that is to be known
// of it; it is served once it is among the Kinds that cmd puts together. Beside its room only the API
// types and the rules of pkg/catalogue know it.
// Archive unpacks what kinds bring, store keeps it by digest and answers at once.
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
	// Location is where it is, in the words of one kind of source.
	Location Location
	// Credentials for the server; never part of an error or a log line.
	Credentials Credentials
	// Interval is the wanted time between two looks at the source; 0 is the store's own. It is no part
	// of what the reference names: of those who ask for the same, the shortest counts.
	Interval time.Duration
}

// Location is a place of content, in the words of one kind of source: a struct of texts, all of them
// in the keys that tell contents apart. A field that only selects a revision is a Selector.
type Location interface {
	// Host is the host[:port] that the location leads to; "" where it can't be told. It is for sharing
	// out work and for counting, not for deciding where credentials go.
	Host() string
	// Mirrored is the location at a mirror, if there is one.
	Mirrored(mirrors Mirrors) (Location, bool)
	// IsFixed says that the location can't name another revision than it does now.
	IsFixed() bool
}

// Kind is one kind of source: all that is to be known of it. Its room is the only one that knows
// the words of its locations.
type Kind[L Location] interface {
	Source
	// Name is its own among all kinds, and for ever: it is part of the keys by which stores know
	// content over a restart.
	Name() string
	// Locate reads what a catalogue says, where that is of this kind.
	Locate(source v1.SourceKind) (location L, ok bool)
	// SecretKeys are the keys of source Secrets that it reads.
	SecretKeys() []SecretKey
}

// Credentials authenticate us to the source and the source to us.
type Credentials struct {
	Username, Password string
	// BearerToken is sent instead of user and password where set.
	BearerToken string
	// PrivateKey is for ssh, PEM; Password is its passphrase where it has one. KnownHosts are the lines that the server's
	// host key is held against.
	PrivateKey, KnownHosts []byte
	// DockerConfig is a .dockerconfigjson: what to send to which registry, where Username and BearerToken are empty.
	DockerConfig []byte
	// CA holds PEM certificates that are trusted instead of the system's; empty: the system's.
	CA []byte
	// Hosts limits where all of them but CA and KnownHosts are sent or used. Empty: the reference's own host only.
	Hosts []string
}

// Snapshot is fetched content, read-only and complete.
type Snapshot struct {
	// FS holds the content below the reference's path. A chart's FS holds the chart's folder content (Chart.yaml on top).
	FS fs.FS
	// Revision is the source's word for it: a commit hash, the digest that an image's tag names, a chart version.
	Revision string
	// Digest is "sha256:<hex>" of the content: of git and images the files, of a chart the bytes of its archive.
	Digest string
	// Stale is why the last look at the source failed, where the content is that of an earlier one; nil where it is not.
	Stale error
}

// Source gets content of one kind from servers. Both verbs may take long and are called off the reconcile path.
//
// What Resolve said is what Fetch brings, or Fetch fails: a commit, a manifest's digest and a chart's digest can't be moved
// in between. So a Source that wraps another one can hold the resolved revision against a signature before it is fetched,
// and checks what is installed.
type Source interface {
	// Resolve says which revision a reference names now, with as little traffic as the protocol allows.
	Resolve(ctx context.Context, reference Reference) (Revision, error)
	// Fetch brings that revision's content into the folder, which exists and is empty, and returns the content's digest.
	Fetch(ctx context.Context, reference Reference, revision Revision, folder string) (digest string, err error)
}

// Revision is what a reference named at one look.
type Revision struct {
	// Name is the commit hash, manifest digest or chart version.
	Name string
	// Digest is the content's digest where the source tells it before fetching (index.yaml); else empty.
	Digest string
}

// Store hands out snapshots without waiting: what it doesn't have, it gets in the background.
type Store interface {
	// Get returns the snapshot if it is known and fresh. ErrPending: it is on its way, and wake is called once it is there
	// or has failed. Any other error: the last attempt failed with it; the store tries again by itself and calls wake.
	// A snapshot whose source can't be reached any more is still handed out.
	//
	// The wake function is also called when the reference names another revision than the one handed out, for an hour
	// after the last Get that brought it: ask again with each reconcile. It is kept under the subscriber's name (one for
	// each name and reference; the installation's namespace/name is a good one). It may be called from any goroutine and
	// more than once, and must return at once.
	Get(reference Reference, subscriber string, wake func()) (Snapshot, error)
	// Refresh makes the store look at the source now, past its interval and its back-off. The next Get answers ErrPending
	// until that look is over.
	Refresh(reference Reference)
}

// ErrPending says that content is on its way.
var ErrPending = errors.New("content is being fetched")

// NotFoundError says that the server answered, and has no such ref, path, chart or version.
type NotFoundError struct {
	// What is the quoted thing that is missing and where: `path "x" in https://… at main`. It has no credentials.
	What string
	// Mend says what there is instead, or what to do; may be empty.
	Mend string
}

func (e *NotFoundError) Error() string {
	if e.Mend == "" {
		return e.What + " not found"
	}
	return e.What + " not found; " + e.Mend
}

// RefusedError says that the content or the reference breaks a limit or a rule; trying again does not help.
type RefusedError struct {
	// Subject is the quoted thing, Rule what it breaks.
	Subject, Rule string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Subject, e.Rule) }

// NotServedError says that this release can't fetch from that kind of source.
type NotServedError struct {
	// Subject is the kind of source, Mend what to use instead.
	Subject, Mend string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("%s is not served by this release: %s", e.Subject, e.Mend)
}

// UnauthorizedError says that the server wants credentials, or refuses the ones it got.
type UnauthorizedError struct {
	// Subject is the URL, without user, password and query.
	Subject string
	// Status is the HTTP status, 401 or 403; 0 where it is not about HTTP.
	Status int
	// Sent says whether credentials were sent at all.
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

// UnavailableError says that the source can't be reached or breaks off; trying again may help.
type UnavailableError struct {
	// Subject is the URL, without user, password and query.
	Subject string
	// Err is what went wrong; it holds no credentials.
	Err error
	// RetryAfter is how long trying again is of no use: the server asked for that, or does not answer at all. Zero: unknown.
	RetryAfter time.Duration
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Subject, e.Err) }

// Unwrap gives what went wrong.
func (e *UnavailableError) Unwrap() error { return e.Err }
