package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// holderVariable makes the test binary a holder of a cluster of a pool, as a test package is. Its value says what it
// does.
const holderVariable = "TRELLIS_TEST_FLEET_HOLDER"

const (
	fills  = "fills"  // leaves objects
	writes = "writes" // has a ConfigMap written again and again, also after its tests
)

// held is what a holder reports of its cluster.
type held struct {
	Leased bool
	Host   string
}

// hold asks for cluster bare, reports, and ends when its input does, as Main does at the end of the tests.
func hold(how string) int {
	f, end, err := startGuarded(context.Background(), []ClusterOptions{{Name: "bare"}})
	if err == nil {
		switch how {
		case fills:
			err = fill(context.Background(), f.Cluster("bare").Config)
		case writes:
			tidyDeadline = time.Second
			err = keepWriting(f.Cluster("bare").Config)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, end()))
		return 1
	}
	bare := f.Cluster("bare")
	_ = json.NewEncoder(os.Stdout).Encode(held{Leased: bare.leased, Host: bare.Config.Host})
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var things = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}

const thingsDefinition = `
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}`

const refusingWebhook = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
	"metadata":{"name":"refusing"},"webhooks":[{"name":"refusing.example.com","admissionReviewVersions":["v1"],
	"sideEffects":"None","clientConfig":{"url":"https://127.0.0.1:1/"},"failurePolicy":"Fail",
	"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["*"],"resources":["configmaps"]}]}]}`

// fill leaves one of each: a namespace with content, a kind with an object that has a finalizer, what is
// cluster-wide, an object that was there with another value, one that is gone, and a webhook that refuses.
func fill(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(thingsDefinition), crd); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := InstallDefinitions(ctx, config, crd); err != nil {
		return err
	}
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
	thing.SetName("left")
	thing.SetFinalizers([]string{"example.com/held"})
	roles, webhook := client.RbacV1().ClusterRoles(), &unstructured.Unstructured{}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	role.Labels = map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get"},
	}}
	labels := []byte(`{"metadata":{"labels":{"left":"true"}}}`)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	return errors.Join(
		json.Unmarshal([]byte(refusingWebhook), &webhook.Object),
		second(client.CoreV1().ConfigMaps("default").Create(ctx, settings, metav1.CreateOptions{})),
		second(objects.Resource(things).Namespace("left").Create(ctx, thing, metav1.CreateOptions{})),
		second(roles.Create(ctx, role, metav1.CreateOptions{})),
		second(client.CoreV1().Namespaces().Patch(ctx, "default", types.MergePatchType, labels, metav1.PatchOptions{})),
		roles.Delete(ctx, "system:basic-user", metav1.DeleteOptions{}),
		client.CoreV1().Namespaces().Delete(ctx, "left", metav1.DeleteOptions{}), // it stays, for the sake of the finalizer
		second(objects.Resource(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
		}).Create(ctx, webhook, metav1.CreateOptions{})),
	)
}

func second[T any](_ T, err error) error { return err }

func keepWriting(config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	all, settings := client.CoreV1().ConfigMaps("default"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "again"}}
	go func() {
		for {
			_, _ = all.Create(context.Background(), settings, metav1.CreateOptions{})
		}
	}()
	return nil
}

// holder is a process that asked a pool for cluster bare.
type holder struct {
	held
	command    *exec.Cmd
	input      io.Closer
	complaints bytes.Buffer
}

func startHolder(t *testing.T, pool *Pool, how string) *holder {
	t.Helper()
	h := &holder{command: exec.Command(os.Args[0])}
	h.command.Env = append(os.Environ(), holderVariable+"="+how, PoolVariable+"="+pool.Folder())
	h.command.Stderr = &h.complaints
	var err error
	if h.input, err = h.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := h.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.command.Process.Kill() })
	if err := json.NewDecoder(output).Decode(&h.held); err != nil {
		_ = h.command.Wait()
		t.Fatalf("the holder reports nothing: %v\n%s", err, h.complaints.String())
	}
	return h
}

func (h *holder) expectLeased(t *testing.T, want bool) {
	t.Helper()
	if h.Leased != want {
		t.Errorf("the holder's cluster is leased: %v, want %v", h.Leased, want)
	}
}

// end has the holder end, and gives its exit code.
func (h *holder) end(t *testing.T) int {
	t.Helper()
	if err := h.input.Close(); err != nil {
		t.Fatal(err)
	}
	_ = h.command.Wait()
	return h.command.ProcessState.ExitCode()
}

func (h *holder) expectEnd(t *testing.T) {
	t.Helper()
	if code := h.end(t); code != 0 {
		t.Errorf("the holder ended with %d:\n%s", code, h.complaints.String())
	}
}

// TestPool holds that processes share the clusters of a pool as if each had started its own.
func TestPool(t *testing.T) {
	pool, err := StartPool(t.Context(), PoolOptions{Clusters: []ClusterOptions{{Name: "one"}}, Most: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.fleet.Stop)

	// Cluster one is there, another one is started for who asks for controllers, and the third asks too much.
	managed := ClusterOptions{Name: "managed", Controllers: true}
	t.Run("what a holder left where controllers run is gone", func(t *testing.T) {
		f, err := startBeside(t.Context(), Options{Clusters: []ClusterOptions{managed}}, pool.Folder())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Stop()
		if err := fill(t.Context(), f.Cluster("managed").Config); err != nil {
			t.Fatal(err)
		}
		if err := f.end(); err != nil {
			t.Fatal(err)
		}
		expectNothingLeft(t, pool, managed)
	})
	t.Run("two at once have two clusters", func(t *testing.T) {
		first := startHolder(t, pool, "waits")
		second := startHolder(t, pool, "waits")
		first.expectLeased(t, true)
		second.expectLeased(t, false)
		if first.Host == second.Host {
			t.Errorf("both have %s", first.Host)
		}
		first.expectEnd(t)
		third := startHolder(t, pool, "waits")
		third.expectLeased(t, true)
		third.expectEnd(t)
		second.expectEnd(t)
	})
	t.Run("what a holder left is gone", func(t *testing.T) {
		filling := startHolder(t, pool, fills)
		filling.expectLeased(t, true)
		filling.expectEnd(t)
		expectNothingLeft(t, pool, ClusterOptions{Name: "bare"})
	})
	t.Run("what a killed holder left is gone", func(t *testing.T) {
		filling := startHolder(t, pool, fills)
		filling.expectLeased(t, true)
		if err := filling.command.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = filling.command.Wait()
		expectNothingLeft(t, pool, ClusterOptions{Name: "bare"})
	})
	t.Run("a server that others use later can't be stopped", func(t *testing.T) {
		f, err := startBeside(t.Context(), Options{Clusters: []ClusterOptions{{Name: "bare"}}}, pool.Folder())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Stop()
		defer func() {
			if refused := recover(); !strings.Contains(fmt.Sprint(refused), "set Own") {
				t.Errorf("stopping a leased server panics with %v, want what to do", refused)
			}
		}()
		f.Cluster("bare").StopServer()
	})
	t.Run("who leaves what can't be removed fails", func(t *testing.T) {
		writing := startHolder(t, pool, writes)
		writing.expectLeased(t, true)
		code, complaints := writing.end(t), writing.complaints.String()
		if code != 1 || !strings.Contains(complaints, "configmaps/default/again is new") {
			t.Errorf("the holder ended with %d, want 1 and what it left:\n%s", code, complaints)
		}
		next := startHolder(t, pool, "waits")
		next.expectLeased(t, false)
		next.expectEnd(t)
		if err := pool.Stop(); err == nil || !strings.Contains(err.Error(), `cluster "one" of the pool was lent no more`) {
			t.Errorf("the pool ends with %v, want that a cluster was lent no more", err)
		}
	})
}

// expectNothingLeft leases a cluster and holds it against one that was just started.
func expectNothingLeft(t *testing.T, pool *Pool, asked ClusterOptions) {
	t.Helper()
	f, err := startBeside(t.Context(), Options{Clusters: []ClusterOptions{asked}}, pool.Folder())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	if !f.Cluster(asked.Name).leased {
		t.Fatal("the cluster is not leased")
	}
	client := clientOf(t, f, asked.Name)
	if _, err := client.Discovery().ServerResourcesForGroupVersion("example.com/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("asking for the kinds of before gives %v, want not found", err)
	}
	if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), "system:basic-user", metav1.GetOptions{}); err != nil {
		t.Errorf("a role that was removed: %v", err)
	}
	standard, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil || standard.Labels["left"] != "" {
		t.Errorf("namespace default has labels %v, %v", standard.Labels, err)
	}
	if err := fill(t.Context(), f.Cluster(asked.Name).Config); err != nil {
		t.Errorf("doing as the holder before: %v", err)
	}
	if err := f.end(); err != nil {
		t.Error(err)
	}
}

// TestServes holds which cluster of a pool serves whom.
func TestServes(t *testing.T) {
	for why, row := range map[string]struct {
		has, asked ClusterOptions
		want       bool
	}{
		"the same":                          {ClusterOptions{}, ClusterOptions{Name: "other"}, true},
		"the same by name":                  {ClusterOptions{}, ClusterOptions{Release: defaultRelease}, true},
		"another release":                   {ClusterOptions{Release: "1.2"}, ClusterOptions{}, false},
		"controllers unasked":               {ClusterOptions{Controllers: true}, ClusterOptions{}, false},
		"no controllers":                    {ClusterOptions{}, ClusterOptions{Controllers: true}, false},
		"workloads unasked":                 {ClusterOptions{Workloads: true}, ClusterOptions{Controllers: true}, false},
		"an authority that nobody asks for": {ClusterOptions{Certificates: true}, ClusterOptions{Controllers: true}, true},
		"no authority":                      {ClusterOptions{Controllers: true}, ClusterOptions{Certificates: true}, false},
	} {
		t.Run(why, func(t *testing.T) {
			if got := row.has.complete().serves(row.asked.complete()); got != row.want {
				t.Errorf("serves: %v, want %v", got, row.want)
			}
		})
	}
}

// TestWhoNeedsItsOwnLeasesNone holds that what a pool never has is not asked of it: this one does not answer.
func TestWhoNeedsItsOwnLeasesNone(t *testing.T) {
	for why, asked := range map[string]ClusterOptions{
		"own": {Own: true}, "free owners": {FreeOwners: true}, "audit": {Audit: []string{"admin"}},
	} {
		if taken, err := takeAny(t.Context(), t.TempDir(), asked.complete()); taken != nil || !errors.Is(err, errNone) {
			t.Errorf("%s: leased %v, %v", why, taken, err)
		}
	}
	if _, err := takeAny(t.Context(), t.TempDir(), ClusterOptions{}.complete()); err == nil || errors.Is(err, errNone) {
		t.Error("a pool that is gone lends a cluster")
	}
}
