package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
)

// Fetch writes the commit's files below the reference's path into the folder. The pack is in a
// nameless file beside it.
func (s *Source) Fetch(ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string) (string, error) {
	location, _, err := s.check(reference)
	if err != nil {
		return "", err
	}
	if !commitPattern.MatchString(revision.Name) {
		return "", refusedRef(revision.Name, "a commit is its full hash, 40 hexadecimal digits")
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	file, err := archive.Nameless(filepath.Dir(folder))
	if err != nil {
		return "", err
	}
	defer file.Close()
	commit := plumbing.NewHash(revision.Name)
	pack, err := s.pack(ctx, location, reference.Credentials, commit, file)
	if err != nil {
		return "", err
	}
	return s.write(ctx, location, pack, commit, folder)
}

func (s *Source) pack(
	ctx context.Context, location Location, credentials fetch.Credentials, commit plumbing.Hash, file *os.File,
) (*pack, error) {
	link, err := s.link(location, credentials)
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
	read, err := readPack(ctx, file, s.shown(location), s.packs)
	if err != nil {
		return nil, err
	}
	if _, ok := read.byHash[commit]; !ok {
		return nil, s.missing(location, "commit "+commit.String(), found)
	}
	return read, nil
}

func (s *Source) write(ctx context.Context, location Location, pack *pack, commit plumbing.Hash, folder string) (string, error) {
	below, err := archive.CleanPath(location.Path)
	if err != nil {
		return "", err
	}
	into, err := archive.OpenFolder(folder, s.limits)
	if err != nil {
		return "", err
	}
	defer into.Close()
	tree := walk{ctx: ctx, pack: pack, into: into, remote: s.shown(location), at: shownRef(location, commit)}
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
	tip    plumbing.Hash // what to ask for to get the commit: itself, or the annotated tag that names it
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

// plan says what to ask for: the commit alone, if it is a tip or the server gives commits by hash;
// else the history of all branches and tags.
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
