package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
)

func TestMirrorsServeEveryFetch(t *testing.T) {
	upstream := fetchtest.Serve(t, http.NotFoundHandler())
	repositories, charts := fetchtest.ServeGit(t), fetchtest.ServeCharts(t)
	repositories.Repository(t, "hub/addons").Commit("main", map[string]string{"x": "mirrored"})
	charts.Put("/redis-1.0.0.tgz", fetchtest.Chart("redis", "1.0.0", nil))
	charts.List("redis", "1.0.0", "", "https://files.example.com/redis-1.0.0.tgz") // as the upstream's index has it
	var mirrors fetch.Mirrors
	for _, text := range []string{
		upstream.URL + "/git/=" + repositories.URL + "/hub/", upstream.URL + "/charts=" + charts.URL, "https://files.example.com=" + charts.URL,
	} {
		if err := mirrors.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback, Mirrors: mirrors})
	t.Cleanup(network.Close)
	opened, err := store.New(store.Options{
		Folder: disk.TempDir(t), Kinds: fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(helmrepo.New(network))), Mirrors: mirrors,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	credentials := fetch.Credentials{
		CA: []byte(string(repositories.CA) + string(charts.CA)), Username: "u", Password: "canary",
	}
	snapshot, err := await(t, opened, fetch.Reference{
		Location: git.Location{Remote: upstream.URL + "/git/addons.git", Branch: "main"}, Credentials: credentials,
	})
	if err != nil || content(t, snapshot, "x") != "mirrored" {
		t.Errorf("git: %v", err)
	}
	chart := fetch.Reference{
		Location: helmrepo.Location{URL: upstream.URL + "/charts", Chart: "redis", Version: "1.0.0"}, Credentials: credentials,
	}
	if _, err = await(t, opened, chart); err != nil {
		t.Errorf("helm: %v", err)
	}
	opened.Refresh(chart)
	if _, err = await(t, opened, chart); err != nil {
		t.Errorf("helm, once more: %v", err)
	}
	if seen := upstream.Requests(); len(seen) != 0 {
		t.Errorf("the upstream was asked: %v", seen)
	}
	for _, seen := range append(repositories.Requests(), charts.Requests()...) {
		if seen.Header.Get("Authorization") != "" {
			t.Error("a mirror got credentials that are not for it")
		}
	}
}

// TestStoreWaitsAsTheServerAsks (AC24): The store waits as long as the server requests.
func TestStoreWaitsAsTheServerAsks(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	server := fetchtest.ServeGit(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if busy.Load() {
				w.Header().Set("Retry-After", "300")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "x"})
	opened, _ := open(t, store.Options{FirstPause: time.Millisecond, LastPause: time.Millisecond})
	reference := gitReference(server, repository)
	_, err := await(t, opened, reference)
	if unavailable, ok := errors.AsType[*fetch.UnavailableError](err); !ok || unavailable.RetryAfter != 5*time.Minute {
		t.Fatalf("got %v", err)
	}
	for i := range 50 { // no other request to the same host is sent either
		other := reference
		other.Location = git.Location{Remote: repository.URL, Branch: fetch.Selector(fmt.Sprintf("b%d", i))}
		if _, err := await(t, opened, other); err == nil {
			t.Fatal("got something")
		}
	}
	if seen := len(server.Requests()); seen != 1 {
		t.Errorf("the server has seen %d requests, want 1", seen)
	}
	if looks := opened.Stats().Resolutions; looks != 51 {
		t.Errorf("%d looks at 51 references: who was sent away came back early", looks)
	}
}

// failing is a source whose fetch fails as a test sets.
type failing struct {
	*git.Source
	problem atomic.Pointer[error]
}

// Fetch fails, or calls the real one.
func (f *failing) Fetch(
	ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string,
) (string, error) {
	if problem := f.problem.Load(); problem != nil {
		return "", *problem
	}
	return f.Source.Fetch(ctx, reference, revision, folder)
}

// TestFullDiskKeepsWhatIsThere (AC30): With a full disk a fetch fails cleanly, and existing content stays.
func TestFullDiskKeepsWhatIsThere(t *testing.T) {
	server := fetchtest.ServeGit(t)
	first, second := server.Repository(t, "first"), server.Repository(t, "second")
	first.Commit("main", map[string]string{"x": "first"})
	second.Commit("main", map[string]string{"x": "second"})
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	source := &failing{Source: git.New(network)}
	folder := disk.TempDir(t)
	opened, err := store.New(store.Options{
		Folder: folder, Kinds: fetch.NewKinds(fetch.Serve(source)), FirstPause: time.Hour, LastPause: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	if _, err := await(t, opened, gitReference(server, first)); err != nil {
		t.Fatal(err)
	}
	var full error = &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	source.problem.Store(&full)
	_, err = await(t, opened, gitReference(server, second))
	if _, ok := errors.AsType[*fetch.UnavailableError](err); !ok || !strings.Contains(err.Error(), "no space") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"content", "work"} {
		if left, err := os.ReadDir(filepath.Join(folder, name)); err != nil || len(left) != 0 {
			t.Errorf("%s keeps %v, %v", name, left, err)
		}
	}
	source.problem.Store(nil)
	for _, repository := range []*fetchtest.Repository{first, second} {
		opened.Refresh(gitReference(server, repository))
		if _, err := await(t, opened, gitReference(server, repository)); err != nil {
			t.Errorf("with space again: %v", err)
		}
	}
}

// dirty is a source that leaves half of a fetch, the first time.
type dirty struct {
	*git.Source
	folders []string
	found   []int // entries of the folder at the start of the fetch
}

// Fetch lists the given folder before it fetches.
func (d *dirty) Fetch(
	ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string,
) (string, error) {
	entries, err := os.ReadDir(folder)
	d.folders, d.found = append(d.folders, folder), append(d.found, len(entries))
	if len(d.folders) > 1 || err != nil {
		return d.Source.Fetch(ctx, reference, revision, folder)
	}
	if err := os.Symlink("/etc", filepath.Join(folder, "x")); err != nil {
		return "", err
	}
	return "", &fetch.UnavailableError{Subject: "the source", Err: errors.New("is incomplete")}
}

// TestEachFetchStartsInAnEmptyFolder (V22): Files of a fetch that was interrupted or redirected are never there for
// the next one.
func TestEachFetchStartsInAnEmptyFolder(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "good"})
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	source := &dirty{Source: git.New(network)}
	opened, err := store.New(store.Options{Folder: disk.TempDir(t), Kinds: fetch.NewKinds(fetch.Serve(source)), FirstPause: time.Hour, LastPause: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	reference := gitReference(server, repository)
	if _, err := await(t, opened, reference); err == nil {
		t.Fatal("half of a fetch is handed out")
	}
	opened.Refresh(reference)
	if snapshot, err := await(t, opened, reference); err != nil || content(t, snapshot, "x") != "good" {
		t.Errorf("got %v", err)
	}
	if len(source.found) != 2 || source.found[0] != 0 || source.found[1] != 0 || source.folders[0] == source.folders[1] {
		t.Errorf("folders %v had %v entries", source.folders, source.found)
	}
}

func TestMetricsByHost(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "12345"})
	registry := prometheus.NewPedanticRegistry()
	options := store.Options{Folder: disk.TempDir(t), Metrics: store.NewMetrics(registry)}
	opened, _ := open(t, options)
	reference := gitReference(server, repository)
	reference.Credentials.Username, reference.Credentials.Password = "canary", "canary"
	if _, err := await(t, opened, reference); err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Get(reference, "x", nil); err != nil {
		t.Fatal(err)
	}
	for i, remote := range []string{"https://canary:canary@127.0.0.1/x", "canary", "https://canary canary/x", "ssh://canary@@/x"} {
		_, err := await(t, opened, fetch.Reference{Location: git.Location{Remote: remote, Branch: "main"}})
		if err == nil {
			t.Errorf("%d: got something", i)
		}
	}
	for i := range 200 { // hosts that a catalogue may make up
		remote := fmt.Sprintf("http://host-%d.example.com/x", i)
		if _, err := await(t, opened, fetch.Reference{Location: git.Location{Remote: remote, Branch: "main"}}); err == nil {
			t.Fatal("plain http is allowed")
		}
	}
	series, figures := 0, map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "https://")
	for _, family := range families {
		series += len(family.GetMetric())
		for _, metric := range family.GetMetric() {
			if strings.Contains(metric.String(), "canary") {
				t.Errorf("%s names what a reference has in the place of a host: %s", family.GetName(), metric)
			}
			labels := metric.GetLabel()
			if len(labels) == 0 || labels[0].GetValue() == host {
				figures[family.GetName()] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	if series > 350 {
		t.Errorf("%d series", series)
	}
	for host, want := range map[string]string{
		"git.example.com:8443": "git.example.com:8443", "[::1]:443": "[::1]:443", "": "other", "u:p@host": "other", "a b": "other",
		strings.Repeat("a", 300): "other",
	} {
		if got := store.NewMetrics(prometheus.NewRegistry()).Label(host); got != want {
			t.Errorf("host %q is counted as %q", host, got)
		}
	}
	want := map[string]float64{
		"trellis_fetch_resolutions_total": 1, "trellis_fetch_fetches_total": 1, "trellis_fetch_bytes_total": 5,
		"trellis_fetch_hits_total": 2, "trellis_fetch_store_bytes": 5 + 2*fetch.EntryCost,
	}
	if diff := cmp.Diff(want, figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}
