package download

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/trellis-addons/trellis/test/binaries"
)

// architectures are those that all projects publish for.
var architectures = []string{"amd64", "arm64"}

// mostOfSums bounds a file of checksums, in bytes.
const mostOfSums = 1 << 20

// WriteSums reads the checksums that projects publish for the current releases and writes them into the list. If any
// can't be read, the list stays as it is, and the error names each.
func WriteSums(ctx context.Context, out io.Writer, list string) error {
	entries, err := read(list)
	if err != nil {
		return err
	}
	var failures []error
	for i := range entries {
		entry := &entries[i]
		if entry.Published == "" {
			fmt.Fprintf(out, "%s: its project publishes no checksum\n", entry.Program)
			continue
		}
		sums := map[string]string{}
		for _, at := range placesOf(entry.Program) {
			sum, err := published(ctx, *entry, at)
			if err != nil {
				failures = append(failures, fmt.Errorf("%s %s: %w", entry.Program, at.key(), err))
				continue
			}
			sums[at.key()] = sum
			fmt.Fprintf(out, "%s %s: %s by %s\n", entry.Program, at.key(), sum, at.in(entry.Published))
		}
		entry.Sums = sums
	}
	if len(failures) > 0 { // the list stays as it was
		return fmt.Errorf("reading published checksums: %w", errors.Join(failures...))
	}
	content, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(list, append(content, '\n'), 0o644)
}

func placesOf(program string) []place {
	var places []place
	for _, known := range binaries.Programs() {
		if known.Name == program {
			for _, arch := range architectures {
				places = append(places, place{known.Release, arch})
			}
		}
	}
	return places
}

// published reads a checksum at the place where the project publishes it.
func published(ctx context.Context, entry Entry, at place) (string, error) {
	body, err := get(ctx, at.in(entry.Published))
	if err != nil {
		return "", err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, mostOfSums))
	if err != nil {
		return "", &UnreachableError{at.in(entry.Published), err}
	}
	sum := sumIn(content, path.Base(at.in(entry.URL)))
	if sum == "" {
		return "", fmt.Errorf("%s has no checksum of %s", at.in(entry.Published), path.Base(at.in(entry.URL)))
	}
	return sum, nil
}

// sumIn finds the checksum of a file: the only word there is, or the first one of the line that ends with the file's name.
func sumIn(content []byte, name string) string {
	if words := strings.Fields(string(content)); len(words) == 1 {
		return sumOrNone(words[0])
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 2 && path.Base(strings.TrimPrefix(words[1], "*")) == name {
			return sumOrNone(words[0])
		}
	}
	return ""
}

func sumOrNone(word string) string {
	if _, err := hex.DecodeString(word); err != nil {
		return ""
	}
	if _, err := digestOf(word); err != nil {
		return ""
	}
	return strings.ToLower(word)
}
