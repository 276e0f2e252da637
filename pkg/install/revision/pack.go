package revision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

const (
	// partSize is the size of one Secret, in bytes; an API server accepts 1 MiB.
	partSize = 900 << 10
	// unpackedLimit: objects and a Helm manifest have 16 MiB each, in addition to the inventory.
	unpackedLimit = 64 << 20
	packedLimit   = 32 << 20
	// window is how far back the encoder searches for repetition; large definitions, which resemble one another, have
	// 400 KiB. The encoder keeps twice this from its first large record on; with the default window of 8 MiB that would
	// be 16 MiB.
	window = 1 << 20
)

// coders are shared, since each takes megabytes. Both may be used concurrently in their All forms.
var coders = sync.OnceValue(func() (pair struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}) {
	// The options are constants; neither constructor fails with them.
	pair.encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	pair.decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(unpackedLimit))
	return pair
})

func pack(record *Record) ([]byte, error) {
	name := headName(record.Owner(), record.Revision)
	plain, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encoding release record %q: %w", name, err)
	}
	packed := coders().encoder.EncodeAll(plain, nil)
	if len(plain) > unpackedLimit || len(packed) > packedLimit {
		return nil, &TooLargeError{
			Secret: name, Installation: record.Installation, What: "bytes", Have: len(plain), Max: unpackedLimit,
		}
	}
	return packed, nil
}

// split returns no chunks for a record that fits into its head.
func split(packed []byte) [][]byte {
	if len(packed) <= partSize {
		return nil
	}
	return slices.Collect(slices.Chunk(packed, partSize))
}

// freeNumbers are unused part numbers: from 1, or above the used ones.
func freeNumbers(used []int, count int) []int {
	first := 1
	if len(used) > 0 && used[0] <= count {
		first = used[len(used)-1] + 1
	}
	var numbers []int
	for i := range count {
		numbers = append(numbers, first+i)
	}
	return numbers
}

// read reads an owner's revision. Unsealed ones are not unpacked.
func (r *Records) read(ctx context.Context, head *corev1.Secret, owner ownership.Owner, revision int) (*Record, error) {
	about, err := r.seal.open(head)
	if err != nil {
		return nil, err
	}
	if !about.is(owner, revision) {
		return nil, &DamagedError{head.Name, "belongs to another installation"}
	}
	packed, err := r.gather(ctx, head, about)
	if err != nil {
		return nil, err
	}
	record, err := unpack(head.Name, packed, about)
	if err != nil {
		return nil, err
	}
	if record.Owner() != owner || record.Revision != revision || record.State != about.State {
		return nil, &DamagedError{head.Name, "differs from its index"}
	}
	record.stored = stored{resourceVersion: head.ResourceVersion, parts: about.Parts}
	return record, nil
}

func unpack(name string, packed []byte, about index) (*Record, error) {
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != about.Digest {
		return nil, &DamagedError{name, "does not match its recorded digest"}
	}
	plain, err := coders().decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, &DamagedError{name, "can't be unpacked"}
	}
	if problem := scan(plain); problem != "" {
		return nil, &DamagedError{name, problem}
	}
	record := &Record{}
	if err := json.Unmarshal(plain, record); err != nil {
		return nil, &DamagedError{name, "can't be decoded"} // the decoder's error may quote the record
	}
	return record, nil
}

func (r *Records) gather(ctx context.Context, head *corev1.Secret, about index) ([]byte, error) {
	if len(about.Parts) == 0 {
		return head.Data[keyRecord], nil
	}
	var packed []byte
	for _, number := range about.Parts {
		var part corev1.Secret
		key := client.ObjectKey{Namespace: head.Namespace, Name: partName(head.Name, number)}
		err := r.reader.Get(ctx, key, &part)
		if apierrors.IsNotFound(err) {
			return nil, &DamagedError{head.Name, fmt.Sprintf("lacks part %d", number)}
		}
		if err != nil {
			return nil, fmt.Errorf("reading part %q of a release record: %w", key.Name, err)
		}
		if packed = append(packed, part.Data[keyRecord]...); len(packed) > packedLimit {
			return nil, &DamagedError{head.Name, "is larger than the limit"}
		}
	}
	return packed, nil
}
