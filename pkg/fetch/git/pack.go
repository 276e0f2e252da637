package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// packLimits bound the cost of a pack. They keep its memory below 64 MiB: the index of objects
// (about 100 bytes each) and held content.
type packLimits struct {
	objects uint32
	// chain is the maximum length of a chain of deltas. git never writes longer ones.
	chain int
	// steps is the maximum number of reads of objects after the first scan, for deltas and files. Each takes time,
	// even for an empty object.
	steps int
	// work bounds all inflated and built bytes; reading twice counts twice.
	work int64
	// whole is the maximum size of an object that is built from deltas or read into memory.
	whole int64
	// held bounds the content in memory at a time: bases, deltas, results and trees.
	held int64
	// huge objects are not hashed: no tree with them could be unpacked.
	huge int64
	// turns are for packs that are large, by the owner of the reference.
	turns *turns.Turns
}

var defaultPackLimits = packLimits{
	objects: 200_000, chain: 4095, steps: 1_000_000, work: 1 << 30, whole: 8 << 20, held: 24 << 20, huge: 500 << 20,
}

// A pack that has more objects, or holds more bytes, is large. Few packs of a process are large at a time, so that
// all of them fit into the memory of the master's manager.
const (
	smallObjects = 20_000
	smallHeld    = 4 << 20
	largePacks   = 2
)

const none = int32(-1)

// object is an entry of a pack. Deltas get their hash in resolve.
type object struct {
	offset  int64
	length  int64 // inflated; for a delta, of the delta itself
	base    int32
	child   int32 // first delta on this object
	sibling int32 // next delta on the same base, or waiting for the same one
	kind    plumbing.ObjectType
}

// pack is a file of objects that can be read by hash.
type pack struct {
	ctx     context.Context
	owner   string
	remote  string
	scanner *packfile.Scanner
	limits  packLimits
	objects []object // by offset
	byHash  map[plumbing.Hash]int32
	waiting map[plumbing.Hash]int32 // the first of the deltas whose base is named by a hash that is not known yet
	steps   int
	work    int64
	held    int64
	end     func() // ends the turn of the owner
	shrink  func() // ends the turn of a large pack; nil for others
}

// readPack indexes a pack: it hashes every whole object, then resolves the deltas. The caller closes
// the pack.
func readPack(ctx context.Context, file *os.File, owner, remote string, limits packLimits) (*pack, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	end, err := fetch.SpaceOf(ctx).Turn(ctx)
	if err != nil {
		return nil, err
	}
	p := &pack{
		end: end, ctx: ctx, owner: owner, remote: remote, limits: limits,
		byHash: map[plumbing.Hash]int32{}, waiting: map[plumbing.Hash]int32{},
	}
	p.scanner = packfile.NewScanner(ending{file, p})
	ok := false
	defer func() {
		if !ok { // the turns also end if the decoder panics
			p.close()
		}
	}()
	err = p.scan()
	if err == nil {
		err = p.resolve()
	}
	if err != nil {
		return nil, p.problem(err)
	}
	ok = true
	return p, nil
}

// grow waits until the pack may be large, and returns the turn of its owner meanwhile. While it is large it waits for
// that turn and for space on the disk, no longer than its fetch may last.
func (p *pack) grow() error {
	if p.shrink != nil {
		return nil
	}
	p.end()
	p.end = func() {}
	end, err := p.limits.turns.Take(p.ctx, p.owner)
	if err != nil {
		return &fetch.UnavailableError{Subject: p.remote, Err: err}
	}
	p.shrink = end
	if end, err = fetch.SpaceOf(p.ctx).Turn(p.ctx); err == nil {
		p.end = end
	}
	return err
}

func (p *pack) close() {
	p.end()
	if p.shrink != nil {
		p.shrink()
	}
}

func (p *pack) scan() error {
	_, count, err := p.scanner.Header()
	if err != nil {
		return err
	}
	if count > p.limits.objects {
		return p.refused(fmt.Sprintf("the pack has more than %d objects", p.limits.objects))
	}
	if count > smallObjects {
		if err := p.grow(); err != nil {
			return err
		}
	}
	p.objects = make([]object, 0, count)
	for range count {
		header, err := p.scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := p.add(header); err != nil {
			return err
		}
	}
	_, err = p.scanner.Checksum()
	return err
}

func (p *pack) add(header *packfile.ObjectHeader) error {
	if header.Length < 0 {
		return packfile.ErrMalformedPackFile
	}
	if header.Length > p.limits.work-p.work { // the size of its header: the scanner inflates no object to more than that
		return p.tooMuchWork()
	}
	index := int32(len(p.objects))
	entry := object{
		offset: header.Offset, length: header.Length, kind: header.Type, base: none, child: none, sibling: none,
	}
	if header.Type.IsDelta() || header.Length > p.limits.huge {
		if _, _, err := p.scanner.NextObject(p.worker(io.Discard)); err != nil {
			return err
		}
		p.objects = append(p.objects, entry)
		if !header.Type.IsDelta() {
			return nil
		}
		return p.attach(index, header)
	}
	hasher := plumbing.NewHasher(header.Type, header.Length)
	written, _, err := p.scanner.NextObject(p.worker(hasher))
	if err != nil {
		return err
	}
	if written != header.Length {
		return packfile.ErrMalformedPackFile
	}
	p.objects = append(p.objects, entry)
	p.name(index, hasher.Sum())
	return nil
}

func (p *pack) attach(index int32, header *packfile.ObjectHeader) error {
	if header.Type == plumbing.REFDeltaObject {
		if base, ok := p.byHash[header.Reference]; ok {
			p.hang(index, base)
			return nil
		}
		if next, ok := p.waiting[header.Reference]; ok {
			p.objects[index].sibling = next
		}
		p.waiting[header.Reference] = index
		return nil
	}
	base, ok := slices.BinarySearchFunc(p.objects, header.OffsetReference, func(o object, offset int64) int {
		return int(min(max(o.offset-offset, -1), 1))
	})
	if !ok || int32(base) == index {
		return packfile.ErrMalformedPackFile
	}
	p.hang(index, int32(base))
	return nil
}

func (p *pack) hang(index, base int32) {
	p.objects[index].base = base
	p.objects[index].sibling = p.objects[base].child
	p.objects[base].child = index
}

// name records an object's hash, and attaches the deltas that waited for it.
func (p *pack) name(index int32, hash plumbing.Hash) {
	if _, ok := p.byHash[hash]; ok {
		return
	}
	p.byHash[hash] = index
	delta, ok := p.waiting[hash]
	if !ok {
		return
	}
	delete(p.waiting, hash)
	for delta != none {
		next := p.objects[delta].sibling // hang sets it again
		p.hang(delta, index)
		delta = next
	}
}

func (p *pack) inflate(index int32, into io.Writer) error {
	if p.steps++; p.steps > p.limits.steps {
		return p.refused(fmt.Sprintf("objects of the pack have to be read more than %d times: shorten its chains of deltas (git repack -adf)",
			p.limits.steps))
	}
	if _, err := p.scanner.SeekObjectHeader(p.objects[index].offset); err != nil {
		return err
	}
	_, _, err := p.scanner.NextObject(p.worker(into))
	return err
}

// hold adds to the content in memory, until release.
func (p *pack) hold(size int64) error {
	if p.held += size; p.held > p.limits.held {
		return p.refused("its trees and deltas need more than " + outbound.Bytes(p.limits.held) + " of memory at a time")
	}
	if p.held > smallHeld {
		return p.grow()
	}
	return nil
}

func (p *pack) release(size int) { p.held -= int64(size) }

// bytes reads one entry into memory. The caller releases it.
func (p *pack) bytes(index int32) ([]byte, error) {
	if p.objects[index].length > p.limits.whole {
		return nil, p.refused("it has an unexpected object larger than " + outbound.Bytes(p.limits.whole))
	}
	if err := p.hold(p.objects[index].length); err != nil {
		return nil, err
	}
	buffer := bytes.NewBuffer(make([]byte, 0, p.objects[index].length))
	if err := p.inflate(index, buffer); err != nil {
		return nil, err
	}
	if int64(buffer.Len()) != p.objects[index].length {
		return nil, packfile.ErrMalformedPackFile
	}
	return buffer.Bytes(), nil
}

// ending is the file of a pack whose reads fail after the end of the context. A stream that inflates to nothing also
// costs work.
type ending struct {
	*os.File
	pack *pack
}

func (e ending) Read(into []byte) (int, error) {
	if e.pack.ctx.Err() != nil {
		return 0, &fetch.UnavailableError{Subject: e.pack.remote, Err: context.Cause(e.pack.ctx)}
	}
	return e.File.Read(into)
}

// worker counts inflated bytes, and stops at the limit.
func (p *pack) worker(into io.Writer) io.Writer { return &worker{pack: p, into: into} }

type worker struct {
	pack *pack
	into io.Writer
}

func (w *worker) Write(content []byte) (int, error) {
	w.pack.work += int64(len(content))
	if w.pack.work > w.pack.limits.work {
		return 0, w.pack.tooMuchWork()
	}
	return w.into.Write(content)
}

func (p *pack) tooMuchWork() error {
	return p.refused("the pack inflates to more than " + outbound.Bytes(p.limits.work))
}

func (p *pack) refused(rule string) error { return &fetch.RefusedError{Subject: p.remote, Rule: rule} }

// problem converts errors of the decoder to types: an unreadable pack may be a transfer error. Errors of our own disk
// are not converted.
func (p *pack) problem(err error) error {
	var disk *fs.PathError
	if err == nil || ours(err) || errors.As(err, &disk) {
		return err
	}
	return &fetch.UnavailableError{Subject: p.remote, Err: fmt.Errorf("the pack is damaged: %w", err)}
}
