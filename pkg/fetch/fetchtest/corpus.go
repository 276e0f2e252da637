package fetchtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
)

// Case is an archive of the corpus (reference: the shared archive corpus of the security cases). Every reader of
// archives is tested with all of them.
type Case struct {
	Name string
	// Archive is a gzipped tar whose valid entries are below "top/".
	Archive []byte
	// Refused archives are a fetch.RefusedError. Others give Files, with names below "top/".
	Refused bool
	Files   map[string]string
}

// dashed puts valid content around the bad.
func dashed(bad ...File) []byte {
	files := []File{{Header: tar.Header{Name: "top/before.txt"}, Content: "before"}}
	files = append(files, bad...)
	return Archive(append(files, File{Header: tar.Header{Name: "top/zafter.txt"}, Content: "after"})...)
}

func named(name string) Case {
	return Case{Name: "name " + shorten(name), Archive: dashed(File{Header: tar.Header{Name: name}, Content: "bad"}), Refused: true}
}

func shorten(name string) string {
	if len(name) > 20 {
		return fmt.Sprintf("%q of %d bytes", name[:8], len(name))
	}
	return fmt.Sprintf("%q", name)
}

func kind(name string, flag byte, target string) Case {
	header := tar.Header{Name: "top/bad", Typeflag: flag, Linkname: target}
	return Case{Name: name, Archive: dashed(File{Header: header}), Refused: true}
}

// Corpus is the whole corpus.
func Corpus() []Case {
	cases := []Case{}
	for _, name := range []string{
		"../x", "/etc/x", "top/a/../../x", "./../x", "top/../x", "..", "top/..", `top\x`, `..\x`, `C:\x`, "C:x",
		"top//x", "top/./x", "top/\x01x", "top/\nx", "top/\x7fx", "top/\xff\xfe", "top/" + strings.Repeat("x", 4096),
		"top/" + strings.Repeat("d/", 300) + "x", "top/" + strings.Repeat("x", 256),
	} {
		cases = append(cases, named(name))
	}
	return append(cases, append(links(), append(shapes(), append(lies(), bombs()...)...)...)...)
}

func links() []Case {
	return []Case{
		kind("symlink relative", tar.TypeSymlink, "before.txt"),
		kind("symlink absolute", tar.TypeSymlink, "/etc/passwd"),
		kind("symlink to the parent", tar.TypeSymlink, "../.."),
		kind("symlink to itself", tar.TypeSymlink, "bad"),
		kind("hardlink within", tar.TypeLink, "top/before.txt"),
		kind("hardlink to outside", tar.TypeLink, "../../etc/passwd"),
		kind("character device", tar.TypeChar, ""),
		kind("block device", tar.TypeBlock, ""),
		kind("pipe", tar.TypeFifo, ""),
		kind("contiguous file", tar.TypeCont, ""),
		{Name: "symlink chain", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/a", Typeflag: tar.TypeSymlink, Linkname: "b"}},
			File{Header: tar.Header{Name: "top/b", Typeflag: tar.TypeSymlink, Linkname: "/"}})},
		{Name: "file below a symlink", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/a", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}},
			File{Header: tar.Header{Name: "top/a/x"}, Content: "bad"})},
		{Name: "symlink with a slash at its end", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/a/", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}})},
		{Name: "link swapped for a folder", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/a/", Typeflag: tar.TypeDir, Mode: 0o755}},
			File{Header: tar.Header{Name: "top/a", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}},
			File{Header: tar.Header{Name: "top/a/x"}, Content: "bad"})},
		{Name: "hardlink to a symlink", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/a", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}},
			File{Header: tar.Header{Name: "top/b", Typeflag: tar.TypeLink, Linkname: "top/a"}})},
	}
}

func shapes() []Case {
	return []Case{
		{Name: "plain", Archive: dashed(), Files: map[string]string{"before.txt": "before", "zafter.txt": "after"}},
		{Name: "names with a dot in front, folders, a global header", Archive: Archive(
			File{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}},
			File{Header: tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}},
			File{Header: tar.Header{Name: "./top/", Typeflag: tar.TypeDir, Mode: 0o755}},
			File{Header: tar.Header{Name: "./top/a/x"}, Content: "x"}),
			Files: map[string]string{"a/x": "x"}},
		{Name: "setuid and no rights at all are dropped", Archive: dashed(
			File{Header: tar.Header{Name: "top/s", Mode: 0o6755}, Content: "s"},
			File{Header: tar.Header{Name: "top/z", Mode: 0o100000}, Content: "z"}),
			Files: map[string]string{"before.txt": "before", "s": "s", "z": "z", "zafter.txt": "after"}},
		{Name: "names that differ in case are two", Archive: dashed(
			File{Header: tar.Header{Name: "top/A"}, Content: "A"}, File{Header: tar.Header{Name: "top/a"}, Content: "a"}),
			Files: map[string]string{"before.txt": "before", "A": "A", "a": "a", "zafter.txt": "after"}},
		{Name: "the same name twice", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/x"}, Content: "1"}, File{Header: tar.Header{Name: "top/x"}, Content: "2"})},
		{Name: "a file that is a folder later", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/x"}, Content: "1"}, File{Header: tar.Header{Name: "top/x/y"}, Content: "2"})},
		{Name: "a folder that is a file later", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "top/x/y"}, Content: "1"}, File{Header: tar.Header{Name: "top/x"}, Content: "2"})},
		{Name: "a folder beside that begins alike", Refused: true, Archive: dashed(
			File{Header: tar.Header{Name: "topping/x"}, Content: "bad"})},
		{Name: "two members", Archive: append(Archive(File{Header: tar.Header{Name: "top/x"}, Content: "x"}),
			dashed()...), Refused: true},
	}
}

// raw packs a tar that the standard library would not write.
func raw(tarball []byte) []byte {
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	_, _ = compressor.Write(tarball)
	_ = compressor.Close()
	return packed.Bytes()
}

// patched changes a header of one file and corrects its checksum.
func patched(content string, change func(block []byte)) []byte {
	tarball := Tar(File{Header: tar.Header{Name: "top/x", Format: tar.FormatGNU}, Content: content})
	change(tarball[:512])
	sum(tarball[:512])
	return raw(tarball)
}

// sum corrects a header's checksum.
func sum(header []byte) {
	copy(header[148:156], "        ")
	total := 0
	for _, b := range header {
		total += int(b)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", total))
}

func lies() []Case {
	whole := dashed()
	good := Tar(File{Header: tar.Header{Name: "top/x"}, Content: "x"})
	return []Case{
		{Name: "no archive", Archive: []byte("<html>log in</html>"), Refused: true},
		{Name: "nothing", Archive: nil, Refused: true},
		{Name: "gzip of no tar", Archive: raw(bytes.Repeat([]byte("no tar "), 500)), Refused: true},
		{Name: "cut off", Archive: whole[:len(whole)/2], Refused: true},
		{Name: "a wrong sum at the end", Archive: append(bytes.Clone(whole[:len(whole)-8]), 1, 2, 3, 4, 5, 6, 7, 8), Refused: true},
		{Name: "garbage behind the gzip stream", Archive: append(bytes.Clone(whole), "garbage"...), Refused: true},
		{Name: "data behind the end of the tar", Archive: raw(append(bytes.Clone(good), "hidden"...)), Refused: true},
		{Name: "endless zeros behind the end", Archive: raw(append(bytes.Clone(good), make([]byte, 4<<20)...)), Refused: true},
		{Name: "a size beyond the end", Archive: patched("x", func(b []byte) { copy(b[124:136], "77777777777\x00") }), Refused: true},
		{Name: "a negative size", Archive: patched("x", func(b []byte) { copy(b[124:136], bytes.Repeat([]byte{0xff}, 12)) }), Refused: true},
		{Name: "an unknown type", Archive: patched("", func(b []byte) { b[156] = 'Q' }), Refused: true},
		{Name: "old GNU sparse", Archive: patched("", func(b []byte) {
			b[156] = tar.TypeGNUSparse
			copy(b[386:], "00000000000\x0000000000000\x00")
			copy(b[483:], "00000001000\x00")
		}), Refused: true},
		{Name: "PAX sparse", Archive: sparse(), Refused: true},
		{Name: "a huge PAX header", Archive: patched("x", func(b []byte) {
			b[156] = tar.TypeXHeader
			copy(b[124:136], "07777777777\x00")
		}), Refused: true},
	}
}

// sparse is a sparse file of PAX 1.0: records in an extended header, the map before the content.
func sparse() []byte {
	record := func(key, value string) string {
		text := fmt.Sprintf(" %s=%s\n", key, value)
		return fmt.Sprintf("%d%s", len(text)+2, text)
	}
	records := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") +
		record("GNU.sparse.name", "top/x") + record("GNU.sparse.realsize", "1000000")
	header := Tar(File{Header: tar.Header{Name: "top/pax", Format: tar.FormatGNU}, Content: records})
	header = header[:1024]
	header[156] = tar.TypeXHeader
	sum(header[:512])
	content := make([]byte, 512)
	copy(content, "1\n0\n0\n")
	return raw(append(header, Tar(File{Header: tar.Header{Name: "top/x", Format: tar.FormatGNU}, Content: string(content)})...))
}

func bombs() []Case {
	return []Case{
		{Name: "a bomb", Archive: Bomb(5 << 30), Refused: true},
		{Name: "a hundred thousand empty files", Archive: manyFiles(100_000), Refused: true},
	}
}

// Bomb is an archive with one file of zeros of that size, in whole MiB. It repeats one compressed
// piece of zeros. Readers stop before the missing checksum at its end.
func Bomb(size int64) []byte {
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	writer := tar.NewWriter(compressor)
	_ = writer.WriteHeader(&tar.Header{Name: "top/x", Mode: 0o644, Size: size, Format: tar.FormatGNU})
	piece := make([]byte, 1<<20)
	_, _ = writer.Write(piece)
	_ = compressor.Flush()
	first := packed.Len()
	_, _ = writer.Write(piece)
	_ = compressor.Flush()
	repeated := bytes.Clone(packed.Bytes()[first:])
	for range size>>20 - 2 {
		packed.Write(repeated)
	}
	return packed.Bytes()
}

func manyFiles(count int) []byte {
	var packed bytes.Buffer
	compressor, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	writer := tar.NewWriter(compressor)
	for i := range count {
		_ = writer.WriteHeader(&tar.Header{Name: fmt.Sprintf("top/%d", i), Mode: 0o644})
	}
	_ = writer.Close()
	_ = compressor.Close()
	return packed.Bytes()
}
