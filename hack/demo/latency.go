package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// rounds of each measurement; the median counts.
const rounds = 5

// limit of both medians.
const limit = 2 * time.Second

// measureCatalogue adds a version of an add-on to a catalogue and sees, by watches opened before, when all four clusters
// are offered it.
func (s *story) measureCatalogue(ctx context.Context) error {
	probe := catalogue("probe", sandbox.Namespace)
	if err := s.publishProbe(ctx, probe); err != nil {
		return err
	}
	return s.measure("from a catalogue edit to `available` in all four clusters", func(round int) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		version := fmt.Sprintf("1.0.%d", round+1)
		seen, err := s.watchOffers(ctx, "probe "+version)
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := s.addVersion(ctx, probe, version); err != nil {
			return 0, err
		}
		for range sandbox.UserClusters() {
			if err := <-seen; err != nil {
				return 0, err
			}
		}
		return time.Since(begin), nil
	})
}

// measureInstallation creates installations in turn in all clusters and sees when the ConfigMap of each is there.
func (s *story) measureInstallation(ctx context.Context) error {
	return s.measure("from an AddonInstallation to its first object", func(round int) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		cluster := sandbox.UserClusters()[round%len(sandbox.UserClusters())]
		name := fmt.Sprintf("probe-%d", round)
		events, err := s.box.Client(cluster.Name).Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"),
			client.MatchingFields{"metadata.name": name})
		if err != nil {
			return 0, fmt.Errorf("watching ConfigMaps in %s: %w", cluster.Name, err)
		}
		defer events.Stop()
		begin := time.Now()
		if err := s.box.Client(cluster.Seed).Create(ctx, probeInstallation(name, cluster)); err != nil {
			return 0, fmt.Errorf("creating an installation in %s: %w", cluster.Name, err)
		}
		for event := range events.ResultChan() {
			if event.Type == watch.Added {
				return time.Since(begin), nil
			}
		}
		return 0, fmt.Errorf("%s got no ConfigMap %q: %w", cluster.Name, name, ctx.Err())
	})
}

// measure runs the rounds and keeps their median.
func (s *story) measure(name string, run func(round int) (time.Duration, error)) error {
	var times []time.Duration
	for round := range rounds {
		took, err := run(round)
		if err != nil {
			return err
		}
		times = append(times, took)
		s.progress.Printf("  %s: %d ms", name, took.Milliseconds())
	}
	slices.Sort(times)
	s.bars = append(s.bars, bar{name: name, took: times[rounds/2], limit: limit})
	s.progress.Printf("  %s: median %d ms, limit %d ms", name, times[rounds/2].Milliseconds(), limit.Milliseconds())
	return nil
}

// publishProbe makes an add-on of one ConfigMap and a catalogue with it.
func (s *story) publishProbe(ctx context.Context, probe *kubermaticv1.AddonCatalogue) error {
	_, err := s.box.Sources.Commit("probe", map[string]string{
		"configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Variables.name }}\n",
	})
	if err != nil {
		return err
	}
	probe.Spec.Addons = []kubermaticv1.Addon{{Name: "probe", Versions: []kubermaticv1.AddonVersion{s.probeVersion("1.0.0")}}}
	if err := s.box.Client(sandbox.Master).Create(ctx, probe); err != nil {
		return fmt.Errorf("creating a catalogue: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	seen, err := s.watchOffers(ctx, "probe 1.0.0")
	if err != nil {
		return err
	}
	for range sandbox.UserClusters() {
		if err := <-seen; err != nil {
			return err
		}
	}
	return nil
}

func (s *story) probeVersion(version string) kubermaticv1.AddonVersion {
	return kubermaticv1.AddonVersion{
		Version:  version,
		Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate},
		Source: &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
			Remote:      kubermaticv1.GitRemote(s.box.Sources.GitURL + "/probe.git"),
			CASecretRef: &kubermaticv1.LocalReference{Name: sandbox.CASecret},
		}},
	}
}

func (s *story) addVersion(ctx context.Context, probe *kubermaticv1.AddonCatalogue, version string) error {
	patch := client.MergeFrom(probe.DeepCopy())
	addon := &probe.Spec.Addons[0]
	addon.Versions = append(addon.Versions, s.probeVersion(version))
	if err := s.box.Client(sandbox.Master).Patch(ctx, probe, patch); err != nil {
		return fmt.Errorf("editing a catalogue: %w", err)
	}
	return nil
}

// watchOffers opens a watch per cluster and then sends once for each: nil when it is offered that version.
func (s *story) watchOffers(ctx context.Context, version string) (<-chan error, error) {
	seen := make(chan error, len(sandbox.UserClusters()))
	for _, cluster := range sandbox.UserClusters() {
		events, err := s.box.Client(cluster.Seed).Watch(ctx, &kubermaticv1.AddonCatalogueList{},
			client.InNamespace(cluster.Namespace()))
		if err != nil {
			return nil, fmt.Errorf("watching what is available in %s: %w", cluster.Name, err)
		}
		go func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				available, isCatalogue := event.Object.(*kubermaticv1.AddonCatalogue)
				if isCatalogue && slices.Contains(sandbox.Offered(available), version) {
					seen <- nil
					return
				}
			}
			seen <- fmt.Errorf("%s is not offered %s: %w", cluster.Name, version, ctx.Err())
		}()
	}
	return seen, nil
}

func probeInstallation(name string, cluster sandbox.UserCluster) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace()},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: "probe"}, TargetNamespace: "default",
			Values: &runtime.RawExtension{Raw: []byte(`{"name": "` + name + `"}`)},
		},
	}
}
