package fleet

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// coreControllers are those that every cluster needs: they remove namespaces, garbage and finished Jobs, and create
// service accounts. The controllers of a cluster are named one by one, since each uses memory and there may be many
// clusters.
const coreControllers = "namespace-controller,garbage-collector-controller,ttl-after-finished-controller,serviceaccount-controller," +
	"serviceaccount-token-controller,root-ca-certificate-publisher-controller,clusterrole-aggregation-controller," +
	"validatingadmissionpolicy-status-controller"

const workloadControllers = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller," +
	"job-controller,cronjob-controller,node-lifecycle-controller,disruption-controller," +
	"endpoints-controller,endpointslice-controller,pod-garbage-collector-controller,persistentvolume-binder-controller," +
	"persistentvolume-protection-controller,persistentvolumeclaim-protection-controller"

// stages are the state changes of nodes and pods that kwok simulates.
//
//go:embed stages.yaml
var stages []byte

const fakeNode = "node-1"

func (c *Cluster) startComponents(ctx context.Context) error {
	if !c.options.Controllers {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	manager, err := c.fleet.run("kube-controller-manager", c.Release, c.Name+"-kube-controller-manager", c.managerArguments()...)
	if err != nil {
		return err
	}
	if c.options.Workloads {
		if err := c.startWorkloads(ctx, client); err != nil {
			return err
		}
	}
	return manager.Await(ctx, "service account default", func(ctx context.Context) error {
		return serviceAccountReady(ctx, client)
	})
}

func (c *Cluster) managerArguments() []string {
	controllers := coreControllers
	if c.options.Workloads {
		controllers += "," + workloadControllers
	}
	if c.options.Certificates {
		controllers += "," + certificateControllers
	}
	arguments := []string{
		"--kubeconfig", c.file("kubeconfig"), "--secure-port", "0", "--leader-elect=false", "--profiling=false",
		"--controllers", controllers, "--root-ca-file", c.file("ca.crt"),
		"--service-account-private-key-file", c.file("accounts.key"), "--use-service-account-credentials=false",
		"--kube-api-qps", "2000", "--kube-api-burst", "4000",
	}
	if c.options.Certificates {
		arguments = append(arguments,
			"--cluster-signing-cert-file", c.file(clientAuthorityCertificate), "--cluster-signing-key-file", c.file(clientAuthorityKey))
	}
	return arguments
}

// startWorkloads starts scheduler and kwok and waits until the fake node accepts pods.
func (c *Cluster) startWorkloads(ctx context.Context, client kubernetes.Interface) error {
	if err := writeFiles(c.folder, map[string][]byte{"stages.yaml": stages}); err != nil {
		return err
	}
	_, err := c.fleet.run("kube-scheduler", c.Release, c.Name+"-kube-scheduler",
		"--kubeconfig", c.file("kubeconfig"), "--secure-port", "0", "--leader-elect=false", "--kube-api-qps", "200",
		"--kube-api-burst", "400")
	if err != nil {
		return err
	}
	kwok, err := c.fleet.run("kwok", "", c.Name+"-kwok",
		"--kubeconfig", c.file("kubeconfig"), "--config", c.file("stages.yaml"), "--manage-all-nodes",
		"--node-lease-duration-seconds", "40", "--cidr", "10.0.0.0/16", "--node-ip", "127.0.0.1")
	if err != nil {
		return err
	}
	if err := createNode(ctx, client); err != nil {
		return err
	}
	return kwok.Await(ctx, "the fake node to take pods", func(ctx context.Context) error {
		return nodeReady(ctx, client)
	})
}

func createNode(ctx context.Context, client kubernetes.Interface) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("10000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fakeNode, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				corev1.LabelHostname: fakeNode, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "type": "kwok",
			},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the fake node: %w", err)
	}
	return nil
}

var errNotYet = errors.New("not yet")

func nodeReady(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, fakeNode, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("taint %s: %w", node.Spec.Taints[0].Key, errNotYet)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node is not ready: %w", errNotYet)
}

// serviceAccountReady returns true when the controller-manager works: pods of namespace default are admitted.
func serviceAccountReady(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	_, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	return err
}

func get(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %w", response.Status, strings.TrimSpace(string(body)), errNotYet)
	}
	return nil
}
