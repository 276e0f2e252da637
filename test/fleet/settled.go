package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// quiet is how long nothing has changed in a new cluster that is lent. Most of what comes after the API server is
// ready is waited for by name; what this misses is put back once after the first lease, and comes again.
const quiet = time.Second

// awaitSettled waits until the API server and its controllers have made what they make at their start.
func (c *Cluster) awaitSettled(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	err = c.Server().Await(ctx, "what comes with a new cluster", func(ctx context.Context) error {
		made := madeByServer(ctx, client)
		if c.options.Controllers {
			made = errors.Join(made, madeByControllers(ctx, client))
		}
		return made
	})
	if err != nil {
		return err
	}
	all := lent{Etcd: c.fleet.etcdURL, Prefix: c.storedUnder()}
	var before stored
	return c.Server().Await(ctx, "a new cluster to be quiet", func(ctx context.Context) error {
		now, err := all.readAll(ctx)
		isSame := maps.EqualFunc(before, now, func(a, b storedValue) bool { return a.Revision == b.Revision })
		if err == nil && isSame {
			return nil
		}
		before = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quiet):
			return errors.Join(err, errNotYet)
		}
	})
}

var systemNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

func madeByServer(ctx context.Context, client kubernetes.Interface) error {
	var failed []error
	for _, namespace := range systemNamespaces {
		_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		failed = append(failed, err)
	}
	_, err := client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	failed = append(failed, err)
	const tokens = "kube-apiserver-legacy-service-account-token-tracking"
	_, err = client.CoreV1().ConfigMaps("kube-system").Get(ctx, tokens, metav1.GetOptions{})
	failed = append(failed, err)
	failed = append(failed, flowsKnown(ctx, client), rangesReady(ctx, client), servicesOfAPIReady(ctx, client))
	return errors.Join(failed...)
}

// flowsKnown holds when the API server has said of each flow schema whether it leads anywhere.
func flowsKnown(ctx context.Context, client kubernetes.Interface) error {
	flows, err := client.FlowcontrolV1().FlowSchemas().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	isUnknown := func(flow flowcontrolv1.FlowSchema) bool { return len(flow.Status.Conditions) == 0 }
	if len(flows.Items) == 0 || slices.ContainsFunc(flows.Items, isUnknown) {
		return fmt.Errorf("flow schemas: %w", errNotYet)
	}
	return nil
}

func rangesReady(ctx context.Context, client kubernetes.Interface) error {
	ranges, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(ranges.Items) == 0 || len(ranges.Items[0].Status.Conditions) == 0 {
		return fmt.Errorf("range of services' addresses: %w", errNotYet)
	}
	return nil
}

func servicesOfAPIReady(ctx context.Context, client kubernetes.Interface) error {
	content, err := client.Discovery().RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").DoRaw(ctx)
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Status struct{ Conditions []metav1.Condition }
		}
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		if len(item.Status.Conditions) == 0 {
			return fmt.Errorf("services of the API: %w", errNotYet)
		}
	}
	return nil
}

// madeByControllers holds when each namespace has what comes with it, and roles that are put together of others have
// their rules.
func madeByControllers(ctx context.Context, client kubernetes.Interface) error {
	var failed []error
	for _, namespace := range systemNamespaces {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		failed = append(failed, err)
		_, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		failed = append(failed, err)
	}
	for _, name := range []string{"admin", "edit", "view"} {
		role, err := client.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(role.Rules) == 0 {
			err = fmt.Errorf("role %s: %w", name, errNotYet)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
