package signer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// again is how long after a watch that ended the next one begins.
const again = 100 * time.Millisecond

// Start has the signer work on an API server until the test ends or stop is called, also over outages of the API server. The config's
// user needs to get, list and watch requests, update their status, and verb sign for the signer's name.
func (s *Signer) Start(t testing.TB, config *rest.Config) (stop func()) {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// What fails is tried again with the next watch, which begins with all requests that there are.
		wait.UntilWithContext(ctx, func(ctx context.Context) { _ = s.watch(ctx, c) }, again)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// watch signs until the API server ends the watch, or doesn't take something.
func (s *Signer) watch(ctx context.Context, c client.WithWatch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching, err := c.Watch(ctx, &certificatesv1.CertificateSigningRequestList{})
	if err != nil {
		return fmt.Errorf("watching requests: %w", err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		request, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok || !s.isTurn(request) {
			continue
		}
		if err := s.answer(ctx, c, request); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// isTurn says whether the request waits for this signer. API servers have none that is both approved and denied.
func (s *Signer) isTurn(request *certificatesv1.CertificateSigningRequest) bool {
	has := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(request.Status.Conditions, func(condition certificatesv1.CertificateSigningRequestCondition) bool {
			return condition.Type == kind
		})
	}
	return request.Spec.SignerName == s.name && len(request.Status.Certificate) == 0 && request.DeletionTimestamp == nil &&
		has(certificatesv1.CertificateApproved) && !has(certificatesv1.CertificateFailed)
}

// answer writes a certificate into the request's status, or that there will be none.
func (s *Signer) answer(ctx context.Context, c client.Client, request *certificatesv1.CertificateSigningRequest) error {
	if _, fails := s.orders(); fails {
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerRefuses", Message: "the signer does not sign this",
		})
		return c.Status().Update(ctx, request)
	}
	life := Life
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		life = time.Duration(*seconds) * time.Second
	}
	signed, err := s.Sign(request.Spec.Request, life, time.Now())
	if err != nil {
		return err
	}
	request.Status.Certificate = signed
	return c.Status().Update(ctx, request)
}
