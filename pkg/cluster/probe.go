package cluster

import (
	"context"
	"errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/target"
)

// probeBudget is more than the answer to /version may have.
const probeBudget = 1 << 20

// Probe asks the API server of a Cluster's kubeconfig for its version ("v1.36.3"), once and over a connection that is closed
// afterwards. The context bounds it. Confirmed is the Cluster's annotation confirm-cluster. The error is a KubeconfigError, a
// NotConnectedError in words of our own or, with a version, the SwappedError of a user cluster that is not the Cluster's.
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

// compare writes nothing: a user cluster is put on record by what connects to it. One that can't be told from others yet is no other.
func (i *Identities) compare(ctx context.Context, connection *Connection, cluster target.Ref, confirmed string) error {
	kept, err := i.of(ctx, identityName(cluster))
	if err != nil || kept.userCluster == "" {
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
	_, err = kept.follow(cluster, found, confirmed)
	return err
}
