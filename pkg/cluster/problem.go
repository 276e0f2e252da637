package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/target"
)

// NotConnectedError says why there is no connection at the moment.
type NotConnectedError struct {
	Cluster string
	// Reason is one of the kind's Ready reasons: ClusterNotReady, KubeconfigInvalid, ClusterUnreachable, ClusterMisbehaves,
	// ClusterSwapped or ClusterShared.
	Reason string
	// Message is fit for a condition.
	Message string
}

// Error implements error.
func (e *NotConnectedError) Error() string {
	return fmt.Sprintf("cluster %q: %s", e.Cluster, e.Message)
}

// isSwap says whether the API server answers and is another one's, which only people can mend.
func (e *NotConnectedError) isSwap() bool {
	return e != nil && (e.Reason == v1.ReasonClusterSwapped || e.Reason == v1.ReasonClusterShared)
}

// NotReady says why a Cluster can't be used yet, by KKP's own precondition for add-ons: it has a version, and its API
// server is up. Nil when it can.
func NotReady(cluster target.Description) *NotConnectedError {
	var message string
	switch {
	case cluster.Namespace == "":
		message = "the Cluster has no namespace yet"
	case cluster.KubernetesVersion == "":
		message = "the Cluster's control plane has no version yet"
	case !cluster.APIServerUp:
		message = "the Cluster's API server is not up"
	default:
		return nil
	}
	return &NotConnectedError{Cluster: cluster.Name, Reason: v1.ReasonClusterNotReady, Message: message}
}

// isTransportFailure says whether a call failed below the API: no answer, or half of one.
func isTransportFailure(err error) bool {
	var status apierrors.APIStatus
	var known *NotConnectedError
	var busy *remote.BusyError
	if err == nil || errors.As(err, &status) || errors.As(err, &known) || errors.As(err, &busy) || errors.Is(err, context.Canceled) {
		return false
	}
	var network net.Error
	var request *url.Error
	return errors.As(err, &network) || errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// DescribeFailure says what became of a call to an API server that did not answer it as one, in words of our own, since those of
// the other side belong to a tenant. They are fit for status: they name no address, and they are the same when the same goes wrong
// again.
func DescribeFailure(err error) string {
	var status apierrors.APIStatus
	var misbehaves *remote.MisbehavesError
	var slow *remote.TooSlowError
	var refused *remote.RefusedAddressError
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("the API server answers with HTTP status %d", status.Status().Code)
	case errors.As(err, &misbehaves):
		return misbehaves.Error()
	case errors.As(err, &slow):
		return slow.Error()
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &certificate):
		return "the API server's certificate is not one that the kubeconfig trusts"
	case errors.As(err, &name):
		return "the API server's host name is not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the API server refuses connections"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "the API server does not answer in time"
	}
	return "the connection to the API server fails"
}
