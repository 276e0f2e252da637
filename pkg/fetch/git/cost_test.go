package git_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
)

// written is a pack of so many objects.
func written(count int, write func(p *pack)) []byte {
	var content bytes.Buffer
	p := newPack(&content, uint32(count))
	write(p)
	p.end()
	return content.Bytes()
}

// TestChainsOfDeltasAreBounded (V21): A chain of deltas is refused if it is longer than any that git writes.
func TestChainsOfDeltasAreBounded(t *testing.T) {
	good := []byte("good")
	tree, commit := commitOf(objectHash("blob", good))
	for deltas, fits := range map[int]bool{git.ChainLimit: true, git.ChainLimit + 1: false} {
		content := written(deltas+3, func(p *pack) {
			p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
			p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
			p.chain(good, deltas)
		})
		err := git.ReadPack(t, content, objectHash("commit", commit), folder(t))
		if fits && err != nil || !fits && (!isRefused(err) || !strings.Contains(err.Error(), "a chain of more than")) {
			t.Errorf("%d deltas: got %v", deltas, err)
		}
	}
}

// TestObjectsThatAreReadAgainAreCounted (V21): A pack with empty objects that are read again and again is refused:
// they count for no work in bytes.
func TestObjectsThatAreReadAgainAreCounted(t *testing.T) {
	const many = 300
	empty := objectHash("tree", nil)
	inner := bytes.Repeat(append([]byte("40000 b\x00"), raw(empty)...), many)
	outer := bytes.Repeat(append([]byte("40000 a\x00"), raw(objectHash("tree", inner))...), many)
	commit := []byte("tree " + objectHash("tree", outer) + "\n\nx\n")
	server := hostile{refs: onMain(objectHash("commit", commit)), pack: ended(func(p *pack) {
		p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
		for _, tree := range [][]byte{outer, inner, nil} {
			p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
		}
	}, 4)}
	for limit, fits := range map[int]bool{many * many / 2: false, git.StepsLimit: true} {
		_, err := try(t, server, func(s *git.Source) { s.ShrinkSteps(limit) })
		if fits && err != nil || !fits && (!isRefused(err) || !strings.Contains(err.Error(), "have to be read more than")) {
			t.Errorf("%d: got %v", limit, err)
		}
	}
}

// TestPacksOfNothingEndWithTheirContext (V21): A pack of objects that inflate to nothing is read no longer than its
// fetch may last. The test fails when reads of the file do not end with the context.
func TestPacksOfNothingEndWithTheirContext(t *testing.T) {
	nothing := append([]byte{0x78, 0x9c}, bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 10_000)...) // stored blocks of no bytes
	nothing = append(nothing, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 1)
	content := written(1, func(p *pack) { p.entry(blobKind, 0, nil, nothing) })
	ctx, cancel := context.WithCancel(t.Context())
	closing, err := git.New(nil).OpenPack(ctx, t, "custom", content)
	if err != nil {
		t.Fatal(err)
	}
	closing()
	cancel()
	if _, err = git.New(nil).OpenPack(ctx, t, "custom", content); !errors.Is(err, context.Canceled) || !isOurs(err) {
		t.Errorf("got %v", err)
	}
}

// largePacks are packs that need a turn, each for another reason.
func largePacks() map[string][]byte {
	const size = 5 << 20
	shrink := binary.AppendUvarint(nil, size)
	shrink = append(shrink, 4, 0x90, 4) // 4 bytes from the start
	return map[string][]byte{
		"many objects": written(20_001, func(p *pack) {
			deflated := deflate([]byte("good"))
			for range 20_001 {
				p.entry(blobKind, 4, nil, deflated)
			}
		}),
		"a large object": written(2, func(p *pack) {
			base := p.entry(blobKind, size, nil, deflate(make([]byte, size)))
			p.entry(ofsDeltaKind, int64(len(shrink)), distance(p.offset-base), deflate(shrink))
		}),
	}
}

// TestLargePacksTakeTurns (V21): Packs that use much memory take turns. Those of ordinary repositories don't wait,
// and a waiting one gives up when its context ends.
func TestLargePacksTakeTurns(t *testing.T) {
	small := written(40, func(p *pack) {
		for i := range 20 {
			content := bytes.Repeat([]byte{byte(i)}, 1<<20)
			base := p.entry(blobKind, int64(len(content)), nil, deflate(content))
			same := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<20), 64<<10)
			same = append(same, 0x80) // 64 KiB from the start
			p.entry(ofsDeltaKind, int64(len(same)), distance(p.offset-base), deflate(same))
		}
	})
	for why, large := range largePacks() {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := git.New(nil)
				open := func(ctx context.Context, content []byte) func() {
					t.Helper()
					closing, err := source.OpenPack(ctx, t, "custom", content)
					if err != nil {
						t.Fatal(err)
					}
					return closing
				}
				closing := open(t.Context(), large)
				for range git.LargePacks - 1 {
					defer open(t.Context(), large)()
				}
				defer open(t.Context(), small)()

				impatient, giveUp := context.WithCancel(t.Context())
				results := make(chan error, 2)
				for _, ctx := range []context.Context{impatient, t.Context()} {
					go func() {
						closing, err := source.OpenPack(ctx, t, "custom", large)
						if err == nil {
							defer closing()
						}
						results <- err
					}()
				}
				synctest.Wait()
				if len(results) > 0 {
					t.Fatalf("more than %d packs are large at a time, or it failed: %v", git.LargePacks, <-results)
				}
				giveUp()
				if _, ok := errors.AsType[*fetch.UnavailableError](<-results); !ok {
					t.Error("the pack whose context ended did not give up")
				}
				closing()
				if err := <-results; err != nil {
					t.Errorf("the pack that waited for its turn: %v", err)
				}
			})
		})
	}
}

// TestLargePacksOfOneOwnerComeAfterThoseOfOthers (V21): Large packs of one owner keep no other owner from its turn.
// The test fails when packs don't take turns by owner.
func TestLargePacksOfOneOwnerComeAfterThoseOfOthers(t *testing.T) {
	large := largePacks()["many objects"]
	synctest.Test(t, func(t *testing.T) {
		source, opened, ends := git.New(nil), make(chan string, 10), map[string]func(){}
		open := func(owner, name string) {
			go func() {
				closing, err := source.OpenPack(t.Context(), t, owner, large)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					closing = func() {}
				}
				ends[name] = closing
				opened <- name
			}()
			synctest.Wait()
		}
		for n := range git.LargePacks + 2 {
			open("many", fmt.Sprintf("many-%d", n))
		}
		open("one", "one")
		for _, next := range []string{"one", fmt.Sprintf("many-%d", git.LargePacks), fmt.Sprintf("many-%d", git.LargePacks+1)} {
			ends[<-opened]()
			synctest.Wait()
			if ends[next] == nil {
				t.Errorf("it is not the turn of %s", next)
			}
		}
		for range git.LargePacks {
			ends[<-opened]()
		}
	})
}

// TestPacksThatWaitToBeLargeHoldUpNoOther (V21): Packs that wait until they may be large hold up no other pack of
// their owner. The test fails when they keep the turn of their owner.
func TestPacksThatWaitToBeLargeHoldUpNoOther(t *testing.T) {
	large, small := largePacks()["many objects"], written(1, func(p *pack) { p.entry(blobKind, 4, nil, deflate([]byte("good"))) })
	synctest.Test(t, func(t *testing.T) {
		source, decoding, done := git.New(nil), &turns.Turns{Each: git.LargePacks}, make(chan struct{})
		var mutex sync.Mutex
		opened := map[string]int{}
		open := func(owner, name string, content []byte) {
			ctx := fetch.WithSpace(t.Context(), fetch.Space{Turn: func(ctx context.Context) (func(), error) { return decoding.Take(ctx, owner) }})
			go func() {
				closing, err := source.OpenPack(ctx, t, owner, content)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				mutex.Lock()
				opened[name]++
				mutex.Unlock()
				<-done
				closing()
			}()
			synctest.Wait()
		}
		for range git.LargePacks {
			open("b", "others", large)
		}
		for range git.LargePacks {
			open("a", "large", large)
		}
		open("a", "small", small)
		if opened["others"] != git.LargePacks || opened["large"] != 0 || opened["small"] != 1 {
			t.Errorf("these are open: %v", opened)
		}
		close(done)
		synctest.Wait()
		if opened["large"] != git.LargePacks || opened["small"] != 1 {
			t.Errorf("these were opened in the end: %v", opened)
		}
	})
}

// TestTurnsEndWithTheFetch (V21): A fetch returns its owner's turn, and that of a large pack, in every case.
func TestTurnsEndWithTheFetch(t *testing.T) {
	good := []byte("good")
	tree, commit := commitOf(objectHash("blob", good))
	pack := func(said uint32, kinds ...byte) func(io.Writer) {
		return ended(func(p *pack) {
			for _, kind := range kinds {
				content := map[byte][]byte{commitKind: commit, treeKind: tree, blobKind: good}[kind]
				p.entry(kind, int64(len(content)), nil, deflate(content))
			}
			deflated := deflate(good)
			for range 20_001 - len(kinds) {
				p.entry(blobKind, 4, nil, deflated)
			}
		}, said)
	}
	for _, test := range []struct {
		why  string
		pack func(io.Writer)
		want string
	}{
		{"as it should", pack(20_001, commitKind, treeKind, blobKind), ""},
		{"without the commit", pack(20_001, treeKind), "not found"},
		{"without the tree", pack(20_001, commitKind), "lacks object"},
		{"cut off", pack(20_002, commitKind, treeKind), "damaged"},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.Serve(t, hostile{refs: onMain(objectHash("commit", commit)), pack: test.pack})
			reference := fetch.Reference{
				Location: git.Location{Remote: server.URL + "/x", Branch: "main"}, Credentials: fetch.Credentials{CA: server.CA},
			}
			source, begun, ended := client(t), 0, 0
			ctx := fetch.WithSpace(t.Context(), fetch.Space{Turn: func(context.Context) (func(), error) {
				begun++
				return func() { ended++ }, nil
			}})
			for range git.LargePacks + 1 {
				_, err := source.Fetch(ctx, reference, fetch.Revision{Name: objectHash("commit", commit)}, folder(t))
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Fatalf("got %v", err)
				}
			}
			if begun != 2*(git.LargePacks+1) || ended != begun { // one until the pack may be large, and one after that
				t.Errorf("%d turns of the owner began, %d ended", begun, ended)
			}
		})
	}
}

// TestTurnsEndWithAPanic (V21): A pack whose decoder panics ends its turns. The test fails when it keeps its turn of
// a large pack.
func TestTurnsEndWithAPanic(t *testing.T) {
	large := largePacks()["many objects"]
	synctest.Test(t, func(t *testing.T) {
		source := git.New(nil)
		for range git.LargePacks {
			turns := 0
			ctx := fetch.WithSpace(t.Context(), fetch.Space{Turn: func(context.Context) (func(), error) {
				if turns++; turns == 2 { // the pack is large by then
					panic("a decoder")
				}
				return func() {}, nil
			}})
			func() {
				defer func() {
					if recover() == nil {
						t.Error("nothing panicked")
					}
				}()
				_, _ = source.OpenPack(ctx, t, "custom", large)
			}()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the context of the synctest bubble
		defer cancel()
		closing, err := source.OpenPack(ctx, t, "custom", large)
		if err != nil {
			t.Fatal(err)
		}
		closing()
	})
}
