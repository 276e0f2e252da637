package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
)

// playground is a folder to unpack into, with a canary beside it.
type playground struct {
	t              *testing.T
	folder, canary string
}

func play(t *testing.T) playground {
	t.Helper()
	top := t.TempDir()
	p := playground{t: t, folder: filepath.Join(top, "into"), canary: filepath.Join(top, "x")}
	for _, err := range []error{os.Mkdir(p.folder, 0o700), os.WriteFile(p.canary, []byte("canary"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p playground) check() {
	p.t.Helper()
	content, err := os.ReadFile(p.canary)
	if err != nil || string(content) != "canary" {
		p.t.Errorf("the canary says %q, %v", content, err)
	}
	beside, err := os.ReadDir(filepath.Dir(p.canary))
	if err != nil || len(beside) != 2 {
		p.t.Errorf("beside the folder: %v, %v", beside, err)
	}
}

// files reads the unpacked files, and reports all that is neither file nor folder.
func (p playground) files() map[string]string {
	p.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(p.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			p.t.Errorf("%s is %s", path, entry.Type())
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&^fs.FileMode(0o644) != 0 {
			p.t.Errorf("%s has mode %s", path, info.Mode())
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(p.folder, path)
		found[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// extract unpacks the entries below "top", as for a chart: others are refused.
func (p playground) extract(packed []byte, limits archive.Limits) (*archive.Folder, error) {
	p.t.Helper()
	into, err := archive.OpenFolder(p.t.Context(), p.folder, limits)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(into.Close)
	return into, archive.Extract(p.t.Context(), bytes.NewReader(packed), into, func(name string) (string, bool, error) {
		top, rest, _ := strings.Cut(name, "/")
		if top != "top" {
			return "", false, &fetch.RefusedError{Subject: name, Rule: "it lies outside"}
		}
		return rest, rest != "", nil
	})
}

func isRefused(err error) bool {
	var refusal *fetch.RefusedError
	return errors.As(err, &refusal)
}

// TestHostileArchivesStayInTheirFolder (AC31): Each archive of the hostile corpus is refused, or stays within its
// folder and limits.
func TestHostileArchivesStayInTheirFolder(t *testing.T) {
	for _, test := range fetchtest.Corpus() {
		t.Run(test.Name, func(t *testing.T) {
			p := play(t)
			began := fetchtest.CPUTime(t)
			_, err := p.extract(test.Archive, archive.Defaults)
			if taken := fetchtest.CPUTime(t) - began; taken > 30*time.Second {
				t.Errorf("took %s of CPU", taken)
			}
			p.check()
			got := p.files()
			if test.Refused {
				if !isRefused(err) {
					t.Errorf("got %v", err)
				}
				if err != nil && len(err.Error()) > 1024 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.Files, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnpackingDoesNotDependOnOSRoot (V36): Nothing depends on os.Root, which has let links escape before: no link is
// created, no existing file is written to, and no mode is ever changed, neither before an entry nor after.
func TestUnpackingDoesNotDependOnOSRoot(t *testing.T) {
	header := func(name string, flag byte, mode int64) fetchtest.File {
		return fetchtest.File{Header: tar.Header{Name: name, Typeflag: flag, Mode: mode, Linkname: ".."}}
	}
	t.Run("links with a slash at their end", func(t *testing.T) {
		for _, flag := range []byte{tar.TypeSymlink, tar.TypeLink} {
			p := play(t)
			_, err := p.extract(fetchtest.Archive(header("top/a/", flag, 0o777),
				fetchtest.File{Header: tar.Header{Name: "top/a/x"}, Content: "bad"}), archive.Defaults)
			if !isRefused(err) {
				t.Errorf("%q: got %v", flag, err)
			}
			p.check()
			if got := p.files(); len(got) != 0 {
				t.Errorf("%q: left %v", flag, got)
			}
		}
	})
	t.Run("links that somebody else put there", func(t *testing.T) {
		for name, target := range map[string]string{"a": "..", "a/": "..", "x": "../x", "y": "z"} {
			p := play(t)
			if err := os.Symlink(target, filepath.Join(p.folder, filepath.Clean(name))); err != nil {
				t.Fatal(err)
			}
			file := "top/" + strings.TrimSuffix(name, "/")
			if name[0] == 'a' {
				file = "top/a/x"
			}
			if _, err := p.extract(fetchtest.Archive(fetchtest.File{Header: tar.Header{Name: file}, Content: "bad"}), archive.Defaults); err == nil {
				t.Errorf("%s: written to", name)
			}
			p.check()
			if _, err := os.Lstat(filepath.Join(p.folder, "z")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: written through a link, %v", name, err)
			}
		}
	})
	t.Run("modes", func(t *testing.T) {
		p := play(t)
		_, err := p.extract(fetchtest.Archive(header("top/a/", tar.TypeDir, 0o6777), header("top/a/b/", tar.TypeDir, 0),
			fetchtest.File{Header: tar.Header{Name: "top/a/b/x", Mode: 0o6777}, Content: "x"}, header("top/a/", tar.TypeDir, 0)), archive.Defaults)
		if err != nil {
			t.Fatal(err)
		}
		p.files() // reports the modes of files
		for name, forbidden := range map[string]fs.FileMode{"a": 0o022, "a/b": 0o022} {
			info, err := os.Stat(filepath.Join(p.folder, name))
			if err != nil || !info.IsDir() || info.Mode().Perm()&0o700 != 0o700 ||
				info.Mode()&(forbidden|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
				t.Errorf("%s has mode %s, %v", name, info.Mode(), err)
			}
		}
	})
}

// TestLinksAreRefusedInEveryOrder (V37): Links in archives are refused, in every combination and order. These pairs
// got past first fixes elsewhere. The link itself must be refused: if it were left out, the other entry would be
// unpacked as something else; if it were created, it would be followed.
func TestLinksAreRefusedInEveryOrder(t *testing.T) {
	link := func(name, target string) fetchtest.File {
		return fetchtest.File{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}}
	}
	hard := func(name, target string) fetchtest.File {
		return fetchtest.File{Header: tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}}
	}
	folder := func(name string, mode int64) fetchtest.File {
		return fetchtest.File{Header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: mode}}
	}
	file := func(name string) fetchtest.File {
		return fetchtest.File{Header: tar.Header{Name: name, Mode: 0o6755}, Content: "bad"}
	}
	for why, files := range map[string][]fetchtest.File{
		"a link alone":                         {link("top/a", "..")},
		"a link, then a file in its place":     {link("top/a", "../x"), file("top/a")},
		"a file, then a link in its place":     {file("top/a"), link("top/a", "../x"), file("top/a")},
		"a folder, then a link in its place":   {folder("top/a/", 0o755), link("top/a", ".."), file("top/a/x")},
		"a link, then a folder in its place":   {link("top/a", ".."), folder("top/a/", 0o755), file("top/a/x")},
		"a link that is a parent":              {link("top/a", ".."), file("top/a/x")},
		"a link that is a parent of a link":    {link("top/a", ".."), link("top/a/b", ".."), file("top/a/b/x")},
		"a link to a link":                     {link("top/a", "b"), link("top/b", "../x"), file("top/a")},
		"a link to what comes later":           {link("top/b", "a"), link("top/a", ".."), file("top/b/x")},
		"a hard link to a link":                {link("top/a", "../x"), hard("top/b", "top/a"), file("top/b")},
		"a hard link to the outside":           {hard("top/a", "../x"), file("top/a")},
		"a hard link to a file of the archive": {file("top/b"), hard("top/a", "top/b")},
		"a link whose rights are changed":      {link("top/a", "../x"), folder("top/a", 0o777)},
	} {
		t.Run(why, func(t *testing.T) {
			p := play(t)
			_, err := p.extract(fetchtest.Archive(files...), archive.Defaults)
			if refusal, ok := errors.AsType[*fetch.RefusedError](err); !ok || refusal.Rule != "links are refused" {
				t.Errorf("got %v", err)
			}
			p.check()
			p.files() // reports all that is no regular file
		})
	}
}

// TestSparseFilesAndHugeHeadersTakeNoMemory (V35): Sparse files and headers without end are refused, and use little
// memory.
func TestSparseFilesAndHugeHeadersTakeNoMemory(t *testing.T) {
	tried := 0
	for _, test := range fetchtest.Corpus() {
		if !strings.Contains(test.Name, "sparse") && !strings.Contains(test.Name, "PAX") {
			continue
		}
		tried++
		p := play(t)
		fetchtest.BoundedMemory(t, 16<<20, func() {
			if _, err := p.extract(test.Archive, archive.Defaults); !isRefused(err) {
				t.Errorf("%s: got %v", test.Name, err)
			}
		})
		p.check()
	}
	if tried < 3 {
		t.Errorf("the corpus has %d cases", tried)
	}
}

// TestArchiveBombTakesNoMemory (V01): An archive that unpacks to many times its size is stopped early, and uses
// little memory.
func TestArchiveBombTakesNoMemory(t *testing.T) {
	bomb := fetchtest.Bomb(5 << 30)
	for why, limits := range map[string]archive.Limits{
		"stopped by its ratio": archive.Defaults, "stopped by the size of a file": {File: 5 << 20}, "stopped by the sum": {Unpacked: 6 << 20},
	} {
		t.Run(why, func(t *testing.T) {
			p := play(t)
			var err error
			fetchtest.BoundedMemory(t, 16<<20, func() { _, err = p.extract(bomb, limits) })
			if !isRefused(err) {
				t.Errorf("got %v", err)
			}
			size := 0
			for _, content := range p.files() {
				size += len(content)
			}
			if size > 20<<20 {
				t.Errorf("%d MiB reached the disk", size>>20)
			}
		})
	}
}

// TestArchivesBeyondALimitAreRefused (V34): Size, number, depth and share of unpacked content are limited, each
// separately.
func TestArchivesBeyondALimitAreRefused(t *testing.T) {
	file := func(name, content string) fetchtest.File {
		return fetchtest.File{Header: tar.Header{Name: name}, Content: content}
	}
	packed := fetchtest.Archive(file("top/a/x", "1234"), file("top/a/y", "12345"))
	for _, test := range []struct {
		why    string
		limits archive.Limits
		ok     bool
		says   string
	}{
		{"no limits", archive.Limits{}, true, ""},
		{"just so", archive.Limits{Unpacked: 9, File: 5, Entries: 3}, true, ""},
		{"the sum", archive.Limits{Unpacked: 8}, false, "unpacked"},
		{"one file", archive.Limits{File: 4}, false, `path "a/y"`},
		{"folders count that are only implied", archive.Limits{Entries: 2}, false, "files and folders"},
	} {
		t.Run(test.why, func(t *testing.T) {
			_, err := play(t).extract(packed, test.limits)
			if test.ok && err != nil || !test.ok && (!isRefused(err) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestExtractEndsWithItsContext(t *testing.T) {
	p := play(t)
	into, err := archive.OpenFolder(p.t.Context(), p.folder, archive.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = archive.Extract(ctx, bytes.NewReader(fetchtest.Chart("top", "1.0.0", nil)), into, func(name string) (string, bool, error) { return name, true, nil })
	if _, ok := errors.AsType[*fetch.UnavailableError](err); !ok {
		t.Errorf("got %v", err)
	}
}

// call is a reader without content that calls a function.
type call func()

func (c call) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

// TestAnArchiveOfNothingEndsWithItsContext fails when an archive that inflates to nothing is still read after the end
// of its context.
func TestAnArchiveOfNothingEndsWithItsContext(t *testing.T) {
	p := play(t)
	into, err := archive.OpenFolder(p.t.Context(), p.folder, archive.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	ctx, cancel := context.WithCancel(t.Context())
	header := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	blocks := bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 200_000) // stored, of no bytes
	rest := bytes.NewReader(blocks)
	from := io.MultiReader(bytes.NewReader(append(header, blocks...)), call(cancel), rest)
	err = archive.Extract(ctx, from, into, func(name string) (string, bool, error) { return name, true, nil })
	if _, ok := errors.AsType[*fetch.UnavailableError](err); !ok || rest.Len() < len(blocks)/2 {
		t.Errorf("of %d bytes %d are left: %v", len(blocks), rest.Len(), err)
	}
}

func TestWhatIsLeftOutIsNotUnpacked(t *testing.T) {
	p := play(t)
	into, err := archive.OpenFolder(p.t.Context(), p.folder, archive.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	packed := fetchtest.Archive(
		fetchtest.File{Header: tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/"}},
		fetchtest.File{Header: tar.Header{Name: "x/abc/y"}, Content: "y"},
		fetchtest.File{Header: tar.Header{Name: "x/abcd/y"}, Content: "no"})
	if err := archive.Extract(t.Context(), bytes.NewReader(packed), into, func(name string) (string, bool, error) {
		inner, below := strings.CutPrefix(name, "x/abc/")
		return inner, below, nil
	}); err != nil {
		t.Errorf("a link that is not below the path: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"y": "y"}, p.files()); diff != "" {
		t.Error(diff)
	}
}

func TestDigestDependsOnContentOnly(t *testing.T) {
	one := fetchtest.File{Header: tar.Header{Name: "top/a/one", Mode: 0o600}, Content: "1"}
	two := fetchtest.File{Header: tar.Header{Name: "top/two", Mode: 0o755, ModTime: time.Unix(1, 0)}, Content: "2"}
	folder := fetchtest.File{Header: tar.Header{Name: "top/empty/", Typeflag: tar.TypeDir}}
	digest := func(files ...fetchtest.File) string {
		t.Helper()
		into, err := play(t).extract(fetchtest.Archive(files...), archive.Defaults)
		if err != nil {
			t.Fatal(err)
		}
		return into.Digest()
	}
	base := digest(one, two)
	if got := digest(folder, two, one); got != base {
		t.Errorf("another order gives %s instead of %s", got, base)
	}
	for why, file := range map[string]fetchtest.File{
		"content": {Header: one.Header, Content: "3"}, "name": {Header: tar.Header{Name: "top/a/other"}, Content: "1"},
	} {
		if digest(file, two) == base {
			t.Errorf("another %s gives the same digest", why)
		}
	}
}

// TestPathsThatLeadOutAreRefused (AC32): A path below a source is refused if it leads out or is ambiguous.
func TestPathsThatLeadOutAreRefused(t *testing.T) {
	for given, want := range map[string]string{
		"": "", ".": "", "./": "", "a": "a", "a/b/": "a/b", "./a": "a", "a b": "a b",
		"/": "!", "/a": "!", "../a": "!", "a/../b": "!", "a/..": "!", "..": "!", "a//b": "!", "a/./b": "!", "a\x00": "!",
		`a\b`: "!", "a\n": "!", "C:/a": "!", "\xff": "!", "//": "!", strings.Repeat("a/", 200) + "a": "!",
	} {
		got, err := archive.CleanPath(given)
		if want == "!" && !isRefused(err) || want != "!" && (err != nil || got != want) {
			t.Errorf("%q: got %q, %v", given, got, err)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, test := range fetchtest.Corpus() {
		if len(test.Archive) < 64<<10 {
			f.Add(test.Archive)
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		p := play(t)
		_, err := p.extract(packed, archive.Limits{Unpacked: 1 << 20, File: 1 << 19, Entries: 100})
		p.check()
		p.files()
		if err != nil && !isRefused(err) {
			t.Errorf("got %v", err)
		}
	})
}

// TestWhatIsSkippedCountsForTheInflatedBytes: The skipped part of an archive costs as much to inflate as the unpacked
// part. The test fails when it does not count, alone or with other archives of the folder.
func TestWhatIsSkippedCountsForTheInflatedBytes(t *testing.T) {
	p := play(t)
	into, err := archive.OpenFolder(t.Context(), p.folder, archive.Limits{Inflated: 3 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	packed := fetchtest.Archive(fetchtest.File{Header: tar.Header{Name: "beside"}, Content: strings.Repeat("x", 2<<20)})
	skip := func(string) (string, bool, error) { return "", false, nil }
	if err := archive.Extract(t.Context(), bytes.NewReader(packed), into, skip); err != nil {
		t.Errorf("an archive within the limit: %v", err)
	}
	err = archive.Extract(t.Context(), bytes.NewReader(packed), into, skip)
	if !isRefused(err) || !strings.Contains(err.Error(), "inflates to more than 3 MiB") {
		t.Errorf("a second one beyond it: %v", err)
	}
}

// TestArchivesAreInflatedInTurns fails when an archive is inflated without a turn, or keeps its turn, also if it is
// refused.
func TestArchivesAreInflatedInTurns(t *testing.T) {
	good := fetchtest.Archive(fetchtest.File{Header: tar.Header{Name: "x"}, Content: "x"})
	for why, packed := range map[string][]byte{"a good one": good, "a broken one": good[:len(good)/2], "none": nil} {
		begun, ended := 0, 0
		ctx := fetch.WithSpace(t.Context(), fetch.Space{Turn: func(context.Context) (func(), error) {
			begun++
			return func() { ended++ }, nil
		}})
		into, err := archive.OpenFolder(ctx, t.TempDir(), archive.Defaults)
		if err != nil {
			t.Fatal(err)
		}
		_ = archive.Extract(ctx, bytes.NewReader(packed), into, func(name string) (string, bool, error) {
			if ended > 0 {
				t.Errorf("%s: the turn ended too early", why)
			}
			return name, true, nil
		})
		into.Close()
		if begun != 1 || ended != 1 {
			t.Errorf("%s: %d turns began and %d ended", why, begun, ended)
		}
	}
	full := errors.New("no turn")
	ctx := fetch.WithSpace(t.Context(), fetch.Space{Turn: func(context.Context) (func(), error) { return nil, full }})
	into, err := archive.OpenFolder(ctx, t.TempDir(), archive.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	if err := archive.Extract(ctx, bytes.NewReader(good), into, func(name string) (string, bool, error) { return name, true, nil }); !errors.Is(err, full) {
		t.Errorf("without a turn: %v", err)
	}
}
