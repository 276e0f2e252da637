package parts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Record knows which parts passed on which commit. It is a folder with a file for each part, which has a line for
// each time that the part passed: commit, time, how long it took.
type Record struct{ Folder string }

// Pass is one time that a part passed.
type Pass struct {
	Commit string
	When   time.Time
	Took   time.Duration
}

// Add notes that a part passed.
func (r Record) Add(part string, pass Pass) error {
	if err := os.MkdirAll(r.Folder, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(r.file(part), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s %s %s\n", pass.Commit, pass.When.UTC().Format(time.RFC3339), pass.Took.Round(time.Second))
	_, err = file.WriteString(line)
	return errors.Join(err, file.Close())
}

// Last is when a part passed on a commit or, where it never did, on any; false: it never passed.
func (r Record) Last(part, commit string) (Pass, bool, error) {
	text, err := os.ReadFile(r.file(part))
	if errors.Is(err, fs.ErrNotExist) {
		return Pass{}, false, nil
	}
	if err != nil {
		return Pass{}, false, err
	}
	var last Pass
	for line := range strings.Lines(string(text)) {
		pass, err := parsePass(line)
		if err != nil {
			return Pass{}, false, fmt.Errorf("%s: %w; remove the file to run the part again", r.file(part), err)
		}
		if pass.Commit == commit || last.Commit != commit {
			last = pass
		}
	}
	return last, last.Commit != "", nil
}

func parsePass(line string) (Pass, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return Pass{}, fmt.Errorf("%q is not commit, time and duration", strings.TrimSpace(line))
	}
	when, err := time.Parse(time.RFC3339, fields[1])
	if err != nil {
		return Pass{}, err
	}
	took, err := time.ParseDuration(fields[2])
	if err != nil {
		return Pass{}, err
	}
	return Pass{Commit: fields[0], When: when, Took: took}, nil
}

func (r Record) file(part string) string { return filepath.Join(r.Folder, part+".txt") }
