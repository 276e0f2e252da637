package sourcecheck

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
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
func TestCataloguesTakeTurns(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	options := Options{Clock: clock, FirstPause: time.Minute}
	turns := newTurns()
	turns.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"north"}})
	turns.want(map[string]listed{"large": itemsFor("large", 5000), "small": itemsFor("small", 2)}, &catalogue.SourceChecks{})
	next := func(want string) []item {
		t.Helper()
		var names []string
		chosen := turns.next(turns.due(clock.Now()), 2)
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
	turns.conclude(first[1], outcome{checked: true}, options)
	second := next("[small-1]")
	turns.want(map[string]listed{"large": itemsFor("large", 5000), "small": itemsFor("small", 2), "new": itemsFor("new", 1)}, &catalogue.SourceChecks{})
	turns.conclude(first[0], outcome{checked: true, fault: &catalogue.SourceFault{Reason: v1.ReasonFetchFailed}}, options)
	third := next("[new-0]")
	turns.conclude(second[0], outcome{checked: true}, options)
	next("[large-1]")
	turns.conclude(third[0], outcome{checked: true}, options)
	clock.Step(2 * time.Minute)
	next("[]")
	if known := turns.items["large-0"]; known.fault == nil || known.due.After(clock.Now()) {
		t.Errorf("what failed is not due again: %+v", known)
	}
	if turns.want(map[string]listed{"new": itemsFor("new", 1)}, &catalogue.SourceChecks{}); !turns.items["new-0"].good {
		t.Error("what was found is forgotten as others go")
	}
}

// Red when what an earlier process found is asked for again, or what failed is not, or what could not
// be checked counts as wrong.
func TestWhatIsKnownStays(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	turns := newTurns()
	turns.want(map[string]listed{"web": itemsFor("web", 3)}, &catalogue.SourceChecks{
		Good: map[string]bool{"web-0": true}, Bad: map[string]catalogue.SourceFault{"web-1": {Reason: v1.ReasonFetchFailed}},
	})
	if due := turns.due(clock.Now()); len(due) != 0 {
		t.Errorf("without a share it checks %v", due)
	}
	turns.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"north"}})
	if due := turns.due(clock.Now())["web"]; len(due) != 2 {
		t.Errorf("due are %v", due)
	}
	turns.conclude(*turns.items["web-2"], outcome{}, Options{Clock: clock, FirstPause: time.Minute})
	if known := turns.items["web-2"]; known.fault != nil || known.good || turns.soonest(clock.Now()) > 12*time.Second {
		t.Errorf("what can't be checked is %+v, due in %s", known, turns.soonest(clock.Now()))
	}
	turns.divide(catalogue.SourceShare{Seed: "north", Seeds: []string{"south"}})
	if due := turns.due(clock.Now()); len(due) != 0 {
		t.Errorf("it checks the share of another: %v", due)
	}
}

// Red when catalogues of one repository have a turn each, or one takes part in the turns of another.
func TestGeneratedCataloguesShareATurn(t *testing.T) {
	for name, want := range map[string]string{
		"git-web-0a1b2c": "git", "git-web": "git-web", "web-0a1b2c": "web-0a1b2c", "-web-0a1b2c": "-web-0a1b2c", "x": "x",
	} {
		if got := authored(name, "web"); got != want {
			t.Errorf("%s is of %s, want %s", name, got, want)
		}
	}
}

// Red when an error tells an author of catalogues which ports are open, or hides what helps.
func TestErrorsAreNoPortScanner(t *testing.T) {
	dial := func(err error) error {
		return &fetch.UnavailableError{Subject: "https://host/x", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 6443}, Err: err}}
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
		{&fetch.UnavailableError{Subject: "https://host/x", Err: errors.New("nothing came for 30s")}, unreachable},
		{&fetch.UnavailableError{Subject: "https://host/x", Err: &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "host"}}},
			"https://host/x: tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match host"},
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
		{v1.MethodGoTemplate, file("deep/x.yaml", ""), ""},
		{v1.MethodGoTemplate, file("README.md", ""), v1.ReasonArtifactNotFound},
	} {
		err := Presence(test.method)(test.content)
		reason := ""
		if err != nil {
			reason, _ = fetch.Reason(err)
		}
		if reason != test.want {
			t.Errorf("%s, %v: %v", test.method, test.content, err)
		}
	}
}
