package git

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// frame is an object on the way down a tree of deltas.
type frame struct {
	index   int32
	next    int32 // the delta to resolve next
	content []byte
}

// resolve gives every delta its hash. It walks down from each whole object, so that every object is built once; an object
// goes from memory when its last delta is taken up. What is larger than memoryLimit stays unresolved, with all below
// it: nobody misses it unless the wanted tree needs it.
func (p *pack) resolve() error {
	for index := range p.objects {
		object := p.objects[index]
		if object.base != none || object.kind.IsDelta() || object.child == none || object.length > memoryLimit {
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
	stack, held := []frame{root}, len(root.content)
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == none {
			held -= len(top.content)
			stack = stack[:len(stack)-1]
			continue
		}
		delta, base := top.next, top.content
		top.next = p.objects[delta].sibling
		if top.next == none {
			held -= len(top.content)
			stack = stack[:len(stack)-1]
		}
		content, ok, err := p.patch(base, delta)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		p.identify(delta, p.objects[root.index].kind, content)
		if p.objects[delta].child == none {
			continue
		}
		held += len(content)
		if held > heldLimit {
			return p.refused("its deltas need too much memory")
		}
		stack = append(stack, frame{index: delta, next: p.objects[delta].child, content: content})
	}
	return nil
}

func (p *pack) identify(index int32, kind plumbing.ObjectType, content []byte) {
	hasher := plumbing.NewHasher(kind, int64(len(content)))
	_, _ = hasher.Write(content)
	p.objects[index].kind = kind
	p.name(index, hasher.Sum())
}

// patch applies a delta to its base; ok is false when the result would be too large.
func (p *pack) patch(base []byte, delta int32) (content []byte, ok bool, err error) {
	if p.objects[delta].length > memoryLimit {
		return nil, false, nil
	}
	instructions, err := p.bytes(delta)
	if err != nil {
		return nil, false, err
	}
	_, skip := binary.Uvarint(instructions)
	if skip <= 0 {
		return nil, false, packfile.ErrMalformedPackFile
	}
	size, read := binary.Uvarint(instructions[skip:])
	if read <= 0 {
		return nil, false, packfile.ErrMalformedPackFile
	}
	if size > memoryLimit {
		return nil, false, nil
	}
	if content, err = packfile.PatchDelta(base, instructions); err != nil {
		return nil, false, err
	}
	_, err = p.worker(io.Discard).Write(content)
	return content, true, err
}

// read writes the content of an object of a kind.
func (p *pack) read(hash plumbing.Hash, kind plumbing.ObjectType, into io.Writer) error {
	index, ok := p.byHash[hash]
	if !ok {
		return p.refused(fmt.Sprintf("the pack lacks object %s, or builds it from parts larger than %d MiB", hash, memoryLimit>>20))
	}
	if p.objects[index].kind != kind {
		return p.refused(fmt.Sprintf("object %s is no %s", hash, kind))
	}
	if p.objects[index].base == none {
		return p.problem(p.inflate(index, into))
	}
	chain := []int32{}
	for ; p.objects[index].base != none; index = p.objects[index].base {
		chain = append(chain, index)
	}
	content, err := p.bytes(index)
	for _, delta := range slices.Backward(chain) {
		if err == nil {
			content, _, err = p.patch(content, delta) // it fitted when it was resolved
		}
	}
	if err != nil {
		return p.problem(err)
	}
	_, err = into.Write(content)
	return err
}

// small reads a commit or a tree into memory.
func (p *pack) small(hash plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	if index, ok := p.byHash[hash]; ok && p.objects[index].length > memoryLimit {
		return nil, p.refused(fmt.Sprintf("%s %s is too large", kind, hash))
	}
	var buffer bytes.Buffer
	if err := p.read(hash, kind, &buffer); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
