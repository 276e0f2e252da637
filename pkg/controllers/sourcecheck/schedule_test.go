package sourcecheck

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
)

func itemsFor(name string, count int) listed {
	var made listed
	for i := range count {
		made.items = append(made.items, item{
			use: catalogue.SourceUse{Addon: name, Version: fmt.Sprint(i), Key: fmt.Sprintf("%s-%d", name, i)}, at: i, catalogue: name,
		})
	}
	return made
}

// Red when one catalogue has two checks at a time, or others wait for more than their turn, or more run
// than may, or what failed comes before what was never tried.
func TestCataloguesAreCheckedInTurn(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	options := Options{Clock: clock, FirstPause: time.Minute}
	schedule := newSchedule()
	schedule.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"north"}})
	schedule.want(map[string]listed{"large": itemsFor("large", 5000), "small": itemsFor("small", 2)}, &catalogue.SourceChecks{})
	next := func(want string) []item {
		t.Helper()
		var names []string
		chosen := schedule.next(schedule.due(clock.Now()), 2)
		for _, of := range chosen {
			names = append(names, of.use.Key)
		}
		if fmt.Sprint(names) != want {
			t.Fatalf("next are %v, want %s", names, want)
		}
		return chosen
	}
	first := next("[large-0 small-0]")
	next("[]")
	schedule.conclude(first[1], outcome{checked: true}, options)
	second := next("[small-1]")
	schedule.want(map[string]listed{"large": itemsFor("large", 5000), "small": itemsFor("small", 2), "new": itemsFor("new", 1)}, &catalogue.SourceChecks{})
	schedule.conclude(first[0], outcome{checked: true, fault: &catalogue.SourceFault{Reason: v1.ReasonFetchFailed}}, options)
	third := next("[new-0]")
	schedule.conclude(second[0], outcome{checked: true}, options)
	next("[large-1]")
	schedule.conclude(third[0], outcome{checked: true}, options)
	clock.Step(2 * time.Minute)
	next("[]")
	if known := schedule.items["large-0"]; known.fault == nil || known.due.After(clock.Now()) {
		t.Errorf("what failed is not due again: %+v", known)
	}
	if schedule.want(map[string]listed{"new": itemsFor("new", 1)}, &catalogue.SourceChecks{}); !schedule.items["new-0"].good {
		t.Error("what was found is forgotten as others go")
	}
}

// Red when slow catalogues take the last place, when one that became quick still counts as slow, or when they get no turn where
// there is one place only.
func TestSlowCataloguesLeaveAPlace(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	options, schedule := Options{Clock: clock, FirstPause: time.Minute}, newSchedule()
	schedule.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"north"}})
	all := map[string]listed{"a": itemsFor("a", 100), "b": itemsFor("b", 100), "c": itemsFor("c", 100), "d": itemsFor("d", 100)}
	schedule.want(all, &catalogue.SourceChecks{})
	next := func(most int, want string) []item {
		t.Helper()
		var names []string
		chosen := schedule.next(schedule.due(clock.Now()), most)
		for _, of := range chosen {
			names = append(names, of.catalogue)
		}
		if fmt.Sprint(names) != want {
			t.Fatalf("next are %v, want %s", names, want)
		}
		return chosen
	}
	for _, of := range append(next(3, "[a b c]"), next(4, "[d]")...) {
		schedule.conclude(of, outcome{slow: true}, options)
	}
	slow := next(3, "[a b]")
	all["new"] = itemsFor("new", 100)
	schedule.want(all, &catalogue.SourceChecks{})
	quick := next(3, "[new]")
	schedule.conclude(slow[0], outcome{checked: true}, options)
	schedule.conclude(quick[0], outcome{checked: true}, options)
	next(3, "[c a]") // b is under way and slow, a is not any more
	for name := range schedule.busy {
		schedule.conclude(*schedule.items[name+"-99"], outcome{slow: true}, options)
	}
	next(1, "[d]")
}

// dripping sends a byte now and then, and never ends.
func dripping(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("#")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(10 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
}

// Red when a source that drips holds a check up, or that is told as a fault.
func TestAFetchOfACheckEnds(t *testing.T) {
	charts := fetchtest.ServeCharts(t, dripping)
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	content, err := store.New(store.Options{Folder: disk.TempDir(t), Kinds: fetch.NewKinds(fetch.Serve(helmrepo.New(network)))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = content.Close() })
	reconciler := New(Dependencies{
		Store: content, Options: Options{FetchWithin: 100 * time.Millisecond},
		Source: func(context.Context, *v1.Source) (fetch.Reference, error) {
			return fetch.Reference{
				Location: helmrepo.Location{URL: charts.URL, Chart: "web", Version: "1.0.0"}, Credentials: fetch.Credentials{CA: charts.CA},
			}, nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a half of what a source may take
	defer cancel()
	found, err := reconciler.look(ctx, item{version: &v1.AddonVersion{}})
	if !errors.Is(err, errSlow) || found.checked {
		t.Errorf("found %+v: %v", found, err)
	}
}

// Red when what an earlier process found is asked for again, or what failed is not, or what could not
// be checked counts as wrong, or a source that is added again is not asked for.
func TestWhatIsKnownStays(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	schedule := newSchedule()
	before := &catalogue.SourceChecks{
		Good: map[string]bool{"web-0": true}, Unrendered: map[string]bool{"web-0": true}, Bad: map[string]catalogue.SourceFault{"web-1": {Reason: v1.ReasonFetchFailed}},
	}
	schedule.want(map[string]listed{"web": itemsFor("web", 3)}, before)
	if due := schedule.due(clock.Now()); len(due) != 0 {
		t.Errorf("without a share it checks %v", due)
	}
	if !schedule.items["web-0"].unrendered {
		t.Error("what could not be rendered counts as rendered after a restart")
	}
	schedule.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"north"}})
	if due := schedule.due(clock.Now())["web"]; len(due) != 2 {
		t.Errorf("due are %v", due)
	}
	schedule.conclude(*schedule.items["web-2"], outcome{}, Options{Clock: clock, FirstPause: time.Minute})
	if known := schedule.items["web-2"]; known.fault != nil || known.good || schedule.soonest(clock.Now()) > 12*time.Second {
		t.Errorf("what can't be checked is %+v, due in %s", known, schedule.soonest(clock.Now()))
	}
	schedule.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"south"}})
	if due := schedule.due(clock.Now()); len(due) != 0 {
		t.Errorf("it checks the share of another: %v", due)
	}
	schedule.want(map[string]listed{}, before)
	if schedule.want(map[string]listed{"web": itemsFor("web", 3)}, before); schedule.items["web-0"].good || schedule.items["web-1"].fault != nil {
		t.Error("a source that went and came back is as an earlier process found it")
	}
}

// Red when catalogues of one repository have a turn each, or a catalogue takes part in the turns of
// another one by its name.
func TestGeneratedCataloguesShareAPlace(t *testing.T) {
	for _, test := range []struct {
		origin catalogue.Origin
		want   string
	}{
		{catalogue.Origin{Catalogue: "git-web-0a1b2c", Git: "git"}, "git"},
		{catalogue.Origin{Catalogue: "git-web-0a1b2c"}, "git-web-0a1b2c"},
		{catalogue.Origin{}, "web"},
	} {
		if got := scheduledAs(test.origin, "web"); got != test.want {
			t.Errorf("%+v is of %s, want %s", test.origin, got, test.want)
		}
	}
}

// Red when a catalogue takes a source of another one into its own turn, or the source has no turn once
// that one does not have it any more.
func TestASourceStaysWithItsFirstCatalogue(t *testing.T) {
	schedule, none := newSchedule(), &catalogue.SourceChecks{}
	web, copied := itemsFor("web", 1), itemsFor("web", 1)
	copied.items[0].catalogue = "a"
	schedule.want(map[string]listed{"web": web}, none)
	schedule.want(map[string]listed{"a": copied, "web": web}, none)
	if got := schedule.items["web-0"].catalogue; got != "web" {
		t.Errorf("it is of %s", got)
	}
	schedule.want(map[string]listed{"a": copied}, none)
	if got := schedule.items["web-0"].catalogue; got != "a" {
		t.Errorf("it is still of %s", got)
	}
}

// Red when the faults of one catalogue leave no room for those of another.
func TestACatalogueOfManyFaultsHidesNoOther(t *testing.T) {
	r := New(Dependencies{})
	r.schedule.want(map[string]listed{"large": itemsFor("large", catalogue.FaultsLimit+1), "small": itemsFor("small", 2)},
		&catalogue.SourceChecks{})
	for _, of := range r.schedule.items {
		of.fault = &catalogue.SourceFault{Reason: v1.ReasonFetchFailed, Message: "no"}
	}
	bad := r.checks().Bad
	if len(bad) != catalogue.FaultsLimit || bad["small-0"].Message == "" || bad["small-1"].Message == "" ||
		bad["large-9"].Message == "" || bad["large-10"].Message != "" {
		t.Errorf("%d faults, of small %+v and %+v", len(bad), bad["small-0"], bad["small-1"])
	}
}

// Red when a source whose content is wrong is asked for each hour for ever, or a host that can't be
// reached is left alone for a day.
func TestPausesAreByWhatIsWrong(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	for reason, want := range map[string]time.Duration{
		v1.ReasonArtifactNotFound: 24 * time.Hour, v1.ReasonArtifactRefused: 24 * time.Hour, v1.ReasonRenderFailed: 24 * time.Hour, v1.ReasonFetchFailed: time.Hour, "": time.Hour,
	} {
		schedule := newSchedule()
		schedule.want(map[string]listed{"web": itemsFor("web", 1)}, &catalogue.SourceChecks{})
		known := schedule.items["web-0"]
		known.failures = 100
		schedule.conclude(*known, outcome{fault: &catalogue.SourceFault{Reason: reason}, checked: reason != ""}, Options{Clock: clock, FirstPause: time.Minute})
		if pause := known.due.Sub(clock.Now()); pause < want*8/10 || pause > want*12/10 {
			t.Errorf("after %q it waits %s, want about %s", reason, pause, want)
		}
	}
}

// Red when an error tells an author of catalogues which ports are open, or what is in a certificate, or
// hides what helps.
func TestErrorsAreNoPortScanner(t *testing.T) {
	dial := func(err error) error {
		return &fetch.UnavailableError{Subject: "https://host/x", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 6443}, Err: err}}
	}
	secret := &x509.Certificate{DNSNames: []string{"internal"}}
	untrusted := func(err error) error {
		return &fetch.UnavailableError{Subject: "https://host/x", Err: fmt.Errorf("%w: more", &tls.CertificateVerificationError{Err: err})}
	}
	const unreachable = "https://host/x: it can't be reached, or closes the connection"
	for _, test := range []struct {
		err  error
		want string
	}{
		{dial(syscall.ECONNREFUSED), unreachable},
		{dial(syscall.EHOSTUNREACH), unreachable},
		{dial(&net.DNSError{Err: "no such host", Name: "host", IsNotFound: true}), "https://host/x: no such host"},
		{dial(&net.DNSError{Err: "server misbehaving", Server: "10.0.0.10:53", Name: "host"}), unreachable},
		{&fetch.UnavailableError{Subject: "https://host/x", Err: tls.RecordHeaderError{Msg: "first record"}}, unreachable},
		{&fetch.UnavailableError{Subject: "https://host/x", Err: errors.New("no data arrived for 30s")}, unreachable},
		{untrusted(x509.HostnameError{Certificate: secret, Host: "host"}), "https://host/x: its certificate is for another host name"},
		{untrusted(x509.CertificateInvalidError{Cert: secret, Reason: x509.Expired, Detail: "internal"}),
			"https://host/x: its certificate has expired, or is not valid yet"},
		{untrusted(x509.CertificateInvalidError{Cert: secret, Reason: x509.NotAuthorizedToSign, Detail: "internal"}),
			"https://host/x: its certificate is not valid"},
		{untrusted(x509.UnknownAuthorityError{Cert: secret}),
			"https://host/x: its certificate is signed by an unknown authority: set caSecretRef to a Secret with the CA certificate"},
		{&fetch.RefusedError{Subject: "ssh://host/x", Rule: "its host key SHA256:x is not the one in known_hosts"},
			"ssh://host/x: its host key or host certificate does not match known_hosts"},
		{&fetch.RefusedError{Subject: "ssh://host/x", Rule: "its host certificate does not match known_hosts: principal not in [internal]"},
			"ssh://host/x: its host key or host certificate does not match known_hosts"},
		{&fetch.RefusedError{Subject: "ssh://host/x", Rule: "known_hosts has no key"}, "ssh://host/x: known_hosts has no key"},
		{&fetch.UnavailableError{Subject: "https://host/x", Err: errors.New("the server answers with status 500")}, "https://host/x: the server answers with status 500"},
		{&fetch.NotFoundError{What: "branch"}, "branch not found"},
	} {
		if got := shown(test.err); got != test.want {
			t.Errorf("%v is shown as %q, want %q", test.err, got, test.want)
		}
	}
}

// Red when content passes that no method can render.
func TestPresence(t *testing.T) {
	file := func(name, text string) fs.FS { return fstest.MapFS{name: {Data: []byte(text)}} }
	for _, test := range []struct {
		method  v1.Method
		content fs.FS
		want    string
	}{
		{v1.MethodHelm, file("Chart.yaml", "name: web\nversion: 1.0.0\n"), ""},
		{v1.MethodHelm, file("web/Chart.yaml", "name: web\nversion: 1.0.0\n"), v1.ReasonArtifactNotFound},
		{v1.MethodHelm, file("Chart.yaml", "name: web\n"), v1.ReasonArtifactRefused},
		{v1.MethodHelm, file("Chart.yaml", "name: [\n"), v1.ReasonArtifactRefused},
		{v1.MethodHelm, file("Chart.yaml", "name: web\nversion: 1.0.0\nx: ["+strings.Repeat("[],", 10_000)+"]\n"), v1.ReasonArtifactRefused},
		{v1.MethodGoTemplate, file("deep/x.yaml", ""), ""},
		{v1.MethodGoTemplate, file("README.md", ""), v1.ReasonArtifactNotFound},
	} {
		err := presence(test.method, test.content)
		reason := ""
		if err != nil {
			reason, _ = fetch.Reason(err)
		}
		if reason != test.want {
			t.Errorf("%s, %v: %v", test.method, test.content, err)
		}
	}
}
