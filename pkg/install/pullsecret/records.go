package pullsecret

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const (
	// recordPrefix begins the name of a Cluster's ConfigMap; the rest is its Key.
	recordPrefix = "addon-pull-"
	// keyCopies holds Copies as JSON.
	keyCopies = "copies.json"
	// managedBy is the value of label managed-by of these ConfigMaps.
	managedBy = "pull-secret"
	// listed is how many records are read at once.
	listed = 50
	// MaxRecord is how large a record may grow, in bytes; a ConfigMap may have twice that. Few recorded copies
	// need entryBytes.
	MaxRecord, entryBytes = 512 << 10, 700
)

// Options identify the Secret to copy.
type Options struct {
	// Namespace is the platform's on the seed, Name the Secret's; empty: there is none.
	Namespace, Name string
	// Key keys digests of the content.
	Key []byte
	// Read returns a marked Secret whole.
	Read func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error)
	// Away is how long the original must be missing before its copies are removed.
	Away time.Duration
	// Needs are the namespaces whose pods, among these objects, name the Secret, and those labelled for it.
	Needs func(objects []*unstructured.Unstructured, name string) []string
}

// Records has the copies of all user clusters of a seed. Read records stay in memory for the life of the process,
// since one process writes at a time.
type Records struct {
	Options
	client Writer
	reader client.Reader

	mutex  sync.Mutex
	listed bool
	// awaySince is when the original was first missing, or without its mark; zero: it exists.
	awaySince time.Time
	// isUselessReported says that the log already has that the original is unusable.
	isUselessReported bool
	// held by the Key of the Cluster.
	held map[string]*Held
}

// Writer writes records.
type Writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
}

// NewRecords writes with a client whose calls don't end with a reconciliation, since written copies must be recorded,
// and reads past caches with the reader.
func NewRecords(c Writer, reader client.Reader, options Options) *Records {
	return &Records{Options: options, client: c, reader: reader, held: map[string]*Held{}}
}

// Hold gives the copies of a Cluster's user cluster to a reconciliation, until it calls Release; nil if there is
// neither a Secret to copy nor a copy. It waits for another reconciliation of the same cluster.
func (r *Records) Hold(ctx context.Context, cluster target.Ref, origin types.UID) (*Held, error) {
	held, err := r.take(ctx, cluster)
	if err != nil || held == nil {
		return nil, err
	}
	if held.Origin != origin { // the record is of another user cluster
		held.Copies, held.without = Copies{Origin: origin}, map[string]int{}
	}
	if r.Name == "" && len(held.All)+len(held.Uses) == 0 {
		held.Release()
		return nil, nil
	}
	return held, nil
}

// take is Hold for any user cluster that the Cluster has.
func (r *Records) take(ctx context.Context, cluster target.Ref) (*Held, error) {
	held, err := r.of(ctx, cluster.Key())
	if err != nil || held == nil {
		return nil, err
	}
	select {
	case held.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if held.stale {
		if err := held.read(ctx); err != nil {
			held.Release()
			return nil, err
		}
	}
	return held, nil
}

func (r *Records) of(ctx context.Context, cluster string) (*Held, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.list(ctx); err != nil {
		return nil, err
	}
	if r.held[cluster] == nil {
		if r.Name == "" {
			return nil, nil
		}
		r.held[cluster] = r.newHeld(cluster)
	}
	return r.held[cluster], nil
}

func (r *Records) newHeld(cluster string) *Held {
	return &Held{records: r, cluster: cluster, turn: make(chan struct{}, 1), without: map[string]int{}}
}

// list reads all records, once: without a name too, since copies of a previously named Secret must be removed.
func (r *Records) list(ctx context.Context) error {
	if r.listed {
		return nil
	}
	for next, more := "", true; more; {
		var found corev1.ConfigMapList
		err := r.reader.List(ctx, &found, client.InNamespace(r.Namespace), client.MatchingLabels{v1.LabelManagedBy: managedBy},
			client.Limit(listed), client.Continue(next))
		if err != nil {
			return fmt.Errorf("listing the copies of pull Secrets: %w", err)
		}
		for i := range found.Items {
			if cluster, is := strings.CutPrefix(found.Items[i].Name, recordPrefix); is {
				held := r.newHeld(cluster)
				held.parse(&found.Items[i])
				r.held[cluster] = held
			}
		}
		next = found.Continue
		more = next != ""
	}
	r.listed = true
	return nil
}

// Leave records that an installation that is deleted, or whose cluster is, needs nothing in a Cluster's user cluster.
// The user cluster is not called: its copies stay.
func (r *Records) Leave(ctx context.Context, cluster target.Ref, installation string) error {
	held, err := r.take(ctx, cluster)
	if err != nil || held == nil {
		return err
	}
	defer held.Release()
	delete(held.without, installation)
	held.unsaved = held.Copies.Leave(installation) || held.unsaved
	return held.Save(ctx)
}

// Forget removes the record of a deleted Cluster.
func (r *Records) Forget(ctx context.Context, cluster target.Ref) error {
	r.mutex.Lock()
	delete(r.held, cluster.Key())
	r.mutex.Unlock()
	object := (&Held{records: r, cluster: cluster.Key()}).object()
	if err := r.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the record of copies in the deleted cluster %q: %w", cluster.Key(), err)
	}
	return nil
}
