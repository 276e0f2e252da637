package distributor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describe puts an error of a call into words that are fit for status: they name no address, and they are the same when
// the same goes wrong again, so that status is not written over and over.
func describe(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return describeAnswer(err, answer.Status())
	}
	return describeConnection(err)
}

func describeAnswer(err error, status metav1.Status) string {
	switch {
	case apierrors.IsBadRequest(err):
		return "SeedOutdated: the seed's CRD does not know a field: upgrade chart trellis-seed there (" + status.Message + ")"
	case apierrors.IsInvalid(err):
		return "SeedOutdated: the seed's CRD refuses it: upgrade chart trellis-seed there (" + status.Message + ")"
	case apierrors.IsAlreadyExists(err):
		return "it exists on the seed and is not ours: delete or rename it there"
	case apierrors.IsNotFound(err):
		return "the seed does not have the kind or the namespace: is chart trellis-seed installed? (" + status.Message + ")"
	case apierrors.IsUnauthorized(err):
		return "the seed refuses the credentials: renew its kubeconfig Secret"
	case apierrors.IsConflict(err):
		return "it was changed by somebody else at the same time; tried again"
	}
	return fmt.Sprintf("the API server answered %s: %s", status.Reason, status.Message)
}

func describeConnection(err error) string {
	var (
		timeout   net.Error
		resolve   *net.DNSError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
		at        *url.Error
	)
	switch {
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &host):
		return "the server's certificate is not the one that the kubeconfig asks for"
	case errors.As(err, &resolve):
		return "the server's name can't be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the server refuses connections"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the server does not answer"
	case errors.As(err, &at):
		return "the connection to the server broke"
	}
	return err.Error()
}
