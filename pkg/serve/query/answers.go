package query

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const (
	// mostAnswers and mostAnswerBytes bound the cached listings: callers may name any version.
	mostAnswers     = 64
	mostAnswerBytes = 64 << 20
	// decisionsAtOnce bounds the work that callers with new versions can cause.
	decisionsAtOnce = 2
	// leastGzip is the smallest body that is compressed, in bytes.
	leastGzip = 1024
)

// pair is everything that a listing depends on in addition to the catalogue; both versions are canonical.
type pair struct {
	kkp, k8s string
	explain  bool
	describe bool
}

// content is a body ready to send, shared by all callers.
type content struct {
	plain form
	// packed is the body with gzip; empty for a small one.
	packed form
	// retryAfter is when to ask again for an answer that is not complete, in seconds; 0: it is complete.
	retryAfter int
	// stream sends the answer to a GET as it comes, and returns its status; nil: the body is the answer.
	stream func(http.ResponseWriter, *http.Request) int
}

type form struct {
	body         []byte
	etag, length []string
}

// answers caches the most recent listings. Their bytes are known too late for pkg/base/lru.
type answers struct {
	preReleases bool
	metrics     *Metrics
	turns       chan struct{}

	mutex sync.Mutex
	byKey map[pair]*list.Element
	// order has *answer, most recently used first.
	order list.List
	bytes int
}

type answer struct {
	key pair
	// size is the answer's part of answers.bytes, guarded by answers.mutex.
	size    int
	mutex   sync.Mutex
	present atomic.Pointer[listing]
}

type listing struct {
	content
	snapshot uint64
	// pieces are the add-ons' places in the plain body, by the ID of their object.
	pieces map[uint64]piece
}

// piece is plain.body[from:to]; empty for an add-on that is not listed.
type piece struct{ from, to int }

func newAnswers(preReleases bool, metrics *Metrics) *answers {
	return &answers{
		preReleases: preReleases, metrics: metrics, turns: make(chan struct{}, decisionsAtOnce), byKey: map[pair]*list.Element{},
	}
}

// to returns the cached listing of a platform, or makes it. Concurrent callers wait for the same
// one. Errors: *UnavailableError when the context ends first.
func (a *answers) to(ctx context.Context, at *snapshot, key pair) (*content, error) {
	cached := a.find(key)
	if present := cached.present.Load(); present != nil && present.snapshot >= at.number {
		a.metrics.answered("kept")
		return &present.content, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return nil, &UnavailableError{"too many other lists are being computed now", ctx.Err()}
	}
	cached.mutex.Lock()
	defer cached.mutex.Unlock()
	before := cached.present.Load()
	if before != nil && before.snapshot >= at.number {
		a.metrics.answered("kept")
		return &before.content, nil
	}
	made, err := a.decide(at, key, before)
	if err != nil {
		return nil, fmt.Errorf("encoding a listing: %w", err)
	}
	a.metrics.answered("decided")
	cached.present.Store(made)
	a.account(cached, made)
	return &made.content, nil
}

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

// account updates the size of an answer, unless it was dropped meanwhile.
func (a *answers) account(cached *answer, made *listing) {
	const perPiece = 64 // bytes of a map's entry, roughly
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if element, ok := a.byKey[cached.key]; !ok || element.Value != cached {
		return
	}
	a.bytes -= cached.size
	cached.size = cap(made.plain.body) + cap(made.packed.body) + perPiece*len(made.pieces)
	a.bytes += cached.size
	a.shrink()
}

func (a *answers) shrink() {
	for a.order.Len() > mostAnswers || a.bytes > mostAnswerBytes && a.order.Len() > 0 {
		dropped := a.order.Remove(a.order.Back()).(*answer)
		a.bytes -= dropped.size
		delete(a.byKey, dropped.key)
	}
	a.metrics.resized(a.bytes)
}

// decide makes a listing. It copies the pieces of unchanged add-ons.
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
	if closed := writer.Close(); failed == nil && closed == nil { // a buffer never fails
		made.packed = newForm(bytes.Clone(packed.Bytes()), etag+"-gzip")
	}
	return made
}

// newForm prepares a body's headers; etag may be empty.
func newForm(body []byte, etag string) form {
	made := form{body: body, length: []string{strconv.Itoa(len(body))}}
	if etag != "" {
		made.etag = []string{`"` + etag + `"`}
	}
	return made
}
