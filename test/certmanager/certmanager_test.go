package certmanager

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
)

// TestCertManagerKeepsTheCertificate has cert-manager issue the certificate of each chart's webhooks: the API server is told its authority,
// and asks; after the Secret is gone there is another certificate, which the same process of the manager takes up. Red when the chart
// names another Secret, or no Certificate to inject from, or when the manager keeps what it began with.
func TestCertManagerKeepsTheCertificate(t *testing.T) {
	long.Skip(t, "cert-manager", "cert-manager is built from source")
	for _, chart := range charts {
		t.Run(chart, func(t *testing.T) {
			p := install(t, chart)
			p.runCertManager()
			first := p.expectIssued(nil)
			manager, address := p.runManager()
			expectServed(t, address, first)
			p.expectRefusal()

			expect.Delete(t, p.client, p.secret())
			second := p.expectIssued(first)
			expectServed(t, address, second)
			p.expectRefusal()
			if failure := manager.Failure(); failure != nil {
				t.Error(failure)
			}
			p.expectNoRefusedCalls()
		})
	}
}

func (p *platform) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.chart + "-webhook"}}
}

var (
	errBefore  = errors.New("it is the certificate of before")
	errNothing = errors.New("it has nothing")
)

// expectIssued waits for a certificate other than before, and for its authority in all webhooks of the chart.
func (p *platform) expectIssued(before *x509.Certificate) (issued *x509.Certificate) {
	p.t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace + "." + p.chart}}
	expect.Object(p.t, p.client, configuration, func(found *admissionregistrationv1.ValidatingWebhookConfiguration) error {
		secret := p.secret()
		if err := p.client.Get(p.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
		if block == nil {
			return errNothing
		}
		var err error
		if issued, err = x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
		if before != nil && issued.Equal(before) {
			return errBefore
		}
		for _, webhook := range found.Webhooks {
			trusted := x509.NewCertPool() // cert-manager leaves the authority of before in it
			trusted.AppendCertsFromPEM(webhook.ClientConfig.CABundle)
			host := webhook.ClientConfig.Service.Name + "." + namespace + ".svc"
			if _, err := issued.Verify(x509.VerifyOptions{Roots: trusted, DNSName: host}); err != nil {
				return fmt.Errorf("webhook %q does not trust the certificate of Secret %q: %w", webhook.Name, secret.Name, err)
			}
		}
		return nil
	})
	return issued
}

// expectServed waits until the manager serves with a certificate, as one who trusts it and knows the manager by its Service sees it.
func expectServed(t *testing.T, address string, issued *x509.Certificate) {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AddCert(issued)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: authorities, ServerName: issued.DNSNames[0], MinVersion: tls.VersionTLS12}}
	expect.Eventually(t, expect.Patience, func() error {
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// expectRefusal waits until the API server has the webhook's answer about a mistake that the kind lets through.
func (p *platform) expectRefusal() {
	p.t.Helper()
	twice := given.Catalogue(namespace, "twice", given.Addon(
		"web", kubermaticv1.AddonVersion{Version: "1.0.0"}, kubermaticv1.AddonVersion{Version: "v1.0"},
	))
	expect.Eventually(p.t, expect.Patience, func() error {
		err := p.client.Create(p.t.Context(), twice.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "admission webhook") {
			return fmt.Errorf("the webhook does not refuse it: %w", errors.Join(errNothing, err))
		}
		if !strings.Contains(err.Error(), `version "v1.0": version: "1.0.0" is the same version`) {
			p.t.Fatalf("the refusal says something else: %v", err)
		}
		return nil
	})
}

// expectNoRefusedCalls looks for calls of the manager for which it has no right.
func (p *platform) expectNoRefusedCalls() {
	p.t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil || strings.Contains(string(log), "forbidden") {
		p.t.Errorf("the manager was refused a call: %v\n%s", err, fleet.Tail(p.log, 20))
	}
}
