package distributor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// places are the clusters of the seeds in these tests: Seed "north" leads to the master itself, "south" to the other one.
var places = map[string]string{"north": "master", "south": "seed"}

// dropSets removes what is left of the sets of a world.
func (w *world) dropSets() {
	ctx := context.Background()
	for _, at := range []struct {
		client    client.Client
		namespace string
	}{{w.master, w.platform}, {w.master, w.catalogue}, {w.client("seed"), w.catalogue}} {
		var list v1.AddonSetList
		if err := at.client.List(ctx, &list, client.InNamespace(at.namespace)); err != nil {
			w.t.Error(err)
		}
		for i := range list.Items {
			before := list.Items[i].DeepCopy()
			list.Items[i].Finalizers = nil
			err := at.client.Patch(ctx, &list.Items[i], client.MergeFrom(before))
			if err == nil {
				err = at.client.Delete(ctx, &list.Items[i])
			}
			if client.IgnoreNotFound(err) != nil {
				w.t.Error(err)
			}
		}
	}
}

// twoSeeds makes both Seeds, and the catalogue that sets of these tests are about.
func (w *world) twoSeeds() {
	w.seed("north", kubeconfigOf("master"))
	w.seed("south", kubeconfigOf("seed"))
	expect.Create(w.t, w.master, w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}}))
}

// setOf is a set of one item in two groups: canary, and rest.
func (w *world) setOf(name string) *v1.AddonSet {
	return &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name},
		Spec: v1.AddonSetSpec{
			ClusterSelector: &metav1.LabelSelector{},
			Addons: []v1.AddonSetItem{{
				Name: "frontend", AddonRef: v1.AddonReference{Name: "web", Version: "1.x"}, TargetNamespace: "web",
			}},
			Rollout: &v1.Rollout{Groups: []v1.RolloutGroup{{
				Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}},
			}}},
		},
	}
}

func (w *world) copyOf(set *v1.AddonSet) *v1.AddonSet {
	return &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: set.Name}}
}

// expectCopy waits until a seed's copy is as a test wants it.
func (w *world) expectCopy(seed string, set *v1.AddonSet, holds func(*v1.AddonSet) error) *v1.AddonSet {
	w.t.Helper()
	return expect.Object(w.t, w.client(places[seed]), w.copyOf(set), holds)
}

// carriedBy waits until the copy has the present spec.
func carriedBy(set *v1.AddonSet) func(*v1.AddonSet) error {
	want, _ := catalogue.SetDigest(&set.Spec)
	return func(found *v1.AddonSet) error {
		if got, _ := catalogue.SetDigest(&found.Spec); got != want || found.Annotations[v1.AnnotationDigest] != want {
			return fmt.Errorf("content %s, annotated %s, want %s", got, found.Annotations[v1.AnnotationDigest], want)
		}
		return nil
	}
}

// seedSays plays the seed's controller: it writes the status of a copy, in a revision, with the counts of both groups.
func (w *world) seedSays(seed string, set *v1.AddonSet, revision string, groups ...v1.ClusterCounts) {
	w.t.Helper()
	w.seedSaysMore(seed, set, func(status *v1.AddonSetStatus) {
		status.Revision = revision
		status.Counts = &v1.ClusterCounts{}
		status.Groups = nil
		for i, name := range []string{"canary", v1.GroupRest}[:len(groups)] {
			status.Groups = append(status.Groups, v1.GroupStatus{Name: name, State: v1.GroupOpen, Counts: groups[i]})
			status.Counts.Selected += groups[i].Selected
			status.Counts.Current += groups[i].Current
			status.Counts.Behind += groups[i].Behind
			status.Counts.Failed += groups[i].Failed
		}
	})
}

func (w *world) seedSaysMore(seed string, set *v1.AddonSet, change func(*v1.AddonSetStatus)) {
	w.t.Helper()
	there := w.client(places[seed])
	digests := map[string]string{}
	for i := range set.Spec.Addons {
		name := string(set.Spec.Addons[i].AddonRef.Name)
		merged := expect.Object(w.t, there, w.merged(name), func(*v1.AddonCatalogue) error { return nil })
		digests[name] = merged.Annotations[v1.AnnotationDigest]
	}
	copied := w.expectCopy(seed, set, carriedBy(set))
	before := copied.DeepCopy()
	copied.Status.ObservedGeneration, copied.Status.Catalogues = copied.Generation, catalogue.DependencyDigest(digests)
	change(&copied.Status)
	expect.PatchStatus(w.t, there, copied, client.MergeFrom(before))
}

// expectGate waits for the gate of a seed's copy.
func (w *world) expectGate(seed string, set *v1.AddonSet, want string) {
	w.t.Helper()
	w.expectCopy(seed, set, func(found *v1.AddonSet) error {
		if got := found.Annotations[v1.AnnotationGate]; got != want {
			return fmt.Errorf("gate %q, want %q", got, want)
		}
		return nil
	})
}

func (w *world) expectSet(set *v1.AddonSet, kind, status, reason string) *v1.AddonSet {
	w.t.Helper()
	return expect.HasCondition(w.t, w.master, set.DeepCopy(), expect.Is(kind, status, reason))
}

func editSet(w *world, set *v1.AddonSet, change func(*v1.AddonSet)) {
	w.t.Helper()
	expect.Change(w.t, w.master, set, change)
}

func done(clusters int32) v1.ClusterCounts {
	return v1.ClusterCounts{Selected: clusters, Current: clusters}
}

func behind(clusters int32) v1.ClusterCounts {
	return v1.ClusterCounts{Selected: clusters, Behind: clusters}
}

func failing(clusters, failed int32) v1.ClusterCounts {
	return v1.ClusterCounts{Selected: clusters, Current: clusters - failed, Failed: failed}
}

// between is a proxy before a seed's API server that counts calls, is cut off, lies and forbids.
type between struct {
	calls atomic.Int64
	ended chan struct{}
	cut   func()
	mutex sync.Mutex
	lie   func(map[string]any)
	// forbidden is the kind that nobody may have, by its name in paths; empty: none.
	forbidden string
	// writes are the calls that write, and watches what the running ones are answered through.
	writes  []string
	watches []*io.PipeWriter
	// lists counts, by kind, how often all objects of a namespace were asked for.
	lists map[string]int
}

// endWatches ends all that run: in order where the failure is nil.
func (b *between) endWatches(failure error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, one := range b.watches {
		_ = one.CloseWithError(failure)
	}
	b.watches = nil
}

// written are the calls that wrote since it was asked last, sorted.
func (b *between) written() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	found := slices.Sorted(slices.Values(b.writes))
	b.writes = nil
	return found
}

// awaitQuiet waits until nobody called for so long.
func (b *between) awaitQuiet(t *testing.T, long time.Duration) {
	t.Helper()
	last, since := int64(0), time.Now()
	expect.Eventually(t, expect.Patience, func() error {
		if now := b.calls.Load(); now != last {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < long {
			return fmt.Errorf("%d calls, and nothing for %s only", last, quiet)
		}
		return nil
	})
}

func (b *between) note(r *http.Request) {
	b.calls.Add(1)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if r.Method == http.MethodGet {
		b.lists[path.Base(r.URL.Path)]++
		return
	}
	b.writes = append(b.writes, r.Method+" "+path.Base(r.URL.Path))
}

// forbid a kind, by its name in paths; empty allows all again.
func (b *between) forbid(kind string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.forbidden = kind
}

func (b *between) isForbidden(r *http.Request) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.forbidden != "" && strings.Contains(r.URL.Path, "/"+b.forbidden)
}

// listed says how often all objects of a kind were asked for.
func (b *between) listed(kind string) int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.lists[kind]
}

// watched is the body of a watch that endWatches ends.
func (b *between) watched(body io.ReadCloser) io.ReadCloser {
	read, write := io.Pipe()
	b.watches = append(b.watches, write)
	go func() {
		_, err := io.Copy(write, body)
		_ = write.CloseWithError(err)
		_ = body.Close()
	}()
	return read
}

func (b *between) lies(lie func(map[string]any)) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.lie = lie
}

// proxy makes one, with the kubeconfig that leads through it.
func proxy(t *testing.T, cluster string) (*between, []byte) {
	t.Helper()
	config := fleet.Shared().Cluster(cluster).Config
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{ended: make(chan struct{}), lists: map[string]int{}}
	b.cut = sync.OnceFunc(func() { close(b.ended) })
	forward := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Authorization") },
		ModifyResponse: func(response *http.Response) error {
			b.mutex.Lock()
			defer b.mutex.Unlock()
			path := response.Request.URL.Path
			if response.Request.URL.Query().Has("watch") && response.StatusCode == http.StatusOK {
				response.Body = b.watched(response.Body)
				return nil
			}
			if b.lie == nil || response.Request.Method != http.MethodGet || !strings.Contains(path, "/addonsets/") || response.StatusCode != http.StatusOK {
				return nil
			}
			var object map[string]any
			if err := json.NewDecoder(response.Body).Decode(&object); err != nil {
				return err
			}
			b.lie(object)
			body, err := json.Marshal(object)
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			response.Header.Del("Content-Length")
			return err
		},
	}
	kubeconfig := foreignSeed(t, func(answer http.ResponseWriter, r *http.Request) {
		b.note(r)
		if b.isForbidden(r) {
			http.Error(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() { // a watch ends too
			select {
			case <-b.ended:
				cancel()
			case <-ctx.Done():
			}
		}()
		forward.ServeHTTP(answer, r.WithContext(ctx))
	})
	return b, kubeconfig
}
