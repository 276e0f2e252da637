package query

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const (
	// mostAnswers and mostAnswerBytes bound the listings that are kept: askers may name any version.
	mostAnswers     = 64
	mostAnswerBytes = 64 << 20
	// decisionsAtOnce bounds the work that askers with ever new versions can make.
	decisionsAtOnce = 2
	// leastGzip is the size in bytes from which on a body is sent compressed.
	leastGzip = 1024
)

// pair is what a listing depends on beside the catalogue; both versions are canonical.
type pair struct {
	kkp, k8s string
	explain  bool
	describe bool
}

// content is a body ready to be sent, and shared by all who ask for it.
type content struct {
	plain form
	// packed is the same with gzip; without a body where it is not worth it.
	packed form
}

// form is a body with the values of its headers.
type form struct {
	body         []byte
	etag, length []string
}

// answers keep the listings of the platforms that were asked for last. They are bounded by bytes that become known after an
// answer has its place, which pkg/lru does not do.
type answers struct {
	preReleases bool
	metrics     *Metrics
	turns       chan struct{}

	mutex sync.Mutex
	byKey map[pair]*list.Element
	// order has *answer, the one asked for last in front.
	order list.List
	bytes int
}

// answer is the listing of one platform.
type answer struct {
	key pair
	// size is what answers.bytes has of it; answers.mutex guards it.
	size    int
	mutex   sync.Mutex
	present atomic.Pointer[listing]
}

// listing is an answer at one snapshot of the catalogue.
type listing struct {
	content
	snapshot uint64
	// pieces are the places in the plain body of the add-ons, by the ID of their object.
	pieces map[uint64]piece
}

// piece is plain.body[from:to]; empty for an add-on with nothing to tell.
type piece struct{ from, to int }

func newAnswers(preReleases bool, metrics *Metrics) *answers {
	return &answers{
		preReleases: preReleases, metrics: metrics, turns: make(chan struct{}, decisionsAtOnce), byKey: map[pair]*list.Element{},
	}
}

// to gives the listing of a platform, made now where it is not kept. Whoever asks meanwhile waits for the same one. Errors:
// *UnavailableError when the context ends first.
func (a *answers) to(ctx context.Context, at *snapshot, key pair) (*content, error) {
	kept := a.find(key)
	if present := kept.present.Load(); present != nil && present.snapshot >= at.number {
		a.metrics.answered("kept")
		return &present.content, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return nil, &UnavailableError{"too many platforms are being asked for now", ctx.Err()}
	}
	kept.mutex.Lock()
	defer kept.mutex.Unlock()
	before := kept.present.Load()
	if before != nil && before.snapshot >= at.number {
		a.metrics.answered("kept")
		return &before.content, nil
	}
	made, err := a.decide(at, key, before)
	if err != nil {
		return nil, fmt.Errorf("encoding a listing: %w", err)
	}
	a.metrics.answered("decided")
	kept.present.Store(made)
	a.account(kept, made)
	return &made.content, nil
}

// find gives the place of a platform's answer, and makes it where there is none.
func (a *answers) find(key pair) *answer {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if element, ok := a.byKey[key]; ok {
		a.order.MoveToFront(element)
		return element.Value.(*answer)
	}
	made := &answer{key: key}
	a.byKey[key] = a.order.PushFront(made)
	a.shrink()
	return made
}

// account notes the size of an answer that was made. One that fell out meanwhile is sent and not kept.
func (a *answers) account(kept *answer, made *listing) {
	const perPiece = 64 // bytes of a map's entry, roughly
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if element, ok := a.byKey[kept.key]; !ok || element.Value != kept {
		return
	}
	a.bytes -= kept.size
	kept.size = cap(made.plain.body) + cap(made.packed.body) + perPiece*len(made.pieces)
	a.bytes += kept.size
	a.shrink()
}

func (a *answers) shrink() {
	for a.order.Len() > mostAnswers || a.bytes > mostAnswerBytes && a.order.Len() > 0 {
		dropped := a.order.Remove(a.order.Back()).(*answer)
		a.bytes -= dropped.size
		delete(a.byKey, dropped.key)
	}
	a.metrics.keeps(a.bytes)
}

// decide makes a listing. Add-ons that did not change since before keep their piece.
func (a *answers) decide(at *snapshot, key pair, before *listing) (*listing, error) {
	made := &listing{snapshot: at.number, pieces: make(map[uint64]piece, len(at.objects))}
	lister := catalogue.NewLister(catalogue.Platform{
		KKPVersion: key.kkp, K8sVersion: key.k8s, AllowPrereleases: a.preReleases,
	}, catalogue.ListOptions{Explain: key.explain, Describe: key.describe})
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // ranges are full of < and >
	if err := writeHead(&body, encoder, key); err != nil {
		return nil, err
	}
	separator := ""
	for _, object := range at.objects {
		start := body.Len()
		body.WriteString(separator)
		written, err := writeAddon(&body, encoder, lister, object, before)
		if err != nil {
			return nil, err
		}
		if !written {
			body.Truncate(start)
			made.pieces[object.id] = piece{}
			continue
		}
		made.pieces[object.id] = piece{start + len(separator), body.Len()}
		separator = ","
	}
	body.WriteString("]}\n")
	made.content = newContent(bytes.Clone(body.Bytes()))
	return made, nil
}

// writeHead writes a Listing up to the first add-on.
func writeHead(body *bytes.Buffer, encoder *json.Encoder, key pair) error {
	for _, part := range []struct{ before, text string }{{`{"kkpVersion":`, key.kkp}, {`,"k8sVersion":`, key.k8s}} {
		body.WriteString(part.before)
		if err := encoder.Encode(part.text); err != nil {
			return err
		}
		body.Truncate(body.Len() - 1) // the encoder's line end
	}
	body.WriteString(`,"addons":[`)
	return nil
}

func writeAddon(
	body *bytes.Buffer, encoder *json.Encoder, lister *catalogue.Lister, object object, before *listing,
) (written bool, err error) {
	if before != nil {
		if old, ok := before.pieces[object.id]; ok {
			body.Write(before.plain.body[old.from:old.to])
			return old.to > old.from, nil
		}
	}
	listed, ok := lister.List(object.entry)
	if !ok {
		return false, nil
	}
	if err := encoder.Encode(listed); err != nil {
		return false, err
	}
	body.Truncate(body.Len() - 1)
	return true, nil
}

// newContent compresses a body and takes its digest.
func newContent(body []byte) content {
	sum := sha256.Sum256(body)
	etag := base64.RawURLEncoding.EncodeToString(sum[:16])
	made := content{plain: newForm(body, etag)}
	if len(body) < leastGzip {
		return made
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, failed := writer.Write(body)
	if closed := writer.Close(); failed == nil && closed == nil { // a buffer takes everything
		made.packed = newForm(bytes.Clone(packed.Bytes()), etag+"-gzip")
	}
	return made
}

// newForm prepares the headers of a body; an empty etag is none.
func newForm(body []byte, etag string) form {
	made := form{body: body, length: []string{strconv.Itoa(len(body))}}
	if etag != "" {
		made.etag = []string{`"` + etag + `"`}
	}
	return made
}
