package git_test

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/test/long"
)

// Object kinds in packs.
const (
	commitKind   = 1
	treeKind     = 2
	blobKind     = 3
	ofsDeltaKind = 6
	refDeltaKind = 7
)

// pack builds packs entry by entry, as a stream to any writer.
type pack struct {
	into   *bufio.Writer
	sum    hash.Hash
	offset int64
}

func newPack(into io.Writer, count uint32) *pack {
	p := &pack{into: bufio.NewWriterSize(into, 60_000), sum: sha1.New()}
	p.write(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count))
	return p
}

func (p *pack) write(content []byte) {
	p.sum.Write(content)
	_, _ = p.into.Write(content)
	p.offset += int64(len(content))
}

// entry adds an entry and returns its offset. Base is the hash or the distance that a delta names.
func (p *pack) entry(kind byte, size int64, base, deflated []byte) int64 {
	at := p.offset
	first := kind<<4 | byte(size&15)
	rest := []byte{}
	for size >>= 4; size > 0; size >>= 7 {
		rest = append(rest, byte(size&127)|128)
	}
	if len(rest) > 0 {
		first |= 128
		rest[len(rest)-1] &^= 128
	}
	p.write(append(append([]byte{first}, rest...), base...))
	p.write(deflated)
	return at
}

func (p *pack) end() {
	p.write(p.sum.Sum(nil))
	p.flush()
}

func (p *pack) flush() { _ = p.into.Flush() }

// chain adds a blob of 4 bytes, and a chain of deltas whose results equal it.
func (p *pack) chain(blob []byte, deltas int) {
	last := p.entry(blobKind, 4, nil, deflate(blob))
	same := []byte{4, 4, 0x90, 4} // copy 4 bytes from the start
	deflated := deflate(same)
	for range deltas {
		last = p.entry(ofsDeltaKind, int64(len(same)), distance(p.offset-last), deflated)
	}
}

func deflate(content []byte) []byte {
	var packed bytes.Buffer
	compressor := zlib.NewWriter(&packed)
	_, _ = compressor.Write(content)
	_ = compressor.Close()
	return packed.Bytes()
}

func distance(n int64) []byte {
	encoded := []byte{byte(n & 127)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		encoded = append([]byte{byte(n&127) | 128}, encoded...)
	}
	return encoded
}

func objectHash(kind string, content []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
	return hex.EncodeToString(sum[:])
}

func raw(hash string) []byte {
	content, _ := hex.DecodeString(hash)
	return content
}

// commitOf is a commit with one file "x" of that hash.
func commitOf(blob string) (tree, commit []byte) {
	tree = append([]byte("100644 x\x00"), raw(blob)...)
	return tree, fmt.Appendf(nil, "tree %s\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n", objectHash("tree", tree))
}

func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

const capabilities = "\x00side-band-64k shallow ofs-delta allow-reachable-sha1-in-want\n"

// hostile is a git server whose answers a test sets.
type hostile struct {
	refs func(w io.Writer)
	pack func(w io.Writer)
}

func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = io.WriteString(w, pkt("# service=git-upload-pack\n")+"0000")
		h.refs(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	_, _ = io.WriteString(w, "0000"+pkt("NAK\n"))
	h.pack(w)
}

// band sends written bytes as pack data.
type band struct{ into io.Writer }

func (b band) Write(content []byte) (int, error) {
	for rest := content; len(rest) > 0; {
		piece := rest[:min(len(rest), 65000)]
		if _, err := fmt.Fprintf(b.into, "%04x\x01%s", len(piece)+5, piece); err != nil {
			return 0, err
		}
		rest = rest[len(piece):]
	}
	return len(content), nil
}

func onMain(hash string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, pkt(hash+" refs/heads/main"+capabilities)+"0000") }
}

func ended(write func(p *pack), count uint32) func(io.Writer) {
	return func(w io.Writer) {
		p := newPack(band{w}, count)
		write(p)
		p.end()
		_, _ = io.WriteString(w, "0000")
	}
}

// try resolves main and fetches it from a hostile server. It checks memory and the parent of the folder.
func try(t *testing.T, server hostile, shrink ...func(*git.Source)) (map[string]string, error) {
	t.Helper()
	served := fetchtest.Serve(t, server)
	reference := fetch.Reference{
		Location:    git.Location{Remote: served.URL + "/x", Branch: "main"},
		Credentials: fetch.Credentials{CA: served.CA},
	}
	source := client(t)
	for _, change := range shrink {
		change(source)
	}
	var err error
	into := folder(t)
	fetchtest.BoundedMemory(t, 64<<20, func() {
		var revision fetch.Revision
		if revision, err = source.Resolve(t.Context(), reference); err == nil {
			_, err = source.Fetch(t.Context(), reference, revision, into)
		}
	})
	beside, readErr := os.ReadDir(filepath.Dir(into))
	if readErr != nil || len(beside) != 1 {
		t.Errorf("beside the folder: %v, %v", beside, readErr)
	}
	return fetchtest.Files(t, into), err
}

func isOurs(err error) bool {
	var (
		refused     *fetch.RefusedError
		missing     *fetch.NotFoundError
		unavailable *fetch.UnavailableError
	)
	return errors.As(err, &refused) || errors.As(err, &missing) || errors.As(err, &unavailable)
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*fetch.RefusedError](err)
	return ok
}

// zeros is a deflated run of zeros of a size in whole MiB, from one repeated piece.
func zeros(size int64) []byte {
	var packed bytes.Buffer
	compressor := zlib.NewWriter(&packed)
	piece := make([]byte, 1<<20)
	_, _ = compressor.Write(piece)
	_ = compressor.Flush()
	first := packed.Len()
	_, _ = compressor.Write(piece)
	_ = compressor.Flush()
	repeated := bytes.Clone(packed.Bytes()[first:])
	for range size>>20 - 2 {
		packed.Write(repeated)
	}
	packed.Write([]byte{3, 0})                                                     // the last block, an empty one
	return binary.BigEndian.AppendUint32(packed.Bytes(), uint32(size%65521)<<16|1) // Adler-32 of zeros
}

// TestHostilePacksAreRefused (V21): Packs with wrong sizes, chains or objects are refused, within time and memory.
func TestHostilePacksAreRefused(t *testing.T) {
	long.Heavy(t)
	good := []byte("good")
	tree, commit := commitOf(objectHash("blob", good))
	frame := func(p *pack) {
		p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
		p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
	}
	// A delta that copies 64 KiB of its base again and again: few bytes for much content.
	copies := binary.AppendUvarint(binary.AppendUvarint(nil, 64<<10), 4<<30)
	copies = append(copies, bytes.Repeat([]byte{0x80}, 64<<10)...)
	// Hashing up to the limit takes minutes on a busy machine. A twentieth shows the same.
	shrink := map[string][]func(*git.Source){
		"objects that inflate to 5 GiB together": {func(s *git.Source) { s.ShrinkWork(git.WorkLimit / 20) }},
	}
	for _, test := range []struct {
		why  string
		pack func(io.Writer)
		want map[string]string // nil: an error
	}{
		{"a good pack", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 4, nil, deflate(good))
		}, 3), map[string]string{"x": "good"}},
		{"a blob that inflates to 5 GiB", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 5<<30, nil, zeros(5<<30))
		}, 3), nil},
		{"a blob that says 5 GiB and has 4 bytes", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 5<<30, nil, deflate(good))
		}, 3), nil},
		{"a blob that says 4 bytes and has 5 GiB", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 4, nil, zeros(5<<30))
		}, 3), nil},
		{"a delta that says 4 GiB is passed over where nobody needs it", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 4, nil, deflate(good))
			base := p.entry(blobKind, 64<<10, nil, deflate(make([]byte, 64<<10)))
			p.entry(ofsDeltaKind, int64(len(copies)), distance(p.offset-base), deflate(copies))
		}, 5), map[string]string{"x": "good"}},
		{"a chain of 100,000 deltas", ended(func(p *pack) {
			frame(p)
			p.chain(good, 100_000)
		}, 100_003), nil},
		{"deltas that need too much memory at a time", ended(func(p *pack) {
			frame(p)
			size := int64(8 << 20)
			last := p.entry(blobKind, size, nil, deflate(make([]byte, size)))
			for i := range 20 {
				delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(size))
				delta = append(delta, 1, byte(i+1))                                       // one new byte
				delta = append(delta, bytes.Repeat([]byte{0xf0, 0xff, 0xff, 0x7f}, 1)...) // 0x7fffff bytes from the start
				deflated := deflate(delta)
				p.entry(ofsDeltaKind, int64(len(delta)), distance(p.offset-last), deflated)
				last = p.entry(ofsDeltaKind, int64(len(delta)), distance(p.offset-last), deflated)
			}
		}, 43), nil},
		{"more objects than there are", ended(func(p *pack) { frame(p) }, git.ObjectsLimit), nil},
		{"four billion objects", ended(func(p *pack) { frame(p) }, 1<<32-1), nil},
		{"a quarter of a million objects", ended(func(p *pack) {
			frame(p)
			deflated := deflate(good)
			for range 250_000 {
				p.entry(blobKind, 4, nil, deflated)
			}
		}, 250_002), nil},
		{"objects that inflate to 5 GiB together", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 4, nil, deflate(good))
			deflated := zeros(25 << 20)
			for range 205 {
				p.entry(blobKind, 25<<20, nil, deflated)
			}
		}, 208), nil},
		{"a delta on itself", ended(func(p *pack) {
			frame(p)
			p.entry(ofsDeltaKind, 4, []byte{0}, deflate([]byte{4, 4, 0x90, 4}))
		}, 3), nil},
		{"two deltas on each other", ended(func(p *pack) {
			frame(p)
			p.entry(refDeltaKind, 4, raw(objectHash("blob", []byte("a"))), deflate([]byte{4, 4, 0x90, 4}))
		}, 3), nil},
		{"a delta that reads beyond its base", ended(func(p *pack) {
			frame(p)
			base := p.entry(blobKind, 4, nil, deflate(good))
			p.entry(ofsDeltaKind, 4, distance(p.offset-base), deflate([]byte{4, 9, 0x90, 9}))
		}, 4), nil},
		{"a delta before its base", ended(func(p *pack) {
			frame(p)
			other := []byte("other")
			p.entry(refDeltaKind, 7, raw(objectHash("blob", other)), deflate([]byte{5, 4, 4, 'g', 'o', 'o', 'd'}))
			p.entry(blobKind, 5, nil, deflate(other))
		}, 4), map[string]string{"x": "good"}},
		{"another blob than the tree says", ended(func(p *pack) {
			frame(p)
			p.entry(blobKind, 4, nil, deflate([]byte("evil")))
		}, 3), nil},
		{"a blob where a tree should be", ended(func(p *pack) {
			p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
			p.entry(blobKind, int64(len(tree)), nil, deflate(tree))
		}, 2), nil},
		{"no commit", ended(func(*pack) {}, 0), nil},
		{"no pack", func(w io.Writer) { _, _ = band{w}.Write([]byte("PUCK")) }, nil},
		{"nothing", func(io.Writer) {}, nil},
		{"an unknown band", func(w io.Writer) { _, _ = io.WriteString(w, "0006\x09x") }, nil},
		{"an error of the server", func(w io.Writer) { _, _ = io.WriteString(w, pkt("\x03it has \x1b[31mcolours")) }, nil},
		{"a wrong sum", func(w io.Writer) {
			p := newPack(band{w}, 3)
			frame(p)
			p.entry(blobKind, 4, nil, deflate(good))
			p.write(make([]byte, 20))
			p.flush()
			_, _ = io.WriteString(w, "0000")
		}, nil},
		{"a cut-off pack", func(w io.Writer) {
			p := newPack(band{w}, 3)
			frame(p)
			p.flush()
		}, nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			began := fetchtest.CPUTime(t)
			got, err := try(t, hostile{refs: onMain(objectHash("commit", commit)), pack: test.pack}, shrink[test.why]...)
			if test.want == nil && !isOurs(err) || test.want != nil && err != nil {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(test.want, got); test.want != nil && diff != "" {
				t.Error(diff)
			}
			// The figure includes both sides; under the race detector the most expensive case takes a tenth of it.
			if taken := fetchtest.CPUTime(t) - began; taken > time.Minute {
				t.Errorf("took %s of CPU", taken)
			}
			if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
				t.Errorf("the error has control characters: %q", err)
			}
		})
	}
}

// TestLargeTreesWithinEachOtherAreRefused (V21): Nested trees of megabytes are refused before they use much memory.
func TestLargeTreesWithinEachOtherAreRefused(t *testing.T) {
	long.Heavy(t)
	const depth = 4
	var content bytes.Buffer
	p := newPack(band{&content}, depth+1)
	commit := nested(p, depth)
	p.end()
	content.WriteString("0000")
	_, err := try(t, hostile{refs: onMain(commit), pack: func(w io.Writer) { _, _ = w.Write(content.Bytes()) }})
	if !isRefused(err) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v", err)
	}
}

// nested writes a commit whose trees have 6 MiB each, each the first entry of its parent, and returns its hash.
func nested(p *pack, depth int) string {
	filler := bytes.Repeat(append([]byte("40000 zzzzzz\x00"), make([]byte, 20)...), 200_000)
	hash := strings.Repeat("a", 40)
	for range depth {
		tree := append(append([]byte("40000 a\x00"), raw(hash)...), filler...)
		hash = objectHash("tree", tree)
		p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
	}
	commit := fmt.Appendf(nil, "tree %s\n\nx\n", hash)
	p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
	return objectHash("commit", commit)
}

// TestEndlessAnswersOfGitServersEnd (V21): An endless answer of a git server is cut off.
func TestEndlessAnswersOfGitServersEnd(t *testing.T) {
	hash := strings.Repeat("a", 40)
	refs := func(count int) func(io.Writer) {
		return func(w io.Writer) {
			_, _ = io.WriteString(w, pkt(hash+" HEAD"+capabilities))
			thousand := ""
			for i := range 1000 {
				thousand += pkt(fmt.Sprintf("%s refs/pull/%06d", hash, i))
			}
			for range count / 1000 {
				if _, err := io.WriteString(w, thousand); err != nil {
					return
				}
			}
		}
	}
	progress := func(w io.Writer) {
		line := fmt.Sprintf("%04x\x02%s", 65005, strings.Repeat("x", 65000))
		for {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}
	for why, server := range map[string]hostile{
		"ten million refs":      {refs: refs(10_000_000)},
		"progress without end":  {refs: onMain(hash), pack: progress},
		"pack data without end": {refs: onMain(hash), pack: func(w io.Writer) { progress(replacing{w}) }},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := try(t, server, func(s *git.Source) { s.LimitWire(git.AdvertisementLimit, git.PackLimit/10) })
			if !isRefused(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// replacing turns progress into pack data.
type replacing struct{ into io.Writer }

func (r replacing) Write(content []byte) (int, error) {
	return r.into.Write(bytes.Replace(content, []byte{2}, []byte{1}, 1))
}

// TestRefNamesOfServersWriteNothing (V18): Names of refs from a server lead to no file outside of the fetch's folder.
func TestRefNamesOfServersWriteNothing(t *testing.T) {
	good := []byte("good")
	tree, commit := commitOf(objectHash("blob", good))
	hash := objectHash("commit", commit)
	got, err := try(t, hostile{
		refs: func(w io.Writer) {
			for i, name := range []string{"refs/heads/../../config", "refs/heads/main", "refs/tags/../../../x", "/etc/passwd", "..", "\x00"} {
				line := pkt(hash + " " + name + "\n")
				if i == 0 {
					line = pkt(hash + " " + name + capabilities)
				}
				_, _ = io.WriteString(w, line)
			}
			_, _ = io.WriteString(w, "0000")
		},
		pack: ended(func(p *pack) {
			p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
			p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
			p.entry(blobKind, 4, nil, deflate(good))
		}, 3),
	})
	if err != nil || got["x"] != "good" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestTreesWithLinksAndSubmodulesAreRefused (V17): Links, submodules and names that lead out of the folder are
// refused in trees.
func TestTreesWithLinksAndSubmodulesAreRefused(t *testing.T) {
	server := fetchtest.ServeGit(t)
	for i, test := range []struct {
		why     string
		entries map[string]fetchtest.Entry
		says    string
	}{
		{"a symbolic link", map[string]fetchtest.Entry{"l": {Mode: "120000", Content: "/etc/passwd"}}, "symbolic links are refused: copy the target of the link"},
		{"a link back into the tree", map[string]fetchtest.Entry{"l": {Mode: "120000", Content: "a"}}, "links"},
		{"a submodule", map[string]fetchtest.Entry{"s": {Mode: "160000", Object: strings.Repeat("a", 40)}}, "submodules"},
		{"a submodule that is named upwards",
			map[string]fetchtest.Entry{"../x": {Mode: "160000", Object: strings.Repeat("a", 40)}}, "submodules"},
		{"a folder of git", map[string]fetchtest.Entry{".git": {Mode: "100644", Content: "x"}}, "reserved for git"},
		{"in capitals", map[string]fetchtest.Entry{".GIT": {Mode: "100644", Content: "x"}}, "reserved for git"},
		{"in its short form", map[string]fetchtest.Entry{"git~1": {Mode: "100644", Content: "x"}}, "reserved for git"},
		{"with a dot at its end", map[string]fetchtest.Entry{".git. .": {Mode: "100644", Content: "x"}}, "reserved for git"},
		{"with a stream", map[string]fetchtest.Entry{".git::$INDEX_ALLOCATION": {Mode: "100644", Content: "x"}}, "reserved for git"},
		{"with characters that nobody sees", map[string]fetchtest.Entry{".g\u200cit": {Mode: "100644", Content: "x"}}, "reserved for git"},
		{"upwards", map[string]fetchtest.Entry{"..": {Mode: "100644", Content: "x"}}, "out of its folder"},
		{"nowhere", map[string]fetchtest.Entry{".": {Mode: "100644", Content: "x"}}, "empty component"},
		{"a slash", map[string]fetchtest.Entry{"../../x": {Mode: "100644", Content: "x"}}, "slash"},
		{"a backslash", map[string]fetchtest.Entry{`..\x`: {Mode: "100644", Content: "x"}}, "backslash"},
		{"no UTF-8", map[string]fetchtest.Entry{"\xff": {Mode: "100644", Content: "x"}}, "UTF-8"},
		{"an odd mode", map[string]fetchtest.Entry{"x": {Mode: "100000", Content: "x"}}, "mode"},
		{"large-file storage", map[string]fetchtest.Entry{
			"x": {Mode: "100644", Content: "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n"}}, "large-file"},
	} {
		t.Run(test.why, func(t *testing.T) {
			repository := server.Repository(t, strconv.Itoa(i))
			bad := repository.RawTree(test.entries)
			repository.CommitTree("main", repository.Tree(map[string]fetchtest.Entry{
				"top": {Mode: "40000", Object: bad}, "good/x": {Mode: "100644", Content: "good"},
			}))
			reference := fetch.Reference{
				Location:    git.Location{Remote: repository.URL, Branch: "main", Path: "top"},
				Credentials: fetch.Credentials{CA: server.CA},
			}
			source := client(t)
			revision, err := source.Resolve(t.Context(), reference)
			if err != nil {
				t.Fatal(err)
			}
			into := folder(t)
			_, err = source.Fetch(t.Context(), reference, revision, into)
			if !isRefused(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if beside, _ := os.ReadDir(filepath.Dir(into)); len(beside) != 1 || len(fetchtest.Files(t, into)) > 1 {
				t.Errorf("beside %v, within %v", beside, fetchtest.Files(t, into))
			}
			reference.Location = git.Location{Remote: repository.URL, Branch: "main", Path: "good"}
			if got, _, _ := fetchInto(t, source, reference); got["x"] != "good" {
				t.Errorf("beside the bad: %v", got)
			}
		})
	}
}

func TestTreesThatMultiply(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "bomb")
	tree := repository.RawTree(map[string]fetchtest.Entry{"f": {Mode: "100644", Content: "x"}})
	for range 10 {
		entries := map[string]fetchtest.Entry{}
		for i := range 10 {
			entries[strconv.Itoa(i)] = fetchtest.Entry{Mode: "40000", Object: tree}
		}
		tree = repository.RawTree(entries)
	}
	repository.CommitTree("main", tree)
	reference := fetch.Reference{
		Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: fetch.Credentials{CA: server.CA},
	}
	source := client(t)
	source.Limit(archive.Limits{Entries: 300})
	revision, err := source.Resolve(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Fetch(t.Context(), reference, revision, folder(t)); !isRefused(err) {
		t.Errorf("got %v", err)
	}
}

// TestSlowGitServerIsGivenUp (AC23): A git server that answers byte by byte is given up after a time.
func TestSlowGitServerIsGivenUp(t *testing.T) {
	served := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for _, b := range []byte(strings.Repeat(pkt("# service=git-upload-pack\n")+"0000", 1000)) {
			_, _ = w.Write([]byte{b})
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ticks.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	slow := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback, Timeout: 300 * time.Millisecond})
	t.Cleanup(slow.Close)
	_, err := git.New(slow).Resolve(t.Context(), fetch.Reference{
		Location: git.Location{Remote: served.URL, Branch: "main"}, Credentials: fetch.Credentials{CA: served.CA},
	})
	if _, ok := errors.AsType[*fetch.UnavailableError](err); !ok {
		t.Errorf("got %v", err)
	}
}
