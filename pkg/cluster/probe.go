package cluster

import (
	"context"
	"errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// probeBudget is more than the answer to /version may have.
const probeBudget = 1 << 20

// Probe asks the API server of a kubeconfig for its version ("v1.36.3"), once and over a connection that is closed
// afterwards. The context bounds it. The error is a KubeconfigError, or a NotConnectedError in words of our own.
func Probe(ctx context.Context, kubeconfig []byte) (string, error) {
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
		return "", &NotConnectedError{Reason: v1.ReasonClusterUnreachable, Message: describe(err)}
	}
	return version, err
}
