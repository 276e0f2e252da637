package certificate

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func makePair(t *testing.T, now time.Time, before []byte, hosts ...string) *pair {
	t.Helper()
	made, err := newPair(hosts, now, before)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestReadPair holds which content of a Secret is served, and that what is wrong is told without any of it.
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
		{"as it was made", made.data(), []string{"webhook.kubermatic.svc", "127.0.0.1"}, noon.Add(time.Minute), ""},
		{"for one who is an hour behind", made.data(), []string{"127.0.0.1"}, noon.Add(-59 * time.Minute), ""},
		{"on its last day", made.data(), []string{"127.0.0.1"}, noon.Add(89 * day), ""},
		{"after its last day", made.data(), []string{"127.0.0.1"}, noon.Add(91 * day), "can't be verified"},
		{"for another host", made.data(), []string{"webhook.other.svc"}, noon, `host "webhook.other.svc"`},
		{"an empty Secret", nil, []string{"127.0.0.1"}, noon, "not there yet"},
		{"somebody else's key", map[string][]byte{
			keyAuthorities: made.authorities, keyCertificate: made.certificate, keyPrivate: other.key,
		}, []string{"127.0.0.1"}, noon, "don't belong together"},
		{"somebody else's authority", map[string][]byte{
			keyAuthorities: other.authorities, keyCertificate: made.certificate, keyPrivate: made.key,
		}, []string{"127.0.0.1"}, noon, "can't be verified"},
		{"no authority", map[string][]byte{keyCertificate: made.certificate, keyPrivate: made.key}, []string{"127.0.0.1"}, noon, "can't be verified"},
		{"garbage", map[string][]byte{keyAuthorities: []byte("x"), keyCertificate: []byte("canary"), keyPrivate: []byte("canary")},
			[]string{"127.0.0.1"}, noon, "don't belong together"},
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

// TestRenewalKeepsTrust holds that a replica that has not looked yet is trusted after a renewal, and not for ever.
func TestRenewalKeepsTrust(t *testing.T) {
	first := makePair(t, noon, nil, "127.0.0.1")
	if first.isDue(noon.Add(59 * day)) {
		t.Error("a new certificate is due after 59 days of 90")
	}
	if !first.isDue(noon.Add(61 * day)) {
		t.Error("a certificate is not due 29 days before its end")
	}
	second := makePair(t, noon.Add(61*day), first.authorities, "127.0.0.1")
	served := first.data()
	served[keyAuthorities] = second.authorities
	if _, err := readPair(served, []string{"127.0.0.1"}, noon.Add(62*day)); err != nil {
		t.Errorf("after a renewal the certificate before it is not trusted any more: %v", err)
	}
	third := makePair(t, noon.Add(122*day), second.authorities, "127.0.0.1")
	if got := len(certificates(third.authorities)); got != 2 {
		t.Errorf("%d authorities are trusted, want the present and the one before: expired ones go", got)
	}
}

// TestAuthoritiesStayFew holds that a Secret that is renewed again and again does not grow.
func TestAuthoritiesStayFew(t *testing.T) {
	var authorities []byte
	for range 10 {
		authorities = makePair(t, noon, authorities, "127.0.0.1").authorities
	}
	if got := len(certificates(authorities)); got != 1+authoritiesKept {
		t.Errorf("%d authorities are trusted, want %d", got, 1+authoritiesKept)
	}
}
