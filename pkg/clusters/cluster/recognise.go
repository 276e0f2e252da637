package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const (
	kubeSystemPath = "/api/v1/namespaces/kube-system"
	metadataOnly   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
	// kubeSystemLimit limits the answer, in bytes.
	kubeSystemLimit = 1 << 20
)

// UnidentifiedError reports that a user cluster's identity can't be read.
type UnidentifiedError struct {
	// Reason is a reason of condition Ready, Problem a sentence for users.
	Reason, Problem string
}

func (e *UnidentifiedError) Error() string { return e.Problem }

// userCluster is the UID of namespace kube-system, which lives as long as the cluster's data.
func (c *Connection) userCluster(ctx context.Context) (types.UID, error) {
	body, err := c.kinds.client.Get().AbsPath(kubeSystemPath).SetHeader("Accept", metadataOnly).Stream(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return "", &UnidentifiedError{v1.ReasonClusterNotReady, "the user cluster has no namespace kube-system yet"}
	case apierrors.IsForbidden(err):
		return "", &UnidentifiedError{v1.ReasonKubeconfigInvalid,
			"the kubeconfig's user may not get namespace kube-system, whose UID identifies the user cluster: allow it"}
	case err != nil:
		return "", err
	}
	defer body.Close()
	var namespace struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	data, err := io.ReadAll(io.LimitReader(body, kubeSystemLimit))
	if err != nil {
		return "", err
	}
	if json.Unmarshal(data, &namespace) != nil || len(namespace.Metadata.UID) != remote.UIDLength || !remote.IsUID(namespace.Metadata.UID) {
		return "", &UnidentifiedError{v1.ReasonClusterMisbehaves, "the user cluster's namespace kube-system has no valid UID"}
	}
	return namespace.Metadata.UID, nil
}

// recognise checks that a connection leads to the Cluster's own user cluster.
func (k *connector) recognise(ctx context.Context, greeted *Connection) *NotConnectedError {
	greeted.Origin = k.cluster.UID
	if k.identities == nil {
		return nil
	}
	found, err := greeted.userCluster(ctx)
	if err != nil {
		return k.greetingProblem(err)
	}
	origin, err := k.identities.confirm(ctx, k.cluster, found, k.confirmation())
	var swapped *SwappedError
	var shared *SharedError
	switch {
	case errors.As(err, &swapped):
		return k.trouble(v1.ReasonClusterSwapped, k.kubeconfigPlace()+swapped.Error())
	case errors.As(err, &shared):
		return k.trouble(v1.ReasonClusterShared, k.kubeconfigPlace()+shared.Error())
	case err != nil:
		return k.trouble(v1.ReasonClusterNotReady, "the identity of the user cluster can't be read or recorded on the seed")
	}
	greeted.UserCluster, greeted.Origin = found, origin
	return nil
}

func (k *connector) confirmation() string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.confirmed
}

// probeBudget is more than the answer to /version needs, in bytes.
const probeBudget = 1 << 20

// Probe requests the version of the API server of a kubeconfig once, such as "v1.36.3", within the context. Confirmed
// is the Cluster's annotation confirm-cluster. The error is a KubeconfigError, a NotConnectedError or, with a
// version, the SwappedError of another user cluster.
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

// compare records nothing. It accepts a user cluster without an identity.
func (i *Identities) compare(ctx context.Context, connection *Connection, cluster target.Ref, confirmed string) error {
	recorded, err := i.of(ctx, cluster)
	if err != nil || recorded.userCluster == "" {
		return err
	}
	found, err := connection.userCluster(ctx)
	if _, unidentified := errors.AsType[*UnidentifiedError](err); unidentified {
		return nil
	}
	if err != nil {
		return &NotConnectedError{Reason: v1.ReasonClusterUnreachable, Message: DescribeFailure(err)}
	}
	_, err = recorded.follow(cluster, found, confirmed)
	return err
}
