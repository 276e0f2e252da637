package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Try fetches from the source once, lets look read the content until it returns, and stores none of it.
func (s *Store) Try(
	ctx context.Context, reference fetch.Reference, look func(ctx context.Context, content fetch.Snapshot) error,
) (err error) {
	reference, err = s.served(reference)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.jobs.Add(1)
	s.mu.Unlock()
	defer s.jobs.Done()
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	defer func() {
		if recover() != nil { // as in resolveAndFetch
			err = &fetch.RefusedError{Subject: "the content", Rule: errDecoder.Error()}
		}
	}()
	source, err := s.options.Kinds.Source(reference)
	if err != nil {
		return err
	}
	revision, err := source.Resolve(ctx, reference)
	if err != nil {
		return err
	}
	return s.disk.show(ctx, reference.Owner, func(ctx context.Context, folder string) (string, error) {
		return source.Fetch(ctx, reference, revision, folder)
	}, func(content fs.FS, digest string) error {
		return look(ctx, fetch.Snapshot{FS: content, Revision: revision.Name, Digest: digest})
	})
}

// show lets source fill a folder, and look read it before it is removed.
func (d *disk) show(
	ctx context.Context, owner string, source fetching, look func(content fs.FS, digest string) error,
) (err error) {
	hold := d.begin(owner)
	defer d.end(hold)
	if err := d.reserve(ctx, hold, fetch.EntryCost); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Join(d.folder, workFolder), "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(work)) }()
	digest, err := source(d.space(ctx, hold), work)
	d.leave(hold)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return look(root.FS(), digest)
}
