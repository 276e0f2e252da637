package query_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

const catalogues = "addoncatalogues"

func named(version string) catalogue.VersionOrigin {
	return catalogue.VersionOrigin{Version: version, Catalogue: "tools"}
}

func listedWeb(versions ...string) catalogue.ListedAddon {
	listed := catalogue.ListedAddon{Name: "web", DisplayName: "WEB"}
	for _, version := range versions {
		listed.Versions = append(listed.Versions, catalogue.ListedVersion{VersionOrigin: named(version)})
	}
	return listed
}

func (w *world) layOutWeb() {
	w.t.Helper()
	w.merged("web", "", [2]string{"1.0.0", ""}, [2]string{"2.0.0", ">= 1.37"}, [2]string{"1.5.0", "< 1.37"})
	w.merged("cni", v1.CatalogueCore, [2]string{"1.0.0", ""})
}

func TestListings(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine, foreign := w.cluster("mine", "v1.37.1+k3s1"), w.cluster("foreign", "v1.36.3")
	w.start()
	admin, tenant := w.account("admin"), w.account("tenant")
	w.grant("admin", w.catalogue, catalogues)
	w.grant("tenant", mine, catalogues)

	want := catalogue.Listing{KKPVersion: "2.31.0", K8sVersion: "1.36.3", Addons: []catalogue.ListedAddon{listedWeb("1.5.0", "1.0.0")}}
	got := w.get("/api/v1/addons?kkpVersion=v2.31.0&k8sVersion=v1.36.3-gke.100", admin)
	got.expectStatus(t, "a platform", http.StatusOK)
	if diff := cmp.Diff(want, decode[catalogue.Listing](t, got)); diff != "" {
		t.Errorf("a platform (-want +got):\n%s", diff)
	}
	seeds := w.get("/api/v1/addons?k8sVersion=1.36.3", admin)
	if !bytes.Equal(got.body, seeds.body) {
		t.Errorf("without kkpVersion: got %s, want the seed's own", seeds.body)
	}
	unescaped := decode[catalogue.Listing](t, w.get("/api/v1/addons?k8sVersion=v1.37.1+k3s1", admin))
	if unescaped.K8sVersion != "1.37.1" {
		t.Errorf("a plus sign that was not escaped: got %q", unescaped.K8sVersion)
	}

	own := decode[catalogue.Listing](t, w.get("/api/v1/namespaces/"+mine+"/addons?explain=true", tenant))
	exclusion := func(version, reason, message string) []catalogue.ListedExclusion {
		return []catalogue.ListedExclusion{{VersionOrigin: named(version), Reason: reason, Message: message}}
	}
	web := listedWeb("2.0.0", "1.0.0")
	web.Excluded = exclusion("1.5.0", v1.ExcludedK8sVersion, "needs Kubernetes < 1.37; it is 1.37.1")
	explained := catalogue.Listing{KKPVersion: "2.31.0", K8sVersion: "1.37.1", Addons: []catalogue.ListedAddon{{
		Name: "cni", DisplayName: "CNI", Versions: []catalogue.ListedVersion{},
		Excluded: exclusion("1.0.0", v1.ExcludedCore, "core add-ons are installed by the platform and not offered to users"),
	}, web}}
	if diff := cmp.Diff(explained, own); diff != "" {
		t.Errorf("the own cluster, explained (-want +got):\n%s", diff)
	}
	w.get("/api/v1/namespaces/"+foreign+"/addons", tenant).expectStatus(t, "another's cluster", http.StatusNotFound)
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine, foreign := w.cluster("mine", "v1.37.1"), w.cluster("foreign", "v1.36.3")
	contested := w.cluster("contested", "v1.36.3")
	w.claim(fmt.Sprintf("thief-%d", w.number), contested, "v1.36.3")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues)
	w.grant("tenant", contested, catalogues)
	w.grant("tenant", w.catalogue, catalogues, "unknown")
	stranger := w.account("stranger")
	long := strings.Repeat("1", 10<<10)
	own, upgrade := "/api/v1/namespaces/"+mine+"/addons", "/api/v1/upgrade-check"
	for _, test := range []struct {
		why, method, path, token, body string
		want                           int
	}{
		{"no token", "GET", own, "", "", 401},
		{"a wrong token", "GET", own, "wrong", "", 401},
		{"a token that is nearly right", "GET", own, tenant[:len(tenant)-2] + "xx", "", 401},
		{"a token of 10 KiB", "GET", own, long, "", 401},
		{"no token and a wrong parameter", "GET", own + "?x=1", "", "", 401},
		{"a foreign namespace", "GET", "/api/v1/namespaces/" + foreign + "/addons", tenant, "", 404},
		{"a namespace that is not there", "GET", "/api/v1/namespaces/cluster-none/addons", tenant, "", 404},
		{"a namespace that is no cluster's", "GET", "/api/v1/namespaces/" + w.catalogue + "/addons", tenant, "", 404},
		{"a namespace that two clusters claim", "GET", "/api/v1/namespaces/" + contested + "/addons", tenant, "", 404},
		{"no right to the catalogue", "GET", "/api/v1/addons?k8sVersion=1.36.3", stranger, "", 404},
		{"a version by a foreign namespace", "GET", "/api/v1/namespaces/" + foreign + "/addons/web/versions/1.0.0", tenant, "", 404},
		{"a core add-on by the own namespace", "GET", own + "/cni/versions/1.0.0", tenant, "", 404},
		{"a missing version by the own namespace", "GET", own + "/web/versions/9.0.0", tenant, "", 404},
		{"a version by a namespace that is no cluster's", "GET", "/api/v1/namespaces/" + w.catalogue + "/addons/web/versions/1.0.0", tenant, "", 404},
		{"a version that can't be, by the own namespace", "GET", own + "/web/versions/-1", tenant, "", 400},
		{"a version with a parameter", "GET", own + "/web/versions/1.0.0?explain=true", tenant, "", 400},
		{"no right to a version", "GET", "/api/v1/addons/web/versions/1.0.0", stranger, "", 404},
		{"an add-on that is not there", "GET", "/api/v1/addons/none/versions/1.0.0", tenant, "", 404},
		{"a version that is not there", "GET", "/api/v1/addons/web/versions/9.0.0", tenant, "", 404},
		{"an unknown path", "GET", "/api/v1/nothing", tenant, "", 404},
		{"a path that climbs", "GET", "/api/v1/../v1/addons?k8sVersion=1.36.3", tenant, "", 404},
		{"a path with an escaped slash", "GET", "/api/v1/addons/web%2fversions/versions/1.0.0", tenant, "", 404},
		{"no version", "GET", "/api/v1/addons", tenant, "", 400},
		{"an empty version", "GET", "/api/v1/addons?k8sVersion=", tenant, "", 400},
		{"a bad version", "GET", "/api/v1/addons?k8sVersion=latest", tenant, "", 400},
		{"a bad KKP version", "GET", "/api/v1/addons?kkpVersion=2&k8sVersion=1.36.3", tenant, "", 400},
		{"a version of 10 KiB", "GET", "/api/v1/addons?k8sVersion=" + long, tenant, "", 400},
		{"a parameter of 10 KiB", "GET", own + "?" + long + "=1", tenant, "", 400},
		{"a namespace of 10 KiB", "GET", "/api/v1/namespaces/" + long + "/addons", tenant, "", 400},
		{"a namespace that can't be", "GET", "/api/v1/namespaces/Mine/addons", tenant, "", 400},
		{"an add-on that can't be", "GET", "/api/v1/addons/a.b/versions/1.0.0", tenant, "", 400},
		{"a version that can't be", "GET", "/api/v1/addons/web/versions/-1", tenant, "", 400},
		{"an unknown parameter", "GET", own + "?explains=true", tenant, "", 400},
		{"a parameter of another path", "GET", own + "?k8sVersion=1.36.3", tenant, "", 400},
		{"a parameter twice", "GET", own + "?explain=true&explain=true", tenant, "", 400},
		{"a flag that is none", "GET", own + "?explain=yes", tenant, "", 400},
		{"a query that is none", "GET", own + "?explain=%zz", tenant, "", 400},
		{"a semicolon", "GET", own + "?explain=true;x=1", tenant, "", 400},
		{"a body where none is read", "GET", own, tenant, "{}", 400},
		{"writing", "POST", own, tenant, "{}", 405},
		{"deleting", "DELETE", own, tenant, "", 405},
		{"options", "OPTIONS", own, tenant, "", 405},
		{"reading a check", "GET", upgrade, tenant, "", 405},
		{"a check without a body", "POST", upgrade, tenant, "", 400},
		{"a check of nothing", "POST", upgrade, tenant, "null", 400},
		{"a check with an unknown field", "POST", upgrade, tenant, `{"namespace":"a","k8sVersion":"1.37.0","x":1}`, 400},
		{"a check with two objects", "POST", upgrade, tenant, `{"namespace":"a","k8sVersion":"1.37.0"}{}`, 400},
		{"a check with a bad version", "POST", upgrade, tenant, `{"namespace":"` + mine + `","k8sVersion":"new"}`, 400},
		{"a check with a version of 10 KiB", "POST", upgrade, tenant, `{"namespace":"` + mine + `","k8sVersion":"` + long + `"}`, 400},
		{"a check of 20 KiB", "POST", upgrade, tenant, `{"namespace":"` + mine + `","k8sVersion":"` + long + long + `"}`, 413},
		{"a check without the right to installations", "POST", upgrade, tenant, `{"namespace":"` + mine + `","k8sVersion":"1.38.0"}`, 404},
		{"a check of a foreign namespace", "POST", upgrade, tenant, `{"namespace":"` + foreign + `","k8sVersion":"1.38.0"}`, 404},
	} {
		got := w.ask(test.method, test.path, test.token, test.body)
		got.expectStatus(t, test.why, test.want)
		if len(got.body) > 300 {
			t.Errorf("%s: the refusal has %d bytes", test.why, len(got.body))
		}
		if test.token != "" && strings.Contains(string(got.body), test.token) {
			t.Errorf("%s: the refusal holds the token", test.why)
		}
	}
	forbidden, absent := w.get("/api/v1/namespaces/"+foreign+"/addons", tenant), w.get("/api/v1/namespaces/cluster-none/addons", tenant)
	forbidden.header.Del("Date")
	absent.header.Del("Date")
	if diff := cmp.Diff(forbidden, absent, cmp.AllowUnexported(response{})); diff != "" {
		t.Errorf("forbidden and absent can be told apart:\n%s", diff)
	}
	if got := w.ask("DELETE", own, tenant, ""); got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow is %q", got.header.Get("Allow"))
	}
	if got := w.get(own, ""); got.header.Get("WWW-Authenticate") == "" {
		t.Error("a 401 without WWW-Authenticate")
	}
}

func TestConditionsAndForms(t *testing.T) {
	w := newWorld(t)
	for i := range 40 { // large enough to be worth compressing
		w.merged(fmt.Sprintf("addon-%02d", i), "", [2]string{"1.0.0", ""})
	}
	mine := w.cluster("mine", "v1.37.1")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues)
	path := "/api/v1/namespaces/" + mine + "/addons"
	plain := w.get(path, tenant)
	plain.expectStatus(t, "plain", http.StatusOK)
	etag := plain.header.Get("ETag")
	if etag == "" || plain.header.Get("Content-Encoding") != "" || plain.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers of a plain answer: %v", plain.header)
	}
	packed := w.get(path, tenant, "Accept-Encoding", "br, gzip;q=0.5")
	reader, err := gzip.NewReader(bytes.NewReader(packed.body))
	if err != nil {
		t.Fatalf("the compressed answer: %v", err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(unpacked, plain.body) {
		t.Errorf("the compressed answer is another one: %v", err)
	}
	if packed.header.Get("Content-Encoding") != "gzip" || packed.header.Get("ETag") == etag {
		t.Errorf("headers of a compressed answer: %v", packed.header)
	}
	if refused := w.get(path, tenant, "Accept-Encoding", "gzip;q=0"); !bytes.Equal(refused.body, plain.body) {
		t.Error("gzip was sent to one who refuses it")
	}
	for _, known := range []string{etag, "W/" + etag, `"x", ` + etag, "*", packed.header.Get("ETag")} {
		got := w.get(path, tenant, "If-None-Match", known)
		if got.status != http.StatusNotModified || len(got.body) != 0 || got.header.Get("ETag") != etag {
			t.Errorf("If-None-Match %s: got %d, %d bytes, ETag %q", known, got.status, len(got.body), got.header.Get("ETag"))
		}
	}
	w.get(path, tenant, "If-None-Match", `"other"`).expectStatus(t, "another ETag", http.StatusOK)
	w.get(path, "wrong", "If-None-Match", "*").expectStatus(t, "a wrong token and a condition", http.StatusUnauthorized)
	head := w.ask(http.MethodHead, path, tenant, "")
	if head.status != http.StatusOK || len(head.body) != 0 || head.header.Get("ETag") != etag ||
		head.header.Get("Content-Length") != fmt.Sprint(len(plain.body)) {
		t.Errorf("HEAD: got %d, %v", head.status, head.header)
	}
	w.merged("addon-new", "", [2]string{"1.0.0", ""})
	expect.Eventually(t, expect.Patience, func() error {
		if got := w.get(path, tenant, "If-None-Match", etag); got.status != http.StatusOK {
			return fmt.Errorf("got %d after the catalogue changed", got.status)
		}
		return nil
	})
}

func TestCachedIdentitiesCostNoCall(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine := w.cluster("mine", "v1.37.1")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues)
	path := "/api/v1/namespaces/" + mine + "/addons"
	w.get(path, tenant).expectStatus(t, "first", http.StatusOK)
	if got := w.counted.calls(); got != 2 {
		t.Errorf("the first request made %d calls, want a TokenReview and a SubjectAccessReview", got)
	}
	for range 50 {
		w.get(path, tenant).expectStatus(t, "again", http.StatusOK)
		w.get("/api/v1/namespaces/cluster-none/addons", "wrong").expectStatus(t, "wrong", http.StatusUnauthorized)
	}
	if tokens, accesses := w.counted.tokens.Load(), w.counted.accesses.Load(); tokens != 2 || accesses != 1 {
		t.Errorf("100 further requests of two tokens: %d TokenReviews and %d SubjectAccessReviews in all, want 2 and 1", tokens, accesses)
	}
	binding := &metav1.PartialObjectMetadata{}
	binding.SetGroupVersionKind(rolesBinding)
	if err := w.seed.DeleteAllOf(t.Context(), binding, client.InNamespace(mine)); err != nil {
		t.Fatal(err)
	}
	w.expectRight("tenant", mine, catalogues, false)
	w.get(path, tenant).expectStatus(t, "a right that was taken away, at once", http.StatusOK)
	w.clock.SetTime(w.clock.Now().Add(10*time.Second + time.Millisecond))
	w.get(path, tenant).expectStatus(t, "a right that was taken away, after 10 s", http.StatusNotFound)
	if got := w.counted.calls(); got != 5 {
		t.Errorf("%d calls in all, want 5", got)
	}
}

func TestTokensOfDeletedAccountsEnd(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine := w.cluster("mine", "v1.37.1")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues)
	path := "/api/v1/namespaces/" + mine + "/addons"
	w.get(path, tenant).expectStatus(t, "while the account is there", http.StatusOK)
	expect.Delete(t, w.seed, serviceAccount(w.catalogue, "tenant"))
	expect.Eventually(t, expect.Patience, func() error {
		w.clock.SetTime(w.clock.Now().Add(11 * time.Second))
		if got := w.get(path, tenant); got.status != http.StatusUnauthorized {
			return fmt.Errorf("got %d, want 401", got.status)
		}
		return nil
	})
}

func TestAudiences(t *testing.T) {
	w := newWorld(t)
	w.audiences = []string{"trellis", "other"}
	w.layOutWeb()
	mine := w.cluster("mine", "v1.37.1")
	w.start()
	path := "/api/v1/namespaces/" + mine + "/addons"
	ours, general := w.account("tenant", "trellis"), w.account("tenant")
	w.grant("tenant", mine, catalogues)
	w.get(path, ours).expectStatus(t, "a token for us", http.StatusOK)
	w.get(path, general).expectStatus(t, "a token for the API server", http.StatusUnauthorized)
}

func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	w.start()
	admin := w.account("admin")
	w.grant("admin", w.catalogue, catalogues)
	got := w.get("/api/v1/addons/web/versions/v2.0.0", admin)
	got.expectStatus(t, "in another spelling", http.StatusOK)
	body := string(got.body)
	for _, want := range []string{
		`"version":"2.0.0"`, `"catalogue":"tools"`, `"digest":"sha256:2.0.0"`, `"k8sVersion":">= 1.37"`, `"internalName":"replicas"`,
		`"formSchema":{"$schema":`, `"required":["replicas"]`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the version has no %s: %s", want, body)
		}
	}
	if strings.Contains(body, "git.example.com") {
		t.Errorf("the version tells its source: %s", body)
	}
	w.get("/api/v1/addons/web/versions/2.0.0", admin, "If-None-Match", got.header.Get("ETag")).
		expectStatus(t, "known already", http.StatusNotModified)
}

// TestTenantsReadTheForm asks with the rights of one namespace and no others.
func TestTenantsReadTheForm(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine := w.cluster("mine", "v1.36.3")
	w.start()
	tenant, admin := w.account("tenant"), w.account("admin")
	w.grant("tenant", mine, catalogues)
	w.grant("admin", w.catalogue, catalogues)
	for _, version := range []string{"1.5.0", "v1.0.0", "2.0.0"} { // the last one does not fit yet
		w.get("/api/v1/addons/web/versions/"+version, tenant).expectStatus(t, "the whole catalogue", http.StatusNotFound)
		got := w.get("/api/v1/namespaces/"+mine+"/addons/web/versions/"+version, tenant)
		got.expectStatus(t, "the own namespace", http.StatusOK)
		if want := w.get("/api/v1/addons/web/versions/"+version, admin); !bytes.Equal(got.body, want.body) {
			t.Errorf("version %s: got %s, want what the whole catalogue says: %s", version, got.body, want.body)
		}
		if !strings.Contains(string(got.body), `"formSchema":{"$schema":`) || strings.Contains(string(got.body), "git.example.com") {
			t.Errorf("version %s: %s", version, got.body)
		}
	}
}

// TestDescriptionsOnDemand looks at both listings, with and without.
func TestDescriptionsOnDemand(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine := w.cluster("mine", "v1.36.3")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues)
	w.grant("tenant", w.catalogue, catalogues, "unknown")
	for _, path := range []string{"/api/v1/namespaces/" + mine + "/addons?descriptions=", "/api/v1/addons?k8sVersion=1.36.3&descriptions="} {
		for given, want := range map[string]string{"true": "Says <hello> & more.", "false": ""} {
			got := w.get(path+given, tenant)
			got.expectStatus(t, path+given, http.StatusOK)
			if listing := decode[catalogue.Listing](t, got); len(listing.Addons) != 1 || listing.Addons[0].Description != want {
				t.Errorf("%s%s: %s", path, given, got.body)
			}
		}
	}
}

// upgradeAnswer is read back strictly, so that it has no other fields.
type upgradeAnswer struct {
	Namespace, KKPVersion, From, To string
	Breaks                          int
	Installations                   []resolution.UpgradeFinding
}

func TestUpgradeCheck(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine, foreign := w.cluster("mine", "v1.36.3"), w.cluster("foreign", "v1.36.3")
	w.install(mine, "pinned", "web", "1.5.0", "1.5.0")
	w.install(mine, "moving", "web", "", "1.5.0")
	w.install(foreign, "secret", "web", "", "1.0.0")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues, "addoninstallations")
	got := w.ask(http.MethodPost, "/api/v1/upgrade-check", tenant, `{"namespace":"`+mine+`","k8sVersion":"v1.37.0"}`)
	got.expectStatus(t, "a check", http.StatusOK)
	one, two := named("1.5.0"), named("2.0.0")
	want := upgradeAnswer{
		Namespace: mine, KKPVersion: "2.31.0", From: "1.36.3", To: "1.37.0", Breaks: 1,
		Installations: []resolution.UpgradeFinding{
			{Installation: "moving", Addon: "web", Outcome: resolution.OutcomeMoves, Installed: &one, Version: &two},
			{
				Installation: "pinned", Addon: "web", Outcome: resolution.OutcomeBreaks, Installed: &one, Fitting: &two,
				Reason:  v1.ExcludedK8sVersion,
				Message: `version "1.5.0" of add-on "web" does not fit: needs Kubernetes < 1.37; it is 1.37.0; version "2.0.0" would fit`,
			},
		},
	}
	if diff := cmp.Diff(want, decode[upgradeAnswer](t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// install makes an AddonInstallation as it is after its controller installed a version.
func (w *world) install(namespace, name, addon, wanted, installed string) {
	w.t.Helper()
	object := given.Installation(namespace, name, addon, "default", given.In(wanted))
	expect.Create(w.t, w.seed, object)
	before := object.DeepCopy()
	object.Status.Version, object.Status.LastApplied = installed, &v1.AppliedState{Addon: addon, Version: installed}
	expect.PatchStatus(w.t, w.seed, object, client.MergeFrom(before))
}

// TestAnswersAreMadeOncePerChange asks for the same platform from many sides and counts.
func TestAnswersAreMadeOncePerChange(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine, other := w.cluster("mine", "v1.37.1"), w.cluster("other", "v1.37.1+k3s1")
	w.start()
	admin := w.account("admin")
	w.grant("admin", w.catalogue, catalogues)
	w.grant("admin", mine, catalogues)
	w.grant("admin", other, catalogues)
	paths := []string{
		"/api/v1/addons?k8sVersion=1.37.1", "/api/v1/addons?k8sVersion=v1.37.1-gke.1&kkpVersion=2.31.0",
		"/api/v1/namespaces/" + mine + "/addons", "/api/v1/namespaces/" + other + "/addons?explain=false",
	}
	everyPath := func(why string) {
		for range 5 {
			for _, path := range paths {
				w.get(path, admin).expectStatus(t, why, http.StatusOK)
			}
		}
	}
	everyPath("before the change")
	if got := w.metric("trellis_query_answers_total", "decided"); got != 1 {
		t.Errorf("one platform was decided %v times", got)
	}
	w.merged("db", "", [2]string{"3.0.0", ""})
	expect.Eventually(t, expect.Patience, func() error {
		if got := decode[catalogue.Listing](t, w.get(paths[0], admin)); len(got.Addons) != 2 || got.Addons[0].Name != "db" {
			return errors.New("the new add-on is not listed yet")
		}
		return nil
	})
	everyPath("after the change")
	if got := w.metric("trellis_query_answers_total", "decided"); got != 2 {
		t.Errorf("after one change, one platform was decided %v times in all, want 2", got)
	}
}

func TestEndsGracefully(t *testing.T) {
	w := newWorld(t)
	w.start()
	address := w.endpoint.Address()
	w.stop()
	if w.endpoint.Ready(nil) == nil {
		t.Error("it says that it is ready after its end")
	}
	if _, err := w.browser.Get("https://" + address + "/openapi.json"); err == nil {
		t.Error("it answers after its end")
	}
}
