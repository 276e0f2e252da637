package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const (
	// packLimit is the largest answer with a pack, in bytes on the wire.
	packLimit = 200 << 20
	// progressLimit bounds messages beside the pack, in bytes. We ask for none.
	progressLimit = 1 << 20
)

// wantLimit is the most tips to ask for in a search for a commit.
const wantLimit = 20_000

type uploadRequest struct {
	wants []plumbing.Hash
	depth int // 0: with all history
}

// encode writes the request: wants, the first with our capabilities, depth, flush, done.
func (u uploadRequest) encode() ([]byte, error) {
	var request bytes.Buffer
	lines := pktline.NewEncoder(&request)
	capabilities := " ofs-delta side-band-64k no-progress agent=trellis"
	for _, hash := range u.wants {
		if err := lines.Encodef("want %s%s\n", hash, capabilities); err != nil {
			return nil, err
		}
		capabilities = ""
	}
	if u.depth > 0 {
		if err := lines.Encodef("deepen %d\n", u.depth); err != nil {
			return nil, err
		}
	}
	if err := lines.Flush(); err != nil {
		return nil, err
	}
	err := lines.EncodeString("done\n")
	return request.Bytes(), err
}

func (a *advertisement) upload(ctx context.Context, from link, request uploadRequest, file *os.File) error {
	if !a.capabilities["side-band-64k"] {
		return &fetch.RefusedError{Subject: outbound.Shown(a.base), Rule: "the server is too old: it lacks side-band-64k"}
	}
	if len(request.wants) > wantLimit {
		return &fetch.RefusedError{Subject: outbound.Shown(a.base), Rule: fmt.Sprintf(
			"the commit is no tip, the server does not give commits by hash, and there are more than %d refs to search", wantLimit)}
	}
	content, err := request.encode()
	if err != nil {
		return err
	}
	answer, err := from.upload(ctx, content)
	if err != nil {
		return err
	}
	defer answer.Close()
	return a.receive(answer, request.depth > 0, &bands{into: file, progress: progressLimit})
}

// receive reads the answer: with limited depth the shallow commits and a flush, then NAK, then the
// pack in bands.
func (a *advertisement) receive(from io.Reader, shallow bool, into *bands) error {
	lines := pktline.NewScanner(from)
	for lines.Scan() {
		switch line := string(lines.Bytes()); {
		case shallow && line == "":
			shallow = false
		case shallow && strings.HasPrefix(line, "shallow "), shallow && strings.HasPrefix(line, "unshallow "):
		case !shallow && strings.HasPrefix(line, "NAK"):
			return a.bands(lines, into)
		default:
			return a.brokenPack(nil)
		}
	}
	return a.brokenPack(lines.Err())
}

// Bands of the side-band protocol.
const (
	bandPack     = 1
	bandProgress = 2
	bandError    = 3
)

type bands struct {
	into     io.Writer
	progress int64 // how much more of it is listened to; none was asked for
}

func (a *advertisement) bands(lines *pktline.Scanner, into *bands) error {
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			return nil
		}
		switch line[0] {
		case bandPack:
			if _, err := into.into.Write(line[1:]); err != nil {
				return fmt.Errorf("keep pack: %w", err)
			}
		case bandProgress:
			if into.progress -= int64(len(line)); into.progress < 0 {
				return &fetch.RefusedError{
					Subject: outbound.Shown(a.base), Rule: "its messages beside the pack are larger than " + outbound.Bytes(progressLimit),
				}
			}
		case bandError:
			return a.brokenPack(errors.New("the server gives up"))
		default:
			return a.brokenPack(nil)
		}
	}
	return a.brokenPack(lines.Err())
}

func (a *advertisement) brokenPack(err error) error {
	return protocolError(a.base, err, "the server sends no complete pack")
}

func isBranchOrTag(name string) bool {
	return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") && !strings.HasSuffix(name, peeled)
}
