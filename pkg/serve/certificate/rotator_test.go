package certificate_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/serve/certificate"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "seed"}) }

const (
	place         = "default"
	secretName    = "trellis-webhook"
	configuration = "default.trellis"
	day           = 24 * time.Hour
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func connect(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(fleet.Shared().Cluster("seed").Config, client.Options{})
	expect.NoError(t, err)
	return c
}

// layOut makes what the chart brings.
func layOut(t *testing.T, c client.Client) {
	t.Helper()
	none, url := admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/validate"
	webhook := admissionregistrationv1.ValidatingWebhook{
		SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
	}
	first, second := webhook, webhook
	first.Name, second.Name = "addoncatalogues.addons.kubermatic.k8c.io", "two.trellis.example.com"
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: secretName}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: configuration},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{first, second},
		},
	} {
		expect.Create(t, c, object)
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
}

// replica is a running Rotator of the webhooks' certificate, with a clock of its own.
type replica struct {
	*certificate.Rotator
	*webhook.Registration
	clock *testingclock.FakeClock
}

func start(t *testing.T, c client.Client) *replica {
	t.Helper()
	clock := testingclock.NewFakeClock(noon)
	registration := &webhook.Registration{Configuration: configuration, Client: c, Reader: c}
	made := certificate.New(certificate.Options{
		Name: "trellis-webhook", Secret: client.ObjectKey{Namespace: place, Name: secretName}, Hosts: []string{"127.0.0.1"},
		Publisher: registration, Clock: clock,
	})
	made.Use(c, c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &replica{made, registration, clock}
}

// step lets time pass for a replica that waits for its next look.
func (r *replica) step(t *testing.T, by time.Duration) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		if !r.clock.HasWaiters() {
			return errors.New("the replica is at work still")
		}
		return nil
	})
	r.clock.Step(by)
}

// agreed waits until the replicas serve the certificate of the Secret, other than before, and the
// configuration trusts it.
func agreed(t *testing.T, c client.Client, before []byte, replicas ...*replica) []byte {
	t.Helper()
	var served []byte
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: secretName}}
	expect.Object(t, c, secret, func(secret *corev1.Secret) error {
		var trusted admissionregistrationv1.ValidatingWebhookConfiguration
		if err := c.Get(t.Context(), client.ObjectKey{Name: configuration}, &trusted); err != nil {
			return err
		}
		for _, webhook := range trusted.Webhooks {
			if !bytes.Equal(webhook.ClientConfig.CABundle, secret.Data[certificate.KeyAuthorities]) {
				return fmt.Errorf("webhook %q trusts others than the Secret has", webhook.Name)
			}
		}
		for i, replica := range replicas {
			shown, err := replica.GetCertificate(nil)
			if err != nil {
				return err
			}
			served = shown.Certificate[0]
			read, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
			if err != nil || !bytes.Equal(served, read.Certificate[0]) {
				return fmt.Errorf("replica %d does not serve what the Secret has: %v", i, err)
			}
		}
		if bytes.Equal(served, before) {
			return errors.New("the certificate is the one before")
		}
		return nil
	})
	return served
}

// TestReplicasAgree holds that replicas that start at once serve one certificate, and one again
// after it was renewed.
func TestReplicasAgree(t *testing.T) {
	c := connect(t)
	layOut(t, c)
	one, two := start(t, c), start(t, c)
	first := agreed(t, c, nil, one, two)
	if err := one.Ready(nil); err != nil {
		t.Errorf("a replica with a certificate is not ready: %v", err)
	}

	one.step(t, 61*day)
	second := agreed(t, c, first, one)
	two.step(t, 61*day)
	if third := agreed(t, c, first, one, two); !bytes.Equal(second, third) {
		t.Error("the other replica has renewed what was renewed just now")
	}
}

// TestMended holds that a caBundle that somebody empties comes back, and that a broken Secret is
// filled anew.
func TestMended(t *testing.T) {
	c := connect(t)
	layOut(t, c)
	keeper := start(t, c)
	first := agreed(t, c, nil, keeper)

	emptied := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	expect.Get(t, c, client.ObjectKey{Name: configuration}, emptied)
	emptied.Webhooks[0].ClientConfig.CABundle = nil
	expect.Update(t, c, emptied)
	keeper.step(t, time.Minute)
	if again := agreed(t, c, nil, keeper); !bytes.Equal(first, again) {
		t.Error("the certificate was renewed, although only the bundle was missing")
	}

	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: secretName}}
	expect.Update(t, c, broken)
	keeper.step(t, time.Minute)
	agreed(t, c, first, keeper)
}

// TestNothingIsServedTooEarly holds that there is no certificate, and no readiness, before the
// Secret is there.
func TestNothingIsServedTooEarly(t *testing.T) {
	c := connect(t)
	keeper := start(t, c)
	keeper.step(t, time.Second) // after the first look, which failed
	if err := keeper.Ready(nil); !errors.Is(err, certificate.ErrNone) {
		t.Errorf("ready without a certificate: %v", err)
	}
	layOut(t, c)
	keeper.step(t, 5*time.Second)
	agreed(t, c, nil, keeper)
}

// The API server is told a path that nobody can guess, which stays over renewals and restarts and
// is the same for all replicas. Red when the path is not published, or is made anew with each
// certificate.
func TestTheAPIServerGetsASecretPath(t *testing.T) {
	c := connect(t)
	layOut(t, c)
	first := start(t, c)
	before := agreed(t, c, nil, first)
	path := first.Path()
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(path) {
		t.Fatalf("the path is %q", path)
	}
	second := start(t, c)
	agreed(t, c, nil, first, second)
	first.step(t, 61*24*time.Hour)
	agreed(t, c, before, first)
	var reported admissionregistrationv1.ValidatingWebhookConfiguration
	expect.Get(t, c, client.ObjectKey{Name: configuration}, &reported)
	for i, want := range []string{webhook.PathCatalogues, ""} {
		if got := *reported.Webhooks[i].ClientConfig.URL; got != "https://127.0.0.1:1/"+path+want {
			t.Errorf("webhook %d is asked at %q", i, got)
		}
	}
	if first.Path() != path || second.Path() != path {
		t.Errorf("the replicas know %q and %q, not %q", first.Path(), second.Path(), path)
	}
}
