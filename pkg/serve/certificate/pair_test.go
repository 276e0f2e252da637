package certificate

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	day            = 24 * time.Hour
	certificateKey = corev1.TLSCertKey
	privateKey     = corev1.TLSPrivateKeyKey
)

// makePair gives the data of a Secret whose certificate was made at a time, after authorities of
// before.
func makePair(t *testing.T, now time.Time, before []byte, hosts ...string) map[string][]byte {
	t.Helper()
	data := map[string][]byte{KeyAuthorities: before}
	if _, err := (&Options{Name: "trellis-webhook", Hosts: hosts}).renew(data, now); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReadPair holds which content of a Secret is served, and that what is wrong is told without
// any of it.
func TestReadPair(t *testing.T) {
	made := makePair(t, noon, nil, "webhook.kubermatic.svc", "127.0.0.1")
	other := makePair(t, noon, nil, "webhook.kubermatic.svc", "127.0.0.1")
	for _, test := range []struct {
		why   string
		data  map[string][]byte
		hosts []string
		now   time.Time
		wrong string
	}{
		{"as it was made", made, []string{"webhook.kubermatic.svc", "127.0.0.1"}, noon.Add(time.Minute), ""},
		{"for one who is an hour behind", made, []string{"127.0.0.1"}, noon.Add(-59 * time.Minute), ""},
		{"by a clock that was set back", made, []string{"127.0.0.1"}, noon.Add(-day), "not valid before 2026-11-21T11:00:00Z"},
		{"on its last day", made, []string{"127.0.0.1"}, noon.Add(89 * day), ""},
		{"after its last day", made, []string{"127.0.0.1"}, noon.Add(91 * day), "can't be verified"},
		{"for another host", made, []string{"webhook.other.svc"}, noon, `host "webhook.other.svc"`},
		{"an empty Secret", nil, []string{"127.0.0.1"}, noon, "does not exist yet"},
		{"somebody else's key", map[string][]byte{
			KeyAuthorities: made[KeyAuthorities], certificateKey: made[certificateKey], privateKey: other[privateKey],
		}, []string{"127.0.0.1"}, noon, "do not match"},
		{"somebody else's authority", map[string][]byte{
			KeyAuthorities: other[KeyAuthorities], certificateKey: made[certificateKey], privateKey: made[privateKey],
		}, []string{"127.0.0.1"}, noon, "can't be verified"},
		{"no authority", map[string][]byte{certificateKey: made[certificateKey], privateKey: made[privateKey]}, []string{"127.0.0.1"}, noon, "can't be verified"},
		{"garbage", map[string][]byte{KeyAuthorities: []byte("x"), certificateKey: []byte("canary"), privateKey: []byte("canary")},
			[]string{"127.0.0.1"}, noon, "do not match"},
	} {
		t.Run(test.why, func(t *testing.T) {
			_, err := readPair(test.data, test.hosts, test.now)
			var unusable *unusableError
			switch {
			case test.wrong == "" && err != nil:
				t.Errorf("not served: %v", err)
			case test.wrong != "" && (!errors.As(err, &unusable) || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("got %v, want an unusableError with %q", err, test.wrong)
			case err != nil && strings.Contains(err.Error(), "canary"):
				t.Errorf("the error tells what is in the Secret: %v", err)
			}
		})
	}
}

// TestRenewalKeepsTrust holds that a replica that has not looked yet is trusted after a renewal,
// and not for ever.
func TestRenewalKeepsTrust(t *testing.T) {
	first := makePair(t, noon, nil, "127.0.0.1")
	serving, err := readPair(first, []string{"127.0.0.1"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if isDue(serving, noon.Add(59*day)) {
		t.Error("a new certificate is due after 59 days of 90")
	}
	if !isDue(serving, noon.Add(61*day)) {
		t.Error("a certificate is not due 29 days before its end")
	}
	second := makePair(t, noon.Add(61*day), first[KeyAuthorities], "127.0.0.1")
	served := maps.Clone(first)
	served[KeyAuthorities] = second[KeyAuthorities]
	if _, err := readPair(served, []string{"127.0.0.1"}, noon.Add(62*day)); err != nil {
		t.Errorf("after a renewal the certificate before it is not trusted any more: %v", err)
	}
	third := makePair(t, noon.Add(122*day), second[KeyAuthorities], "127.0.0.1")
	if got := len(Parse(third[KeyAuthorities])); got != 2 {
		t.Errorf("%d authorities are trusted, want the present and the one before: expired ones go", got)
	}
}

// TestAuthoritiesStayFew holds that a Secret that is renewed again and again does not grow.
func TestAuthoritiesStayFew(t *testing.T) {
	var authorities []byte
	for range 10 {
		authorities = makePair(t, noon, authorities, "127.0.0.1")[KeyAuthorities]
	}
	if got := len(Parse(authorities)); got != 1+earlierAuthorities {
		t.Errorf("%d authorities are trusted, want %d", got, 1+earlierAuthorities)
	}
}

// RS39: A certificate that was made while the clock was ahead is made again once the clock is right. Red when it is not, when an authority
// that clients keep is made again for it, and when the error does not say what is wrong.
func TestACertificateOfAClockThatWasAheadIsMadeAgain(t *testing.T) {
	hosts := []string{"127.0.0.1"}
	ahead := makePair(t, noon.Add(1000*day), nil, hosts...)
	found, err := (&Options{Name: "trellis-webhook", Hosts: hosts}).renew(ahead, noon)
	if err != nil || found.Leaf.NotAfter.After(noon.Add(lifetime)) {
		t.Fatalf("the webhooks have no certificate of now: %v", err)
	}
	if _, err := readPair(ahead, hosts, noon); err != nil {
		t.Errorf("it is not served: %v", err)
	}

	lasting := &Options{Name: "trellis-query", Hosts: hosts, LastingAuthority: true}
	kept := map[string][]byte{}
	if _, err := lasting.renew(kept, noon.Add(day)); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(kept)
	if _, err := lasting.renew(kept, noon); err == nil || !strings.Contains(err.Error(), "not valid before 2026-11-22T11:00:00Z") {
		t.Errorf("got %v", err)
	}
	if !maps.EqualFunc(before, kept, bytes.Equal) {
		t.Error("what clients keep was replaced")
	}
}
