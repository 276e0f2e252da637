package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
)

// patience is how long a test waits for an event that is certain. It passes only if the code is broken.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open creates a store that reaches the servers of a test. It ends with the test, or by the function.
func open(t *testing.T, options store.Options) (*store.Store, func()) {
	t.Helper()
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	options.Kinds = fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(helmrepo.New(network)))
	if options.Folder == "" {
		options.Folder = disk.TempDir(t)
	}
	made, err := store.New(options)
	expect.NoError(t, err)
	end := sync.OnceFunc(func() {
		if err := made.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		network.Close()
	})
	t.Cleanup(end)
	return made, end
}

// await calls Get, and waits to be woken, until there is a result.
func await(t *testing.T, from *store.Store, reference fetch.Reference) (fetch.Snapshot, error) {
	t.Helper()
	woken := make(chan struct{}, 100)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		snapshot, err := from.Get(reference, fmt.Sprintf("%p", woken), func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		if !errors.Is(err, fetch.ErrPending) {
			return snapshot, err
		}
		select {
		case <-woken:
		case <-ctx.Done():
			t.Fatal("nobody woke the subscriber")
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func content(t *testing.T, snapshot fetch.Snapshot, name string) string {
	t.Helper()
	read, err := fs.ReadFile(snapshot.FS, name)
	expect.NoError(t, err)
	return string(read)
}

func TestGitAndHelmComeOnce(t *testing.T) {
	repositories, charts := fetchtest.ServeGit(t), fetchtest.ServeCharts(t)
	repository := repositories.Repository(t, "addons")
	repository.Commit("main", map[string]string{"one/x.yaml": "one", "two/x.yaml": "two", "three/x.yaml": "three"})
	charts.Add("redis", "1.0.0", nil)
	charts.Add("nginx", "2.0.0", nil)

	references := []fetch.Reference{}
	for _, path := range []string{"one", "two", "three"} {
		references = append(references, fetch.Reference{
			Location:    git.Location{Remote: repository.URL, Branch: "main", Path: path},
			Credentials: fetch.Credentials{CA: repositories.CA},
		})
	}
	for chart, version := range map[string]string{"redis": "1.0.0", "nginx": "2.0.0"} {
		references = append(references, fetch.Reference{
			Location:    helmrepo.Location{URL: charts.URL, Chart: chart, Version: fetch.Selector(version)},
			Credentials: fetch.Credentials{CA: charts.CA},
		})
	}
	opened := store.Options{Folder: disk.TempDir(t)}
	first, end := open(t, opened)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if _, err := await(t, first, references[i%len(references)]); err != nil {
				t.Errorf("get: %v", err)
			}
		})
	}
	all.Wait()
	packs := repositories.Count(http.MethodPost, "/addons.git/git-upload-pack")
	archives := charts.Count(http.MethodGet, "/redis-1.0.0.tgz") + charts.Count(http.MethodGet, "/nginx-2.0.0.tgz")
	if packs != 3 || archives != 2 {
		t.Errorf("servers saw %d packs and %d archives, want 3 and 2", packs, archives)
	}
	if stats := first.Stats(); stats.Fetches != 5 || stats.Failures != 0 {
		t.Errorf("stats: %+v", stats)
	}
	end()

	before := len(repositories.Requests()) + len(charts.Requests())
	second, _ := open(t, opened)
	for i, reference := range references {
		snapshot, err := second.Get(reference, "test", nil)
		if err != nil {
			t.Fatalf("reference %d after a restart: %v", i, err)
		}
		if i < 3 && content(t, snapshot, "x.yaml") != reference.Location.(git.Location).Path {
			t.Errorf("reference %d has other content after a restart", i)
		}
	}
	if after := len(repositories.Requests()) + len(charts.Requests()); after != before {
		t.Errorf("a restart cost %d requests", after-before)
	}
}

// TestACommitOfManyBranchesComesOnce fails when a commit that was just fetched is unknown to the next reference that
// needs it (digests not noted).
func TestACommitOfManyBranchesComesOnce(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	commit := repository.Commit("main", map[string]string{"x": "x"})
	references := []fetch.Reference{}
	for i := range 20 {
		branch := fmt.Sprintf("b%d", i)
		repository.Ref("refs/heads/"+branch, commit)
		reference := gitReference(server, repository)
		reference.Location = git.Location{Remote: repository.URL, Branch: fetch.Selector(branch)}
		references = append(references, reference)
	}
	opened, _ := open(t, store.Options{})
	var all sync.WaitGroup
	for _, reference := range references {
		all.Go(func() {
			if _, err := await(t, opened, reference); err != nil {
				t.Errorf("get: %v", err)
			}
		})
	}
	all.Wait()
	if fetches := opened.Stats().Fetches; fetches != 1 {
		t.Errorf("one commit was fetched %d times", fetches)
	}
}

func gitReference(server *fetchtest.Git, repository *fetchtest.Repository) fetch.Reference {
	return fetch.Reference{
		Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: fetch.Credentials{CA: server.CA},
	}
}

// watch subscribes to content that exists.
func watch(t *testing.T, opened *store.Store, reference fetch.Reference) chan struct{} {
	t.Helper()
	woken := make(chan struct{}, 100)
	_, err := opened.Get(reference, "watcher", func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	expect.NoError(t, err)
	return woken
}

func TestMovedBranchWakesItsSubscribers(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository, other := server.Repository(t, "x"), server.Repository(t, "other")
	repository.Commit("main", map[string]string{"x": "old"})
	other.Commit("main", map[string]string{"x": "other"})
	opened, _ := open(t, store.Options{Interval: 50 * time.Millisecond})
	reference := gitReference(server, repository)
	old, err := await(t, opened, reference)
	expect.NoError(t, err)
	if _, err := await(t, opened, gitReference(server, other)); err != nil {
		t.Fatal(err)
	}
	woken := watch(t, opened, reference)
	others := watch(t, opened, gitReference(server, other))
	looks := opened.Stats().Resolutions
	eventually(t, "further looks", func() bool { return opened.Stats().Resolutions > looks+4 })
	if len(woken) != 0 {
		t.Error("woken although nothing moved")
	}
	commit := repository.Commit("main", map[string]string{"x": "new"})
	select {
	case <-woken:
	case <-time.After(patience):
		t.Fatal("nobody was woken")
	}
	snapshot, err := opened.Get(reference, "watcher", nil)
	if err != nil || snapshot.Revision != commit || content(t, snapshot, "x") != "new" || snapshot.Digest == old.Digest {
		t.Errorf("got %v, %v", snapshot, err)
	}
	if content(t, old, "x") != "old" {
		t.Error("the old snapshot changed under its reader")
	}
	if len(others) != 0 {
		t.Error("somebody was woken whose branch did not move")
	}
}

func TestLooksAsOftenAsItIsAskedTo(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository, other := server.Repository(t, "x"), server.Repository(t, "other")
	repository.Commit("main", map[string]string{"x": "x"})
	other.Commit("main", map[string]string{"x": "x"})
	opened, _ := open(t, store.Options{Interval: time.Hour})
	reference, slow := gitReference(server, repository), gitReference(server, other)
	for _, reference := range []fetch.Reference{reference, slow} {
		if _, err := await(t, opened, reference); err != nil {
			t.Fatal(err)
		}
	}
	const refs = "/info/refs"
	before := server.Count("GET", "/other.git"+refs) // the check, and the requests of a fetch
	reference.Interval = 20 * time.Millisecond       // the check is due now, not in an hour
	watch(t, opened, reference)
	eventually(t, "looks at the interval of who asks", func() bool { return server.Count("GET", "/x.git"+refs) > before+3 })
	if looks := server.Count("GET", "/other.git"+refs) - before; looks != 0 {
		t.Errorf("%d looks more where nobody asked for more than one an hour", looks)
	}
}

// gate lets a test disable and enable a server.
type gate struct {
	mu     sync.Mutex
	status int           // 0: open
	held   chan struct{} // answers wait until it is closed; nil: they don't
}

// hold delays all answers until the function is called.
func (g *gate) hold() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := make(chan struct{})
	g.held = held
	return func() { close(held) }
}

func (g *gate) set(status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status = status
}

func (g *gate) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		status, held := g.status, g.held
		g.mu.Unlock()
		if held != nil {
			<-held
		}
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TestContentIsServedWhileItsHostIsDown (RS47): While a source's host is down, its content is served, also after a
// restart.
func TestContentIsServedWhileItsHostIsDown(t *testing.T) {
	gate := &gate{}
	server := fetchtest.ServeGit(t, gate.wrap)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "kept"})
	options := store.Options{
		Folder: disk.TempDir(t), Interval: 20 * time.Millisecond, FirstPause: 10 * time.Millisecond, LastPause: 20 * time.Millisecond,
	}
	opened, end := open(t, options)
	reference := gitReference(server, repository)
	if _, err := await(t, opened, reference); err != nil {
		t.Fatal(err)
	}
	gate.set(http.StatusBadGateway)
	failures := opened.Stats().Failures
	eventually(t, "failed looks", func() bool { return opened.Stats().Failures > failures+2 })
	if snapshot, err := opened.Get(reference, "x", nil); err != nil || content(t, snapshot, "x") != "kept" {
		t.Errorf("while the host is down: %v", err)
	}
	end()
	again, _ := open(t, options) // its last check is older than two intervals by now
	if snapshot, err := await(t, again, reference); err != nil || content(t, snapshot, "x") != "kept" {
		t.Errorf("after a restart while the host is down: %v", err)
	}
	other := reference
	other.Location = git.Location{Remote: repository.URL, Branch: "main", Path: "other"}
	_, err := await(t, again, other)
	if _, ok := errors.AsType[*fetch.UnavailableError](err); !ok {
		t.Errorf("what was never there: %v", err)
	}
	gate.set(0)
	eventually(t, "the host back", func() bool {
		_, err := again.Get(other, "x", nil)
		_, missing := errors.AsType[*fetch.NotFoundError](err)
		return missing
	})
}

// TestPrivateContentStaysPrivate (AC29): Content that was fetched with credentials is not served without them.
func TestPrivateContentStaysPrivate(t *testing.T) {
	server := fetchtest.ServeGit(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, password, _ := r.BasicAuth(); password != "canary" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	repository := server.Repository(t, "x")
	commit := repository.Commit("main", map[string]string{"x": "private"})
	options := store.Options{Folder: disk.TempDir(t)}
	opened, end := open(t, options)
	private := gitReference(server, repository)
	private.Credentials.Username, private.Credentials.Password = "u", "canary"
	if _, err := await(t, opened, private); err != nil {
		t.Fatal(err)
	}
	pinned := private
	pinned.Location = git.Location{Remote: repository.URL, Commit: fetch.Selector(commit)}
	if _, err := await(t, opened, pinned); err != nil || opened.Stats().Fetches != 1 {
		t.Errorf("the same commit by its hash: %v, %d fetches", err, opened.Stats().Fetches)
	}
	others := func(from *store.Store) {
		t.Helper()
		for why, change := range map[string]func(*fetch.Reference){
			"without credentials":        func(r *fetch.Reference) { r.Credentials = fetch.Credentials{CA: server.CA} },
			"with a wrong password":      func(r *fetch.Reference) { r.Credentials.Password = "wrong" },
			"with another list of hosts": func(r *fetch.Reference) { r.Credentials.Hosts = []string{"example.com"} },
		} {
			for _, reference := range []fetch.Reference{private, pinned} {
				change(&reference)
				_, err := await(t, from, reference)
				if _, ok := errors.AsType[*fetch.UnauthorizedError](err); !ok {
					t.Errorf("%s: got %v", why, err)
				}
			}
		}
	}
	others(opened)
	end()
	again, _ := open(t, options)
	before := len(server.Requests())
	if _, err := await(t, again, private); err != nil || len(server.Requests()) != before {
		t.Errorf("after a restart: %v, %d requests", err, len(server.Requests())-before)
	}
	others(again)
}

func TestRevokedCredentialsEndTheSnapshot(t *testing.T) {
	gate := &gate{}
	server := fetchtest.ServeGit(t, gate.wrap)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "private"})
	opened, _ := open(t, store.Options{Interval: 20 * time.Millisecond})
	reference := gitReference(server, repository)
	if _, err := await(t, opened, reference); err != nil {
		t.Fatal(err)
	}
	gate.set(http.StatusForbidden)
	eventually(t, "the refusal", func() bool {
		_, err := opened.Get(reference, "x", nil)
		_, ok := errors.AsType[*fetch.UnauthorizedError](err)
		return ok
	})
}

func TestFailuresWakeAndPause(t *testing.T) {
	gate := &gate{status: http.StatusBadGateway}
	server := fetchtest.ServeGit(t, gate.wrap)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "x"})
	opened, _ := open(t, store.Options{FirstPause: time.Hour, LastPause: time.Hour})
	reference := gitReference(server, repository)
	_, err := await(t, opened, reference)
	if _, ok := errors.AsType[*fetch.UnavailableError](err); !ok {
		t.Fatalf("got %v", err)
	}
	for range 100 {
		if _, again := opened.Get(reference, "x", nil); !errors.Is(again, err) {
			t.Fatalf("got %v", again)
		}
	}
	if stats := opened.Stats(); stats.Resolutions != 1 {
		t.Errorf("asking again cost looks: %+v", stats)
	}
	gate.set(0)
	open := gate.hold() // otherwise the check may end before it is requested
	opened.Refresh(reference)
	if _, err := opened.Get(reference, "x", nil); !errors.Is(err, fetch.ErrPending) {
		t.Errorf("after Refresh: %v", err)
	}
	open()
	if _, err := await(t, opened, reference); err != nil {
		t.Errorf("past the pause: %v", err)
	}
}

func TestRefreshLooksNow(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "old"})
	opened, _ := open(t, store.Options{Interval: time.Hour})
	reference := gitReference(server, repository)
	if _, err := await(t, opened, reference); err != nil {
		t.Fatal(err)
	}
	repository.Commit("main", map[string]string{"x": "new"})
	if snapshot, err := opened.Get(reference, "x", nil); err != nil || content(t, snapshot, "x") != "old" {
		t.Errorf("before its interval: %v", err)
	}
	opened.Refresh(reference)
	if snapshot, err := await(t, opened, reference); err != nil || content(t, snapshot, "x") != "new" {
		t.Errorf("got %v", err)
	}
}

// TestRefreshDuringARefreshLooksOnceMore fails when a check that is requested during another requested one counts as
// answered by that; or when Get waits for the second one: a subscriber that requests checks without end would keep
// the content from the others.
func TestRefreshDuringARefreshLooksOnceMore(t *testing.T) {
	held := make(chan chan struct{}, 1)
	server := fetchtest.ServeGit(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			next.ServeHTTP(response, request) // the client has the answer when this function ends
			select {
			case goOn := <-held:
				goOn <- struct{}{}
				<-goOn
			default:
			}
		})
	})
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "old"})
	opened, _ := open(t, store.Options{Interval: time.Hour})
	reference := gitReference(server, repository)
	if _, err := await(t, opened, reference); err != nil {
		t.Fatal(err)
	}
	refreshed := func() chan struct{} {
		goOn := make(chan struct{})
		held <- goOn
		opened.Refresh(reference)
		return goOn
	}
	first := refreshed()
	<-first // the first check has been answered
	repository.Commit("main", map[string]string{"x": "new"})
	second := refreshed()
	first <- struct{}{}
	<-second // a second one is made, and Get does not wait for its end
	if snapshot, err := opened.Get(reference, "x", nil); err != nil || content(t, snapshot, "x") != "old" {
		t.Errorf("during the second check: %v", err)
	}
	second <- struct{}{}
	expect.Eventually(t, expect.Patience, func() error {
		snapshot, err := opened.Get(reference, "x", nil)
		if err == nil && content(t, snapshot, "x") != "new" {
			return errors.New("the content is the old one")
		}
		return err
	})
}

// TestLeastRecentlyUsedGoes (RS46): When the store is full, the least recently used content is removed.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	server := fetchtest.ServeGit(t)
	references := []fetch.Reference{}
	for i := range 4 {
		repository := server.Repository(t, strconv.Itoa(i))
		repository.Commit("main", map[string]string{"x": fmt.Sprintf("%0100000d", i)})
		references = append(references, gitReference(server, repository))
	}
	options := store.Options{Folder: disk.TempDir(t), MaxBytes: 340_000} // space for three
	get := func(from *store.Store, i int) {
		t.Helper()
		snapshot, err := await(t, from, references[i])
		if err != nil || content(t, snapshot, "x") != fmt.Sprintf("%0100000d", i) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	folders := func() int {
		entries, err := os.ReadDir(filepath.Join(options.Folder, "content"))
		expect.NoError(t, err)
		return len(entries)
	}
	opened, end := open(t, options)
	for i := range 3 {
		get(opened, i)
	}
	if folders() != 3 {
		t.Errorf("%d kept", folders())
	}
	end()
	opened, _ = open(t, options)
	get(opened, 0) // the first one is used again
	get(opened, 3)
	if folders() != 3 {
		t.Errorf("%d kept", folders())
	}
	fetches := opened.Stats().Fetches
	get(opened, 0)
	if opened.Stats().Fetches != fetches {
		t.Error("what was used last went first")
	}
	get(opened, 1) // is fetched again
	if opened.Stats().Fetches != fetches+1 {
		t.Error("what went is still there")
	}
}

// checkSealed checks that there are no rights to write, no rights of others, and no credentials.
func checkSealed(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		inside := strings.Contains(path, "/content/")
		if info.Mode().Perm()&0o077 != 0 || inside && info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), "canary") {
			t.Errorf("%s has credentials", path)
		}
		return err
	})
	expect.NoError(t, err)
}

// litter creates files that a killed process may leave.
func litter(t *testing.T, folder string) {
	t.Helper()
	for _, leftover := range []string{"work/left/content/x", "content/unknown/x", "content/" + strings.Repeat("a", 64) + "/x"} {
		path := filepath.Join(folder, leftover)
		for _, err := range []error{
			os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o400), os.Chmod(filepath.Dir(path), 0o500),
		} {
			expect.NoError(t, err)
		}
	}
}

func TestFolderIsCleanedAndSealed(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"a/x": "x"})
	options := store.Options{Folder: disk.TempDir(t)}
	opened, end := open(t, options)
	reference := gitReference(server, repository)
	reference.Credentials.Username, reference.Credentials.Password = "canary-user", "canary-password"
	snapshot, err := await(t, opened, reference)
	expect.NoError(t, err)
	for _, name := range []string{"../../index.json", "/etc/passwd", "a/../../x"} {
		if _, err := snapshot.FS.Open(name); err == nil {
			t.Errorf("%s can be opened", name)
		}
	}
	end()
	checkSealed(t, options.Folder)
	litter(t, options.Folder)

	again, end := open(t, options)
	if _, err := await(t, again, reference); err != nil || again.Stats().Fetches != 0 {
		t.Errorf("after a restart: %v", err)
	}
	end()
	for folder, want := range map[string]int{"work": 0, "content": 1} {
		if entries, err := os.ReadDir(filepath.Join(options.Folder, folder)); err != nil || len(entries) != want {
			t.Errorf("%s: %v, %v", folder, entries, err)
		}
	}
}

func TestBrokenIndexLosesNothing(t *testing.T) {
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"a/x": "x"})
	for _, content := range []string{"{broken", "", "null", `{"format":2}`, `{"format":1,"salt":"AAAA"}`} {
		options := store.Options{Folder: disk.TempDir(t)}
		expect.NoError(t, os.WriteFile(filepath.Join(options.Folder, "index.json"), []byte(content), 0o600))
		opened, _ := open(t, options)
		if _, err := await(t, opened, gitReference(server, repository)); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestSlowHostHoldsNobodyUp (AC23): A slow host does not delay requests to others.
func TestSlowHostHoldsNobodyUp(t *testing.T) {
	release := make(chan struct{})
	slow := fetchtest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	server := fetchtest.ServeGit(t)
	repository := server.Repository(t, "x")
	repository.Commit("main", map[string]string{"x": "x"})
	opened, _ := open(t, store.Options{Jobs: 8, HostJobs: 4})
	for i := range 50 {
		_, err := opened.Get(fetch.Reference{
			Location:    git.Location{Remote: fmt.Sprintf("%s/%d", slow.URL, i), Branch: "main"},
			Credentials: fetch.Credentials{CA: slow.CA},
		}, "x", nil)
		if !errors.Is(err, fetch.ErrPending) {
			t.Fatal(err)
		}
	}
	if _, err := await(t, opened, gitReference(server, repository)); err != nil {
		t.Error(err)
	}
	eventually(t, "requests", func() bool { return len(slow.Requests()) > 0 })
	if seen := len(slow.Requests()); seen > 4 {
		t.Errorf("the slow host has %d requests at a time", seen)
	}
}

func TestKindsThatAreNotServed(t *testing.T) {
	opened, end := open(t, store.Options{})
	_, err := opened.Get(fetch.Reference{}, "x", nil)
	if _, ok := errors.AsType[*fetch.NotServedError](err); !ok {
		t.Errorf("none: got %v", err)
	}
	_, err = opened.Get(fetch.Reference{Location: image.Location{Image: "example.com/x:v1"}}, "x", nil)
	if _, ok := errors.AsType[*fetch.NotServedError](err); !ok {
		t.Errorf("a kind without a source: got %v", err)
	}
	end()
	if _, err := opened.Get(fetch.Reference{Location: git.Location{}}, "x", nil); err == nil || errors.Is(err, fetch.ErrPending) {
		t.Errorf("after Close: %v", err)
	}
}

func TestStartEndsWithItsManager(t *testing.T) {
	opened, _ := open(t, store.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := opened.Start(ctx); err != nil || opened.NeedLeaderElection() {
		t.Errorf("got %v", err)
	}
}

// BenchmarkGet: Opening stored content unpacks nothing, and costs at most a millisecond of CPU.
func BenchmarkGet(b *testing.B) {
	charts := fetchtest.ServeCharts(b)
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("templates/%d.yaml", i)] = strings.Repeat("x", 50<<10)
	}
	charts.Add("large", "1.0.0", files)
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	defer network.Close()
	opened, err := store.New(store.Options{Folder: disk.TempDir(b), Kinds: fetch.NewKinds(fetch.Serve(helmrepo.New(network)))})
	expect.NoError(b, err)
	defer opened.Close()
	reference := fetch.Reference{
		Location: helmrepo.Location{URL: charts.URL, Chart: "large", Version: "1.0.0"}, Credentials: fetch.Credentials{CA: charts.CA},
	}
	woken := make(chan struct{}, 1)
	for {
		_, err := opened.Get(reference, "x", func() { woken <- struct{}{} })
		if !errors.Is(err, fetch.ErrPending) {
			break
		}
		<-woken
	}
	began, fetches, count := fetchtest.CPUTime(b), opened.Stats().Fetches, 0
	for b.Loop() {
		count++
		snapshot, err := opened.Get(reference, "x", nil)
		expect.NoError(b, err)
		if _, err := fs.Stat(snapshot.FS, "Chart.yaml"); err != nil {
			b.Fatal(err)
		}
	}
	each := (fetchtest.CPUTime(b) - began) / time.Duration(count)
	b.ReportMetric(float64(each.Nanoseconds()), "cpu-ns/op")
	if opened.Stats().Fetches != fetches || count > 10 && each > time.Millisecond {
		b.Errorf("opening costs %s of CPU; %d fetches", each, opened.Stats().Fetches-fetches)
	}
}
