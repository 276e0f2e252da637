package fleet

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-addons/trellis/test/binaries"
)

// TestClusters compares the options with running control planes, of both minors at once.
func TestClusters(t *testing.T) {
	f := ForTest(t,
		ClusterOptions{Name: "bare"},
		ClusterOptions{Name: "managed", Controllers: true},
		ClusterOptions{Name: "working", Release: binaries.Newer, Workloads: true})

	t.Run("each answers with its own version", func(t *testing.T) {
		for name, want := range map[string]string{"bare": "v" + binaries.Older, "working": "v" + binaries.Newer} {
			version, err := clientOf(t, f, name).Discovery().ServerVersion()
			if err != nil || version.GitVersion != want {
				t.Errorf("cluster %s answers with version %v, %v; want %s", name, version, err, want)
			}
		}
	})
	t.Run("clusters over one etcd don't see each other", func(t *testing.T) {
		createNamespace(t, clientOf(t, f, "bare"), "alone")
		_, err := clientOf(t, f, "managed").CoreV1().Namespaces().Get(t.Context(), "alone", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("reading another cluster's namespace gives %v, want not found", err)
		}
	})
	t.Run("a token of one cluster is none in another", func(t *testing.T) {
		config := *f.Cluster("bare").Config
		config.Host = f.Cluster("managed").Config.Host
		client, err := kubernetes.NewForConfig(&config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("listing with a foreign token gives %v, want unauthorized", err)
		}
	})
	t.Run("a namespace ends where controllers run", func(t *testing.T) {
		client := clientOf(t, f, "managed").CoreV1().Namespaces()
		createNamespace(t, clientOf(t, f, "managed"), "passing")
		if err := client.Delete(t.Context(), "passing", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the namespace to go", func(ctx context.Context) (bool, error) {
			_, err := client.Get(ctx, "passing", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	})
	t.Run("a Deployment gets ready", func(t *testing.T) { deploymentGetsReady(t, clientOf(t, f, "working")) })
	t.Run("a Job completes", func(t *testing.T) { jobCompletes(t, clientOf(t, f, "working")) })
	t.Run("a stopped API server comes back with what it had", func(t *testing.T) {
		client := clientOf(t, f, "bare")
		createNamespace(t, client, "kept")
		f.Cluster("bare").StopServer()
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
			t.Error("a stopped API server still answers")
		}
		if err := f.Cluster("bare").StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	})
}

func deploymentGetsReady(t *testing.T, client kubernetes.Interface) {
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("")},
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "3 ready replicas", func(ctx context.Context) (bool, error) {
		found, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && found.Status.AvailableReplicas == 3, err
	})
	if err := client.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods of a deleted Deployment to go", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(pods.Items) == 0, err
	})
}

func jobCompletes(t *testing.T, client kubernetes.Interface) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: podSpec(corev1.RestartPolicyNever)}},
	}
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Job to complete", func(ctx context.Context) (bool, error) {
		found, err := client.BatchV1().Jobs("default").Get(ctx, "once", metav1.GetOptions{})
		return err == nil && found.Status.Succeeded == 1 && found.Status.CompletionTime != nil, err
	})
}

func podSpec(restart corev1.RestartPolicy) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: restart, Containers: []corev1.Container{{Name: "main", Image: "registry.example/web:1"}},
	}
}

func clientOf(t *testing.T, f *Fleet, name string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(f.Cluster(name).Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func createNamespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollEvery, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var done bool
		done, last = holds(ctx)
		return done, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v (last: %v)", what, err, last)
	}
}

func TestInstallCRDs(t *testing.T) {
	config := ForTest(t, ClusterOptions{Name: "seed"}).Cluster("seed").Config
	for range 2 { // the second time updates
		if err := InstallCRDs(t.Context(), config, CRDs(t)...); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Discovery().ServerResourcesForGroupVersion("kubermatic.k8c.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, kind := range list.APIResources {
		served[kind.Name] = true
	}
	for _, want := range []string{"addoncatalogues", "addoninstallations", "clusters", "seeds"} {
		if !served[want] {
			t.Errorf("%s is not served; served: %v", want, served)
		}
	}
}
