package distributor_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/hostile"
)

func countOften(options *distributor.Options) { options.CountEvery = 50 * time.Millisecond }

// TestSeedThatFloodsIsCutOff: gigabytes in place of installations end at once; nothing of it is
// read into memory, the seed still gets its catalogues, and the figures of others go on.
func TestSeedThatFloodsIsCutOff(t *testing.T) {
	w := newWorld(t)
	server := hostile.New(t, fleet.Shared().Cluster("seed"))
	w.seed("north", kubeconfigOf("seed"))
	w.seed("south", server.Kubeconfig())
	expect.Create(w.t, w.master, w.catalogueOf("web", map[string][]string{w.platform: {"1.0.0", "1.1.0"}}))
	server.Set(hostile.ModeNamed("seed-flood"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.start(countOften)
	w.expectVersions("seed", w.platform, "1.1.0", "1.0.0")
	w.installation("one", "1.1.0")
	expectUsage(w, "north", counts(w, 1))
	expect.Eventually(t, expect.Patience, func() error {
		if floods := server.Count("lies"); floods < 2 {
			return fmt.Errorf("it was asked %d times", floods)
		}
		return nil
	})
	runtime.ReadMemStats(&after)
	floods := uint64(max(1, server.Count("lies")))
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20 / floods; took > 400 { // both sides together, each time
		t.Errorf("took %d MiB for each of %d floods", took, floods)
	}
}

// TestSeedsHaveAShareOfTheUsage: names that a seed makes up are a number, and take no other seed's
// place.
func TestSeedsHaveAShareOfTheUsage(t *testing.T) {
	w := newWorld(t)
	server := hostile.New(t, fleet.Shared().Cluster("seed"))
	w.seed("north", kubeconfigOf("seed"))
	w.seed("south", server.Kubeconfig())
	expect.Create(w.t, w.master, w.catalogueOf("web", map[string][]string{w.platform: {"1.0.0", "1.1.0"}}))
	server.SetDose(hostile.ModeNamed("seed-usage"), hostile.Dose{Size: 20_000})
	w.start(countOften)
	expectUsage(w, "south", func(usage catalogue.SeedUsage) error {
		if usage.Others < 20_000 || len(usage.Installations) > 0 {
			return fmt.Errorf("%d others, %d versions", usage.Others, len(usage.Installations))
		}
		return nil
	})
	w.installation("one", "1.1.0")
	expectUsage(w, "north", counts(w, 1))
	expect.Object(t, w.master, usageMap(w), func(found *corev1.ConfigMap) error {
		if size := found.Size(); size > 10<<10 {
			return fmt.Errorf("it has %d bytes", size)
		}
		return nil
	})
}

// TestSeedsLeadNowhereElse: a redirect is not followed, with or without the token, and what answers
// in a seed's place is not quoted.
func TestSeedsLeadNowhereElse(t *testing.T) {
	const inner = "INTERNAL-ANSWER-of-a-service-in-the-masters-network"
	var followed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		followed.Add(1)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, inner)
	}))
	defer elsewhere.Close()
	w := newWorld(t)
	seed := foreignSeed(t, func(answer http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/") {
			http.Redirect(answer, r, elsewhere.URL+"/latest/meta-data/iam", http.StatusFound)
			return
		}
		http.Redirect(answer, r, elsewhere.URL+"/write", http.StatusTemporaryRedirect)
	})
	w.seed("south", seed)
	custom := w.catalogueOf("custom", map[string][]string{w.platform: {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	w.start()
	expectRow(w, custom, "the API server answers with HTTP status 302")
	if followed.Load() > 0 {
		t.Errorf("%d calls went elsewhere", followed.Load())
	}
}

// TestAnswersOfSeedsAreNotQuoted: what a seed answers gets into no status: fixed words tell what
// kind of answer it was.
func TestAnswersOfSeedsAreNotQuoted(t *testing.T) {
	w := newWorld(t)
	server := hostile.New(t, fleet.Shared().Cluster("seed"))
	w.seed("south", server.Kubeconfig())
	custom := w.catalogueOf("custom", map[string][]string{w.platform: {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	server.Set(hostile.ModeNamed("forbids"))
	w.start()
	expectRow(w, custom, "the seed forbids it")
	server.Set(hostile.Truth)
	w.expectVersions("seed", w.platform, "1.0.0")
}

// foreignSeed is the kubeconfig of a seed that somebody wrote.
func foreignSeed(t *testing.T, handler http.HandlerFunc) []byte {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	authority, err := fleet.NewAuthority("foreign")
	if err != nil {
		t.Fatal(err)
	}
	if server.TLS, err = authority.TLS("foreign"); err != nil {
		t.Fatal(err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"x": {Server: server.URL, CertificateAuthorityData: authority.PEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"x": {Token: hostile.Canary}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// expectRow waits until the row of a catalogue's only seed begins with words, and has no text of an
// answer.
func expectRow(w *world, object *v1.AddonCatalogue, words string) {
	w.t.Helper()
	expect.Object(w.t, w.master, object, func(object *v1.AddonCatalogue) error {
		if len(object.Status.Seeds) != 1 {
			return errors.New("no row")
		}
		row := object.Status.Seeds[0].Message
		if text := fmt.Sprint(object.Status); strings.Contains(text, "INTERNAL-ANSWER") || strings.Contains(text, "ANSWER-OF-AN-INNER") {
			return fmt.Errorf("it quotes the answer: %s", text)
		}
		if !strings.HasPrefix(row, words) {
			return fmt.Errorf("the row says %q", row)
		}
		return nil
	})
}
