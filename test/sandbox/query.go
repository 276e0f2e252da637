package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// querySecret is where the endpoint keeps its certificate.
const querySecret = "trellis-seed-query-tls"

// findPorts gives the query endpoint of each seed, and the metrics of each manager, a port that stays over the manager's restarts.
func (s *Sandbox) findPorts() error {
	find := func(what string, of []string) (map[string]int, error) {
		found := map[string]int{}
		for _, name := range of {
			port, err := s.ports.Free(what + " " + name)
			if err != nil {
				return nil, fmt.Errorf("finding a port for the %s of %q: %w", what, name, err)
			}
			found[name] = port
		}
		return found, nil
	}
	var err error
	if s.queryPorts, err = find("query", s.seeds()); err != nil {
		return err
	}
	s.metricsPorts, err = find("metrics", s.managed())
	return err
}

// metricsURL is where the first replica of a manager tells its metrics.
func (s *Sandbox) metricsURL(cluster string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", s.metricsPorts[cluster])
}

// variable is part of the name of a variable of .sandbox/env.
func variable(cluster string) string { return strings.ToUpper(strings.ReplaceAll(cluster, "-", "_")) }

func (s *Sandbox) queryAddress(seed string) string {
	return fmt.Sprintf("127.0.0.1:%d", s.queryPorts[seed])
}

// QueryURL is the address of a seed's query endpoint.
func (s *Sandbox) QueryURL(seed string) string { return "https://" + s.queryAddress(seed) }

// QueryKubeconfig is the path of a kubeconfig for a seed's query endpoint, for cluster-admin: `kubectl get --raw` asks it.
func (s *Sandbox) QueryKubeconfig(seed string) string { return s.Kubeconfig("query-" + seed) }

func (s *Sandbox) queryAuthority(seed string) string {
	return s.path("kubeconfigs", "query-"+seed+".crt")
}

// queryEnvironment is what .sandbox/env says of the endpoints and of metrics.
func (s *Sandbox) queryEnvironment() [][2]string {
	var variables [][2]string
	for _, seed := range s.seeds() {
		prefix := "SANDBOX_QUERY_" + variable(seed)
		variables = append(variables, [2]string{prefix + "_URL", s.QueryURL(seed)},
			[2]string{prefix + "_CA", s.queryAuthority(seed)}, [2]string{prefix + "_KUBECONFIG", s.QueryKubeconfig(seed)})
	}
	for _, cluster := range s.managed() {
		variables = append(variables, [2]string{"SANDBOX_METRICS_" + variable(cluster) + "_URL", s.metricsURL(cluster)})
	}
	return variables
}

// publishQuery writes the kubeconfigs of the endpoints, once each has made its certificate.
func (s *Sandbox) publishQuery(ctx context.Context) error {
	for _, seed := range s.seeds() {
		found := secret(querySecret, Namespace, "", nil)
		err := s.Await(ctx, seed, found, func(client.Object) error {
			if len(found.Data[corev1.ServiceAccountRootCAKey]) == 0 {
				return errNotYet
			}
			return nil
		})
		if err != nil {
			return err
		}
		authority := found.Data[corev1.ServiceAccountRootCAKey]
		if err := os.WriteFile(s.queryAuthority(seed), authority, 0o600); err != nil {
			return fmt.Errorf("writing the authority of the query endpoint of %q: %w", seed, err)
		}
		if err := clientcmd.WriteToFile(s.queryConfig(seed, authority), s.QueryKubeconfig(seed)); err != nil {
			return fmt.Errorf("writing the kubeconfig of the query endpoint of %q: %w", seed, err)
		}
	}
	return nil
}

func (s *Sandbox) queryConfig(seed string, authority []byte) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{seed: {Server: s.QueryURL(seed), CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{seed: {Token: s.Server(seed).Config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{seed: {Cluster: seed, AuthInfo: seed}},
		CurrentContext: seed,
	}
}
