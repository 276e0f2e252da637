package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // the port-forward of client-go takes its types
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// pod is a ready pod of the endpoint's Service.
type pod struct {
	name string
	port int32
}

var errNoPod = errors.New("no pod is ready")

// pods are the ready pods of the Service, the one that answered last before others.
func (e *Endpoint) pods(ctx context.Context) (found []pod, err error) {
	var all discoveryv1.EndpointSliceList
	err = e.seed.List(ctx, &all, client.InNamespace(e.at[v1.QueryNamespace]),
		client.MatchingLabels{discoveryv1.LabelServiceName: e.at[v1.QueryService]})
	if err != nil {
		return nil, err
	}
	for _, slice := range all.Items {
		if len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
			continue
		}
		for _, one := range slice.Endpoints {
			isReady := one.Conditions.Ready == nil || *one.Conditions.Ready
			if isReady && one.TargetRef != nil && one.TargetRef.Kind == "Pod" {
				found = append(found, pod{one.TargetRef.Name, *slice.Ports[0].Port})
			}
		}
	}
	slices.SortFunc(found, func(a, b pod) int { return cmp.Compare(a.name, b.name) })
	found = slices.Compact(found) // each family of addresses has its slice
	if at := slices.IndexFunc(found, func(one pod) bool { return one.name == e.pod }); at > 0 {
		found[0], found[at] = found[at], found[0]
	}
	if len(found) == 0 {
		return nil, errNoPod
	}
	return found, nil
}

// callThrough sends a request through a port-forward to a pod.
func (e *Endpoint) callThrough(ctx context.Context, to pod, asked Question) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	port, ended, err := e.forward(ctx, to)
	if err != nil {
		return answer{}, err
	}
	by := way{
		base: &url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", port)}, serverName: e.at[v1.QueryServerName], isLocal: true,
	}
	found, err := e.send(ctx, by, asked)
	if err == nil {
		return found, nil
	}
	select {
	case broke := <-ended: // it says more than the broken connection
		err = cmp.Or(broke, err)
	default:
	}
	return answer{}, err
}

// forward opens a port on 127.0.0.1 that leads to a pod until the context ends, or an error arrives in ended.
func (e *Endpoint) forward(ctx context.Context, to pod) (port uint16, ended chan error, err error) {
	dialer, err := e.dialer(to)
	if err != nil {
		return 0, nil, err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	made, err := portforward.NewOnAddressesWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", to.port)}, ready,
		io.Discard, io.Discard)
	if err != nil {
		return 0, nil, err
	}
	go func() { ended <- made.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return 0, nil, err
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	ports, err := made.GetPorts()
	if err != nil {
		return 0, nil, err
	}
	return ports[0].Local, ended, nil
}

// dialer upgrades a request to the API server to a websocket or, if a server or a proxy does not support it, to SPDY.
func (e *Endpoint) dialer(to pod) (httpstream.Dialer, error) {
	config := e.seed.Config
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	at := base.JoinPath("api", "v1", "namespaces", e.at[v1.QueryNamespace], "pods", to.name, "portforward")
	first, err := portforward.NewSPDYOverWebsocketDialer(at, config)
	if err != nil {
		return nil, err
	}
	carries, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	second := spdy.NewDialer(upgrader, &http.Client{Transport: carries}, http.MethodPost, at)
	return portforward.NewFallbackDialer(first, second, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
