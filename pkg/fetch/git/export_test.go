package git

import (
	"context"
	"net"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"

	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Limit sets limits that a test reaches without tens of thousands of files.
func (s *Source) Limit(limits archive.Limits) { s.limits = limits }

// LimitWire sets the limits of received refs and packs, in bytes.
func (s *Source) LimitWire(refs, pack int64) { s.wire = wireLimits{refs: refs, pack: pack} }

// ShrinkWork sets a limit on inflating that a test reaches without minutes of work: only the limit changes.
func (s *Source) ShrinkWork(limit int64) { s.packs.work = limit }

// ShrinkSteps sets the limit on reading objects again.
func (s *Source) ShrinkSteps(limit int) { s.packs.steps = limit }

// Limits of packs in production.
var (
	WorkLimit    = defaultPackLimits.work
	ObjectsLimit = defaultPackLimits.objects
	ChainLimit   = defaultPackLimits.chain
	StepsLimit   = defaultPackLimits.steps

	AdvertisementLimit, PackLimit int64 = advertisementLimit, packLimit
)

// LargePacks is the maximum number of large packs of a source at a time.
const LargePacks = largePacks

// IsDotGit is the check for entries of trees.
var IsDotGit = isDotGit

// ParseSSH parses a remote by ssh: its user, its form for messages, and the path for the server.
func ParseSSH(text string) (user, shown, path string, err error) {
	remote, err := parseSSH(text)
	if err != nil {
		return "", "", "", err
	}
	return remote.user, remote.shown(), remote.path, nil
}

// CheckHostKey compares a key that a host offers at port 22 with a known_hosts.
func CheckHostKey(hosts, host string, key ssh.PublicKey) error {
	read, err := readHostKeys([]byte(hosts), host, "22")
	if err != nil {
		return err
	}
	return read.check(host+":22", &net.TCPAddr{}, key)
}

// OpenPack indexes a pack, which counts for the source until it is closed.
func (s *Source) OpenPack(ctx context.Context, t *testing.T, owner string, content []byte) (closing func(), err error) {
	t.Helper()
	file, err := archive.Nameless(t.Context(), t.TempDir())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.Write(content); err != nil {
		return nil, err
	}
	pack, err := readPack(ctx, file.File, owner, "https://example.com/x", s.packs)
	if err != nil {
		return nil, err
	}
	return pack.close, nil
}

// ReadPack indexes a pack and writes the files of a commit's tree.
func ReadPack(t *testing.T, content []byte, commit, folder string) error {
	t.Helper()
	file, err := archive.Nameless(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	source := New(outbound.New(outbound.Options{}))
	source.limits = archive.Limits{Unpacked: 1 << 20, Entries: 100}
	pack, err := readPack(t.Context(), file.File, "", "https://example.com/x", source.packs)
	if err != nil {
		return err
	}
	defer pack.close()
	_, err = source.write(t.Context(), Location{Remote: "https://example.com/x"}, pack, plumbing.NewHash(commit), folder)
	return err
}
