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

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const (
	// objectsLimit bounds the index that is kept in memory, about 100 bytes an object.
	objectsLimit = 400_000
	// workLimit bounds what is inflated altogether, reading twice counts twice.
	workLimit = 1 << 30
	// memoryLimit is the largest object that is built from deltas, or read into memory at all.
	memoryLimit = 16 << 20
	// hugeObject is the size from which on an object is not even hashed: no tree with it could be unpacked.
	hugeObject = 500 << 20
	// heldLimit is how much of a tree of deltas is in memory at a time.
	heldLimit = 48 << 20
)

// none is no object.
const none = int32(-1)

// object is an entry of a pack. Deltas get their hash once they are resolved.
type object struct {
	offset  int64
	length  int64 // inflated; of a delta, of the delta itself
	kind    plumbing.ObjectType
	base    int32
	hash    plumbing.Hash
	known   bool
	child   int32 // first delta on this object
	sibling int32 // next delta on the same base
}

// pack is a file of objects that can be read by hash.
type pack struct {
	ctx     context.Context
	remote  string
	file    *os.File
	scanner *packfile.Scanner
	objects []object // by offset
	byHash  map[plumbing.Hash]int32
	waiting map[plumbing.Hash][]int32 // deltas whose base is named by hash and not known yet
	work    int64
}

// readPack indexes a pack: one pass inflates and hashes every whole object, a second one resolves the deltas.
func readPack(ctx context.Context, file *os.File, remote string) (*pack, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	p := &pack{
		ctx: ctx, remote: remote, file: file, scanner: packfile.NewScanner(file),
		byHash: map[plumbing.Hash]int32{}, waiting: map[plumbing.Hash][]int32{},
	}
	if err := p.scan(); err != nil {
		return nil, p.problem(err)
	}
	if err := p.resolve(); err != nil {
		return nil, p.problem(err)
	}
	return p, nil
}

func (p *pack) scan() error {
	_, count, err := p.scanner.Header()
	if err != nil {
		return err
	}
	if count > objectsLimit {
		return p.refused(fmt.Sprintf("the pack has more than %d objects", objectsLimit))
	}
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
	index := int32(len(p.objects))
	entry := object{
		offset: header.Offset, length: header.Length, kind: header.Type, base: none, child: none, sibling: none,
	}
	if header.Type.IsDelta() || header.Length > hugeObject {
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

// attach hangs a delta below its base.
func (p *pack) attach(index int32, header *packfile.ObjectHeader) error {
	if header.Type == plumbing.REFDeltaObject {
		if base, ok := p.byHash[header.Reference]; ok {
			p.hang(index, base)
			return nil
		}
		p.waiting[header.Reference] = append(p.waiting[header.Reference], index)
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

// name makes an object known by its hash, and gives it the deltas that waited for it.
func (p *pack) name(index int32, hash plumbing.Hash) {
	p.objects[index].hash, p.objects[index].known = hash, true
	if _, ok := p.byHash[hash]; ok {
		return
	}
	p.byHash[hash] = index
	for _, delta := range p.waiting[hash] {
		p.hang(delta, index)
	}
	delete(p.waiting, hash)
}

// inflate reads one entry as it stands in the pack.
func (p *pack) inflate(index int32, into io.Writer) error {
	if _, err := p.scanner.SeekObjectHeader(p.objects[index].offset); err != nil {
		return err
	}
	_, _, err := p.scanner.NextObject(p.worker(into))
	return err
}

// bytes reads one entry into memory.
func (p *pack) bytes(index int32) ([]byte, error) {
	if p.objects[index].length > memoryLimit {
		return nil, p.refused("it has an object larger than " + outbound.Bytes(memoryLimit) + " where none is expected")
	}
	buffer := bytes.NewBuffer(make([]byte, 0, p.objects[index].length))
	err := p.inflate(index, buffer)
	return buffer.Bytes(), err
}

// worker counts what is inflated, and stops when it is too much or nobody waits any more.
func (p *pack) worker(into io.Writer) io.Writer { return &worker{pack: p, into: into} }

type worker struct {
	pack *pack
	into io.Writer
}

// Write passes on and counts.
func (w *worker) Write(content []byte) (int, error) {
	if w.pack.ctx.Err() != nil {
		return 0, &fetch.UnavailableError{Subject: w.pack.remote, Err: context.Cause(w.pack.ctx)}
	}
	w.pack.work += int64(len(content))
	if w.pack.work > workLimit {
		return 0, w.pack.refused("the pack inflates to more than " + outbound.Bytes(workLimit))
	}
	return w.into.Write(content)
}

func (p *pack) refused(rule string) error { return &fetch.RefusedError{Subject: p.remote, Rule: rule} }

// problem gives errors of the decoder a type: a pack that can't be read may be a transfer that went wrong. Errors of our own
// disk stay what they are.
func (p *pack) problem(err error) error {
	var disk *fs.PathError
	if err == nil || ours(err) || errors.As(err, &disk) {
		return err
	}
	return &fetch.UnavailableError{Subject: p.remote, Err: fmt.Errorf("the pack is damaged: %w", err)}
}
