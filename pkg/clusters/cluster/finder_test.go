package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// seedWithClusters is a client of the seed, which serves Clusters.
func seedWithClusters(t *testing.T) client.Client {
	t.Helper()
	config := fleet.Shared().Cluster("seed").Config
	expect.NoError(t, fleet.InstallCRDs(t.Context(), config, fleet.CRDs(t)...))
	return directClient(t, config)
}

func createCluster(t *testing.T, c client.Client, name, namespace string) *kkpv1.Cluster {
	t.Helper()
	kkp := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Create(t, c, kkp)
	kkp.Status.NamespaceName = namespace
	expect.UpdateStatus(t, c, kkp)
	return kkp
}

func TestFind(t *testing.T) {
	seed := seedWithClusters(t)
	cached, err := cache.New(fleet.Shared().Cluster("seed").Config, cache.Options{Scheme: testScheme(t)})
	expect.NoError(t, err)
	expect.NoError(t, IndexNamespaceName(t.Context(), cached))
	go func() { _ = cached.Start(t.Context()) }()
	for name, namespace := range map[string]string{"one": "cluster-one", "two": "cluster-both", "three": "cluster-both"} {
		createCluster(t, seed, name, namespace)
	}
	finder := NewKKPFinder(cached, seed, nil)
	expect.Eventually(t, expect.Patience, func() error {
		found, err := finder.Find(t.Context(), target.Ref{Namespace: "cluster-one"})
		if err == nil && found.Name != "one" {
			t.Fatalf("found %q", found.Name)
		}
		return err
	})
	if found, err := finder.Find(t.Context(), target.Ref{Namespace: "cluster-one", Name: "one"}); err != nil || found.Name != "one" {
		t.Errorf("by its name: found %q, %v", found.Name, err)
	}
	for _, test := range []struct {
		why, namespace, name string
		want                 []string
	}{
		{"nobody has it", "cluster-none", "", nil},
		{"two claim it, and neither is believed", "cluster-both", "", []string{"three", "two"}},
		{"nor is one that is asked for by its name", "cluster-both", "two", []string{"three", "two"}},
		{"no Cluster has the empty namespace", "", "", nil},
		{"another Cluster has it", "cluster-one", "two", nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			expect.Eventually(t, expect.Patience, func() error {
				_, err := finder.Find(t.Context(), target.Ref{Namespace: test.namespace, Name: test.name})
				var unknown *UnknownError
				if !errors.As(err, &unknown) {
					return errors.New("not an UnknownError yet")
				}
				if reported := unknown.Error(); len(test.want) == 0 && !strings.Contains(reported, "check the namespace of the installation") {
					t.Errorf("no way out: %s", reported)
				}
				slices.Sort(unknown.Clusters)
				if diff := cmp.Diff(test.want, unknown.Clusters); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
		})
	}
}

func TestGone(t *testing.T) {
	seed := seedWithClusters(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	finder := NewKKPFinder(seed, seed, nil)
	finder.clock = clock
	kkp := createCluster(t, seed, "going", "cluster-going")
	look := func(why string, want bool) {
		t.Helper()
		gone, err := finder.Gone(t.Context(), Describe(kkp).Ref)
		if err != nil || gone != want {
			t.Fatalf("%s: got %v and error %v, want %v", why, gone, err, want)
		}
	}
	look("it is there", false)
	expect.Delete(t, seed, kkp)
	look("one look is not enough", false)
	clock.SetTime(clock.Now().Add(GoneInterval - time.Second))
	look("nor are two that are close", false)
	clock.SetTime(clock.Now().Add(time.Second))
	look("two looks in time", true)

	again := createCluster(t, seed, "going", "cluster-going")
	look("a Cluster of another UID is not the one", true)
	finder = NewKKPFinder(seed, seed, nil)
	finder.clock = clock
	gone, err := finder.Gone(t.Context(), Describe(again).Ref)
	if err != nil || gone {
		t.Fatalf("the new one is there: got %v, %v", gone, err)
	}
}

func TestGoneForgetsTheFirstLook(t *testing.T) {
	seed := seedWithClusters(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	finder := NewKKPFinder(seed, seed, nil)
	finder.clock = clock
	identity := target.Ref{Name: "flapping", UID: "u"}
	if gone, err := finder.Gone(t.Context(), identity); gone || err != nil {
		t.Fatalf("first look: got %v, %v", gone, err)
	}
	finder.uncached = directClient(t, forbidden())
	if _, err := finder.Gone(t.Context(), identity); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want 403", err)
	}
	finder.uncached = seed
	clock.SetTime(clock.Now().Add(GoneInterval))
	if gone, err := finder.Gone(t.Context(), identity); gone || err != nil {
		t.Fatalf("a look after a failed one is a first look: got %v, %v", gone, err)
	}
}

// forbidden is a user without any right on the seed.
func forbidden() *rest.Config {
	config := rest.CopyConfig(fleet.Shared().Cluster("seed").Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	return config
}

func TestGoneNeedsTheKind(t *testing.T) {
	seed := seedWithClusters(t)
	// The client's mapper knows the kind, and the API server it asks does not serve it: the answer
	// is 404.
	config := rest.CopyConfig(fleet.Shared().Cluster("user").Config)
	without, err := client.New(config, client.Options{Scheme: testScheme(t), Mapper: seed.RESTMapper()})
	expect.NoError(t, err)
	clock := testingclock.NewFakePassiveClock(time.Now())
	finder := NewKKPFinder(seed, without, nil)
	finder.clock = clock
	for range 3 {
		gone, err := finder.Gone(t.Context(), target.Ref{Name: "any", UID: "u"})
		if gone || err == nil {
			t.Fatalf("got %v, %v; without the CRD nothing is gone", gone, err)
		}
		clock.SetTime(clock.Now().Add(GoneInterval))
	}
}

func TestAnnotate(t *testing.T) {
	seed := seedWithClusters(t)
	finder := NewKKPFinder(seed, seed, seed)
	kkp := createCluster(t, seed, "annotated", "cluster-annotated")
	annotate := func(change func(annotations map[string]string) error) error {
		return finder.Annotate(t.Context(), Describe(kkp).Ref, change)
	}
	version := func() string {
		t.Helper()
		expect.Read(t, seed, kkp)
		return kkp.ResourceVersion
	}
	set := func(annotations map[string]string) error { annotations["mark"] = "1"; return nil }
	if err := annotate(set); err != nil || version() == "" || kkp.Annotations["mark"] != "1" {
		t.Fatalf("got error %v, annotations %v", err, kkp.Annotations)
	}
	before := version()
	if err := annotate(set); err != nil || version() != before {
		t.Errorf("the same again: got error %v, written %t", err, version() != before)
	}
	refused := errors.New("refused")
	err := annotate(func(annotations map[string]string) error { delete(annotations, "mark"); return refused })
	if !errors.Is(err, refused) || version() != before {
		t.Errorf("a change that fails: got error %v, written %t", err, version() != before)
	}
	err = annotate(func(annotations map[string]string) error {
		annotations["mark"] = "2"
		faster := kkp.DeepCopy()
		faster.Annotations = map[string]string{"mark": "3"}
		return seed.Update(t.Context(), faster)
	})
	if version(); !apierrors.IsConflict(err) || kkp.Annotations["mark"] != "3" {
		t.Errorf("somebody else was faster: got error %v, annotations %v", err, kkp.Annotations)
	}
	err = finder.Annotate(t.Context(), target.Ref{Name: kkp.Name, UID: "another"}, set)
	if !apierrors.IsNotFound(err) {
		t.Errorf("another Cluster of that name: got error %v", err)
	}
}
