package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// NotConnectedError reports why there is no connection now.
type NotConnectedError struct {
	Cluster string
	// Reason is a reason of condition Ready: ClusterNotReady, KubeconfigInvalid,
	// ClusterUnreachable, ClusterMisbehaves, ClusterSwapped or ClusterShared.
	Reason string
	// Message is suitable for a condition.
	Message string
	// Connecting says that the first attempt of this process is under way: the state of the cluster is unknown.
	Connecting bool
}

func (e *NotConnectedError) Error() string {
	return fmt.Sprintf("cluster %q: %s", e.Cluster, e.Message)
}

// isSwap reports whether the API server answers but is another cluster's. Only a user can fix that.
func (e *NotConnectedError) isSwap() bool {
	return e != nil && (e.Reason == v1.ReasonClusterSwapped || e.Reason == v1.ReasonClusterShared)
}

// NotReady is the reason why a Cluster can't be used yet, by KKP's own precondition for add-ons: a version, and an
// API server that is up. Nil: it can.
func NotReady(cluster target.Description) *NotConnectedError {
	var message string
	switch {
	case cluster.Namespace == "":
		message = "the Cluster has no namespace yet"
	case cluster.KubernetesVersion == "" && cluster.NoVersion != "":
		message = "the Cluster has no version: " + cluster.NoVersion
	case cluster.KubernetesVersion == "":
		message = "the Cluster's control plane has no version yet"
	case !cluster.APIServerUp:
		message = "the Cluster's API server is not up"
	default:
		return nil
	}
	return &NotConnectedError{Cluster: cluster.Name, Reason: v1.ReasonClusterNotReady, Message: message}
}

// isTransportFailure reports whether a call failed below the API: without a complete answer.
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

// DescribeFailure describes a call without a proper answer, in a text of Trellis: the API server belongs to a tenant.
// The text is suitable for status: it has no address and is the same for the same failure.
func DescribeFailure(err error) string {
	var status apierrors.APIStatus
	var misbehaves *remote.MisbehavesError
	var slow *remote.TooSlowError
	var refused *remote.RefusedAddressError
	var unwatched *remote.WatchRefusedError
	var stale *remote.StaleError
	var certificate *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
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
	case errors.As(err, &unwatched):
		return unwatched.Error()
	case errors.As(err, &stale):
		return stale.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the API server's certificate has expired, or is not valid yet: renew it, or compare the clocks"
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
