package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// Fetch writes the commit's files below the reference's path. The pack is in a nameless file.
func (s *Source) Fetch(ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string) (string, error) {
	location, _, err := s.check(reference)
	if err != nil {
		return "", err
	}
	if !commitPattern.MatchString(revision.Name) {
		return "", refusedRef(revision.Name, "write a commit as its full hash, 40 hexadecimal digits")
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	file, err := archive.Nameless(ctx, filepath.Dir(folder))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	commit := plumbing.NewHash(revision.Name)
	pack, err := s.pack(ctx, location, reference, commit, file)
	if err != nil {
		return "", err
	}
	defer pack.close()
	return s.write(ctx, location, pack, commit, folder)
}

func (s *Source) pack(
	ctx context.Context, location Location, reference fetch.Reference, commit plumbing.Hash, file *archive.Download,
) (*pack, error) {
	link, err := s.link(location, reference.Credentials)
	if err != nil {
		return nil, err
	}
	defer link.close()
	search := search{commit: commit, known: map[plumbing.Hash]bool{}}
	found, err := advertise(ctx, link, search.visit)
	if err != nil {
		return nil, err
	}
	wants, depth := search.plan(found.capabilities)
	if len(wants) == 0 {
		return nil, s.missing(location, "commit "+commit.String(), found)
	}
	if err := found.upload(ctx, link, uploadRequest{wants: wants, depth: depth}, file); err != nil {
		return nil, err
	}
	link.close() // nothing more is read, and the pack may wait for its turn
	read, err := readPack(ctx, file.File, reference.Owner, s.shown(location), s.packs)
	if err != nil {
		return nil, err
	}
	if _, ok := read.byHash[commit]; !ok {
		read.close()
		return nil, s.missing(location, "commit "+commit.String(), found)
	}
	return read, nil
}

func (s *Source) write(ctx context.Context, location Location, pack *pack, commit plumbing.Hash, folder string) (string, error) {
	below, err := archive.CleanPath(location.Path)
	if err != nil {
		return "", err
	}
	into, err := archive.OpenFolder(ctx, folder, s.limits)
	if err != nil {
		return "", err
	}
	defer into.Close()
	tree := walk{pack: pack, into: into, remote: s.shown(location), at: shownRef(location, commit)}
	if err := tree.write(commit, below); err != nil {
		return "", err
	}
	return into.Digest(), nil
}

func shownRef(location Location, commit plumbing.Hash) string {
	ask, err := want(location)
	if err != nil || ask.commit != "" {
		return "commit " + commit.String()
	}
	return fmt.Sprintf("%s (commit %s)", ask.text, commit)
}

type search struct {
	commit plumbing.Hash
	tip    plumbing.Hash // object to request to get the commit: itself, or the annotated tag that names it
	last   advertised
	all    []plumbing.Hash
	known  map[plumbing.Hash]bool
}

func (s *search) visit(ref advertised) {
	switch {
	case ref.hash == s.commit && ref.name == s.last.name+peeled:
		if s.tip.IsZero() {
			s.tip = s.last.hash
		}
	case ref.hash == s.commit:
		s.tip = ref.hash
	}
	s.last = ref
	if isBranchOrTag(ref.name) && !s.known[ref.hash] && len(s.all) <= wantLimit {
		s.known[ref.hash] = true
		s.all = append(s.all, ref.hash)
	}
}

// plan returns the objects to request: the commit alone, if it is a tip or the server gives commits by hash;
// otherwise the history of all branches and tags.
func (s *search) plan(capabilities map[string]bool) (wants []plumbing.Hash, depth int) {
	shallow := 0
	if capabilities["shallow"] {
		shallow = 1
	}
	switch {
	case !s.tip.IsZero():
		return []plumbing.Hash{s.tip}, shallow
	case capabilities["allow-reachable-sha1-in-want"]:
		return []plumbing.Hash{s.commit}, shallow
	}
	return s.all, 0
}

const (
	// packLimit is the maximum size of an answer with a pack, in bytes on the wire.
	packLimit = 200 << 20
	// progressLimit bounds messages next to the pack, in bytes. We request none.
	progressLimit = 1 << 20
)

// wantLimit is the maximum number of tips to request in a search for a commit.
const wantLimit = 20_000

type uploadRequest struct {
	wants []plumbing.Hash
	depth int // 0: with all history
}

// encode writes the request: wants, the first with our capabilities, depth, flush, done.
func (u uploadRequest) encode() ([]byte, error) {
	var request bytes.Buffer
	lines := pktline.NewEncoder(&request)
	capabilities := " ofs-delta side-band-64k no-progress agent=trellis"
	for _, hash := range u.wants {
		if err := lines.Encodef("want %s%s\n", hash, capabilities); err != nil {
			return nil, err
		}
		capabilities = ""
	}
	if u.depth > 0 {
		if err := lines.Encodef("deepen %d\n", u.depth); err != nil {
			return nil, err
		}
	}
	if err := lines.Flush(); err != nil {
		return nil, err
	}
	err := lines.EncodeString("done\n")
	return request.Bytes(), err
}

func (a *advertisement) upload(ctx context.Context, from link, request uploadRequest, file io.Writer) error {
	if !a.capabilities["side-band-64k"] {
		return &fetch.RefusedError{Subject: outbound.Shown(a.base), Rule: "the server is too old: it lacks side-band-64k"}
	}
	if len(request.wants) > wantLimit {
		return &fetch.RefusedError{Subject: outbound.Shown(a.base), Rule: fmt.Sprintf(
			"no branch or tag is at the commit, the server does not serve commits by hash, and there are more than %d refs to search", wantLimit)}
	}
	content, err := request.encode()
	if err != nil {
		return err
	}
	answer, err := from.upload(ctx, content)
	if err != nil {
		return err
	}
	defer answer.Close()
	return a.receive(answer, request.depth > 0, &bands{into: file, progress: progressLimit})
}

// receive reads the answer: with depth the shallow commits and a flush, then NAK, then the pack.
func (a *advertisement) receive(from io.Reader, shallow bool, into *bands) error {
	lines := pktline.NewScanner(from)
	for lines.Scan() {
		switch line := string(lines.Bytes()); {
		case shallow && line == "":
			shallow = false
		case shallow && strings.HasPrefix(line, "shallow "), shallow && strings.HasPrefix(line, "unshallow "):
		case !shallow && strings.HasPrefix(line, "NAK"):
			return a.bands(lines, into)
		default:
			return a.brokenPack(nil)
		}
	}
	return a.brokenPack(lines.Err())
}

// Bands of the side-band protocol.
const (
	bandPack     = 1
	bandProgress = 2
	bandError    = 3
)

type bands struct {
	into     io.Writer
	progress int64 // the number of further bytes of it that are read; none were requested
}

func (a *advertisement) bands(lines *pktline.Scanner, into *bands) error {
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			return nil
		}
		switch line[0] {
		case bandPack:
			if _, err := into.into.Write(line[1:]); err != nil {
				return fmt.Errorf("keep pack: %w", err)
			}
		case bandProgress:
			if into.progress -= int64(len(line)); into.progress < 0 {
				return &fetch.RefusedError{
					Subject: outbound.Shown(a.base), Rule: "its messages next to the pack are larger than " + outbound.Bytes(progressLimit),
				}
			}
		case bandError:
			return a.brokenPack(errors.New("the server reports a failure"))
		default:
			return a.brokenPack(nil)
		}
	}
	return a.brokenPack(lines.Err())
}

func (a *advertisement) brokenPack(err error) error {
	return protocolError(a.base, err, "the server sends no complete pack")
}

func isBranchOrTag(name string) bool {
	return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") && !strings.HasSuffix(name, peeled)
}
