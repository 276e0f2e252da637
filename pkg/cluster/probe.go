package cluster

import (
	"context"
	"errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/target"
)

// probeBudget is more than the answer to /version needs, in bytes.
const probeBudget = 1 << 20

// Probe asks the API server of a kubeconfig once for its version, such as "v1.36.3", within the
// context. Confirmed is the Cluster's annotation confirm-cluster. The error is a KubeconfigError, a
// NotConnectedError or, with a version, the SwappedError of another user cluster.
func (i *Identities) Probe(ctx context.Context, cluster target.Ref, confirmed string, kubeconfig []byte) (string, error) {
	config, err := ParseKubeconfig(kubeconfig)
	if err != nil {
		return "", err
	}
	l, err := newLink(config, remote.Options{Budget: remote.NewBudget(probeBudget)}, func(*link, error) {})
	if err != nil {
		return "", err
	}
	defer l.close("", v1.ReasonClusterNotReady, "the probe is over")
	connection, err := newConnection(l)
	if err != nil {
		return "", err
	}
	version, err := connection.version(ctx)
	var none *VersionError
	if err != nil && !errors.As(err, &none) {
		return "", &NotConnectedError{Reason: v1.ReasonClusterUnreachable, Message: DescribeFailure(err)}
	}
	if err != nil {
		return "", err
	}
	return version, i.compare(ctx, connection, cluster, confirmed)
}

// compare records nothing. A user cluster without an identity yet is accepted.
func (i *Identities) compare(ctx context.Context, connection *Connection, cluster target.Ref, confirmed string) error {
	recorded, err := i.of(ctx, identityName(cluster))
	if err != nil || recorded.userCluster == "" {
		return err
	}
	found, err := connection.userCluster(ctx)
	var unidentified *UnidentifiedError
	if errors.As(err, &unidentified) {
		return nil
	}
	if err != nil {
		return &NotConnectedError{Reason: v1.ReasonClusterUnreachable, Message: DescribeFailure(err)}
	}
	_, err = recorded.follow(cluster, found, confirmed)
	return err
}
