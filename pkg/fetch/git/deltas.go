package git

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// frame is an object on the stack of resolve.
type frame struct {
	index   int32
	next    int32 // the delta to resolve next
	deltas  int   // number of deltas that it is built from
	content []byte
}

// resolve computes every delta's hash. It descends from each whole object, so that each object is built once, and is
// released after its last delta. Objects that are too large stay unresolved with all deltas on them, which is an
// error only if the requested tree needs them.
func (p *pack) resolve() error {
	for index := range p.objects {
		object := p.objects[index]
		if object.base != none || object.kind.IsDelta() || object.child == none || object.length > p.limits.whole {
			continue
		}
		content, err := p.bytes(int32(index))
		if err != nil {
			return err
		}
		if err := p.descend(frame{index: int32(index), next: object.child, content: content}); err != nil {
			return err
		}
	}
	return nil
}

func (p *pack) descend(root frame) error {
	stack, kind := []frame{root}, p.objects[root.index].kind
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		delta, deltas := top.next, top.deltas+1
		if deltas > p.limits.chain {
			return p.refused(fmt.Sprintf("the pack has a chain of more than %d deltas: shorten its chains (git repack -adf)", p.limits.chain))
		}
		content, ok, err := p.patch(top.content, delta)
		if err != nil {
			return err
		}
		if top.next = p.objects[delta].sibling; top.next == none {
			p.release(len(top.content))
			top.content = nil
			stack = stack[:len(stack)-1]
		}
		if !ok {
			continue
		}
		p.identify(delta, kind, content)
		if p.objects[delta].child == none {
			p.release(len(content))
			continue
		}
		stack = append(stack, frame{index: delta, next: p.objects[delta].child, deltas: deltas, content: content})
	}
	return nil
}

func (p *pack) identify(index int32, kind plumbing.ObjectType, content []byte) {
	hasher := plumbing.NewHasher(kind, int64(len(content)))
	_, _ = hasher.Write(content)
	p.objects[index].kind = kind
	p.name(index, hasher.Sum())
}

// patch applies a delta to its base; not ok: the result is too large. The caller releases it.
func (p *pack) patch(base []byte, delta int32) (content []byte, ok bool, err error) {
	if p.objects[delta].length > p.limits.whole {
		return nil, false, nil
	}
	instructions, err := p.bytes(delta)
	if err != nil {
		return nil, false, err
	}
	defer p.release(len(instructions))
	_, skip := binary.Uvarint(instructions)
	if skip <= 0 {
		return nil, false, packfile.ErrMalformedPackFile
	}
	size, read := binary.Uvarint(instructions[skip:])
	if read <= 0 {
		return nil, false, packfile.ErrMalformedPackFile
	}
	if size > uint64(p.limits.whole) {
		return nil, false, nil
	}
	if err := p.hold(int64(size)); err != nil {
		return nil, false, err
	}
	if content, err = packfile.PatchDelta(base, instructions); err != nil {
		return nil, false, err
	}
	_, err = p.worker(io.Discard).Write(content)
	return content, true, err
}

func (p *pack) read(hash plumbing.Hash, kind plumbing.ObjectType, into io.Writer) error {
	index, err := p.find(hash, kind)
	if err != nil {
		return err
	}
	if p.objects[index].base == none {
		return p.problem(p.inflate(index, into))
	}
	content, err := p.build(index)
	if err != nil {
		return p.problem(err)
	}
	defer p.release(len(content))
	_, err = into.Write(content)
	return err
}

// small reads a commit or a tree into memory. The caller releases it.
func (p *pack) small(hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	index, err := p.find(hash, kind)
	if err != nil {
		return nil, err
	}
	if p.objects[index].length > p.limits.whole {
		return nil, p.refused(fmt.Sprintf("%s %s is too large", kind, hash))
	}
	content, err := p.build(index)
	return content, p.problem(err)
}

func (p *pack) find(hash plumbing.Hash, kind plumbing.ObjectType) (int32, error) {
	index, ok := p.byHash[hash]
	if !ok {
		return none, p.refused(fmt.Sprintf("the pack lacks object %s, or builds it from parts larger than %s",
			hash, outbound.Bytes(p.limits.whole)))
	}
	if p.objects[index].kind != kind {
		return none, p.refused(fmt.Sprintf("object %s is no %s", hash, kind))
	}
	return index, nil
}

// build returns an object's content, with deltas applied. The caller releases it.
func (p *pack) build(index int32) ([]byte, error) {
	chain := []int32{}
	for ; p.objects[index].base != none; index = p.objects[index].base {
		chain = append(chain, index)
	}
	content, err := p.bytes(index)
	for _, delta := range slices.Backward(chain) {
		if err != nil {
			return nil, err
		}
		base := content
		content, _, err = p.patch(base, delta) // it fitted when it was resolved
		p.release(len(base))
	}
	return content, err
}
