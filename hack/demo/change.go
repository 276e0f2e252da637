package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/sandbox"
)

func (s *story) changeValues(ctx context.Context) error {
	begin := time.Now()
	if err := s.setValues(ctx, s.first, "greeter", `{"message": "good night"}`); err != nil {
		return err
	}
	if err := s.awaitMessage(ctx, s.first, "good night"); err != nil {
		return err
	}
	s.progress.Printf("  %s: the Greeting says %q after %.2f s", s.first.Name, "good night", time.Since(begin).Seconds())

	begin = time.Now()
	if err := s.setValues(ctx, s.first, "web", `{"replicas": 3}`); err != nil {
		return err
	}
	if err := s.awaitReplicas(ctx, s.first, "web", "web", 3); err != nil {
		return err
	}
	s.progress.Printf("  %s: the web Deployment has 3 replicas after %.2f s", s.first.Name, time.Since(begin).Seconds())
	return nil
}

func (s *story) setValues(ctx context.Context, cluster sandbox.UserCluster, name, values string) error {
	installation := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace()}}
	seed := s.box.Client(cluster.Seed)
	if err := seed.Get(ctx, client.ObjectKeyFromObject(installation), installation); err != nil {
		return fmt.Errorf("reading installation %q: %w", name, err)
	}
	patch := client.MergeFrom(installation.DeepCopy())
	installation.Spec.Values = &runtime.RawExtension{Raw: []byte(values)}
	if err := seed.Patch(ctx, installation, patch); err != nil {
		return fmt.Errorf("changing the values of installation %q: %w", name, err)
	}
	return nil
}

// editByHand changes the image of one object and deletes another, as somebody with kubectl would.
func (s *story) editByHand(ctx context.Context) error {
	cluster := s.box.Client(s.last.Name)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "web"}}
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return fmt.Errorf("reading the web Deployment: %w", err)
	}
	const edited = "registry.example/mine:latest"
	applied := deployment.Spec.Template.Spec.Containers[0].Image
	deployment.Spec.Template.Spec.Containers[0].Image = edited
	begin := time.Now()
	if err := cluster.Update(ctx, deployment, client.FieldOwner("somebody")); err != nil {
		return fmt.Errorf("editing the web Deployment: %w", err)
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-page", Namespace: "web"}}
	if err := cluster.Delete(ctx, page); err != nil {
		return fmt.Errorf("deleting the web page: %w", err)
	}
	err := s.box.Await(ctx, s.last.Name, deployment, func(client.Object) error {
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image != applied {
			return fmt.Errorf("the image is %q, want %q", image, applied)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.progress.Printf("  %s: the image is %s again after %.1f s", s.last.Name, applied, time.Since(begin).Seconds())
	if err := s.box.Await(ctx, s.last.Name, page, func(client.Object) error { return nil }); err != nil {
		return err
	}
	s.progress.Printf("  %s: a deleted ConfigMap is there again after %.1f s", s.last.Name, time.Since(begin).Seconds())
	return nil
}
