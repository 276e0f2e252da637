package manager

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	clientmetrics "k8s.io/client-go/tools/metrics"
)

// ownRequests counts the requests to one API server.
type ownRequests struct {
	clientmetrics.ResultMetric
	host string
}

// countOwnRequests makes rest_client_requests_total count only the manager's own API server. client-go counts by
// host, and controller-runtime keeps its counts: otherwise each user cluster would have series forever, and its API
// server could choose their codes. Package remote counts those requests.
func countOwnRequests(config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reading the API server's address: %w", err)
	}
	all := clientmetrics.RequestResult
	if own, isOwn := all.(*ownRequests); isOwn {
		all = own.ResultMetric
	}
	clientmetrics.RequestResult = &ownRequests{all, address.Host}
	return nil
}

// Increment implements client-go's ResultMetric.
func (r *ownRequests) Increment(ctx context.Context, code, method, host string) {
	if host == r.host {
		r.ResultMetric.Increment(ctx, code, method, host)
	}
}
