package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// installGreeter installs the go-template add-on in two clusters, after noting what they hold. Each gets the newest version
// that fits its Kubernetes.
func (s *story) installGreeter(ctx context.Context) error {
	if err := s.noteBefore(ctx, s.both()...); err != nil {
		return err
	}
	return each(ctx, s.both(), func(ctx context.Context, cluster sandbox.UserCluster) error {
		version := "1.1.0"
		if cluster.Release == binaries.Older {
			version = "1.0.0"
		}
		installation, err := s.install(ctx, cluster, "installations/greeter.yaml")
		if err != nil {
			return err
		}
		if installation.Status.Version != version {
			return fmt.Errorf("%s got version %q, want %q", cluster.Name, installation.Status.Version, version)
		}
		if err := s.awaitMessage(ctx, cluster, "good day"); err != nil {
			return err
		}
		if err := s.awaitReplicas(ctx, cluster, "greeter", "greeter", 1); err != nil {
			return err
		}
		s.progress.Printf("  %s: greeter %s, its Greeting says %q", cluster.Name, installation.Status.Version, "good day")
		return nil
	})
}

func (s *story) installWeb(ctx context.Context) error {
	return each(ctx, s.both(), func(ctx context.Context, cluster sandbox.UserCluster) error {
		if _, err := s.install(ctx, cluster, "installations/web.yaml"); err != nil {
			return err
		}
		if err := s.awaitReplicas(ctx, cluster, "web", "web", 2); err != nil {
			return err
		}
		listed, err := s.helmList(ctx, cluster)
		if err != nil {
			return err
		}
		want := release{Name: "web", Namespace: "web", Status: "deployed", Chart: "web-1.0.0"}
		if len(listed) != 1 || listed[0] != want {
			return fmt.Errorf("helm list in %s shows %+v, want %+v", cluster.Name, listed, want)
		}
		s.progress.Printf("  %s: helm list shows %s, %s, in namespace %s", cluster.Name, want.Chart, want.Status, want.Namespace)
		return nil
	})
}

type release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Status    string `json:"status"`
	Chart     string `json:"chart"`
}

func (s *story) helmList(ctx context.Context, cluster sandbox.UserCluster) ([]release, error) {
	command := exec.CommandContext(ctx, s.box.Program("helm"), "--kubeconfig", s.box.Kubeconfig(cluster.Name),
		"list", "--all-namespaces", "--output", "json")
	command.Env = []string{"HOME=" + s.box.Folder}
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("helm list in %s: %w", cluster.Name, err)
	}
	var listed []release
	if err := json.Unmarshal(output, &listed); err != nil {
		return nil, fmt.Errorf("reading what helm list says: %w", err)
	}
	return listed, nil
}

// install creates an installation of deploy/sandbox and follows it, from before its creation, until it is Ready. A failed
// attempt on the way is an error.
func (s *story) install(
	ctx context.Context, cluster sandbox.UserCluster, manifest string,
) (*kubermaticv1.AddonInstallation, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	installation := &kubermaticv1.AddonInstallation{}
	if err := s.box.Manifest(manifest, installation); err != nil {
		return nil, err
	}
	installation.Namespace = cluster.Namespace()
	name := installation.Name
	events, err := s.box.Client(cluster.Seed).Watch(ctx, &kubermaticv1.AddonInstallationList{},
		client.InNamespace(cluster.Namespace()), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, fmt.Errorf("watching installations in %s: %w", cluster.Name, err)
	}
	defer events.Stop()
	begin := time.Now()
	if err := s.box.Client(cluster.Seed).Create(ctx, installation); err != nil {
		return nil, fmt.Errorf("creating installation %q in %s: %w", name, cluster.Name, err)
	}
	var last error
	for event := range events.ResultChan() {
		seen, isInstallation := event.Object.(*kubermaticv1.AddonInstallation)
		if !isInstallation {
			continue
		}
		if seen.Status.Failures > 0 {
			return nil, fmt.Errorf("%s in %s took more than one attempt: %w", name, cluster.Name,
				expect.Condition(seen, kubermaticv1.ConditionReady, "True", ""))
		}
		if last = expect.Condition(seen, kubermaticv1.ConditionReady, "True", ""); last == nil {
			s.progress.Printf("  %s: %s is Ready after %.2f s", cluster.Name, name, time.Since(begin).Seconds())
			return seen, nil
		}
	}
	return nil, fmt.Errorf("%s in %s is not Ready: %w", name, cluster.Name, last)
}

func (s *story) awaitMessage(ctx context.Context, cluster sandbox.UserCluster, want string) error {
	greeting := &unstructured.Unstructured{}
	greeting.SetAPIVersion("samples.example.com/v1")
	greeting.SetKind("Greeting")
	greeting.SetNamespace("greeter")
	greeting.SetName("hello")
	return s.box.Await(ctx, cluster.Name, greeting, func(client.Object) error {
		got, _, err := unstructured.NestedString(greeting.Object, "spec", "message")
		if err == nil && got != want {
			err = fmt.Errorf("spec.message is %q, want %q", got, want)
		}
		return err
	})
}

func (s *story) awaitReplicas(ctx context.Context, cluster sandbox.UserCluster, namespace, name string, want int32) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	return s.box.Await(ctx, cluster.Name, deployment, func(client.Object) error {
		if *deployment.Spec.Replicas != want || deployment.Status.AvailableReplicas != want {
			return fmt.Errorf("%d replicas wanted, %d available; want %d of both",
				*deployment.Spec.Replicas, deployment.Status.AvailableReplicas, want)
		}
		return nil
	})
}
