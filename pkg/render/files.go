package render

import (
	"fmt"
	"io"
	"io/fs"
)

// ReadAtMost reads a file of an add-on's content up to a number of bytes; whole says whether that was all of it. Content
// comes from outside, so no file of it is read without a bound.
func ReadAtMost(content fs.FS, path string, most int64) (text string, whole bool, err error) {
	file, err := content.Open(path)
	if err != nil {
		return "", false, fmt.Errorf("opening %q: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	read, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", false, fmt.Errorf("reading %q: %w", path, err)
	}
	if int64(len(read)) > most {
		return string(read[:most]), false, nil
	}
	return string(read), true, nil
}
