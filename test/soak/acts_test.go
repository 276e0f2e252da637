package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// The bars of every act.
const (
	// slower is how many times as long as in quiet runs others may take: the median of all turns.
	slower = 1.2
	// offeredTexts is what display names and descriptions take in what a cluster is offered, besides names.
	offeredTexts = 32 << 10
	// valuesBudget is what values, labels and annotations of all installations of a cluster may have together.
	valuesBudget = 16 << 20
)

// untilRest is how long managers may hold more than before once an act is over: at rest, Go collects garbage every two minutes, and pools
// go with the second time.
const untilRest = 5 * time.Minute

// enough installations of a run make a p99 that is more than the slowest of a few: bars are held with as many, else figures are only told.
const enough = 100

// perform has every act of the kit in turns with quiet runs.
func (s *siege) perform(b *testing.B) {
	b.Helper()
	acts := slices.DeleteFunc(hostile.Acts(), func(act hostile.Act) bool { return !isChosen(act.Name, allActs) })
	if len(acts) == 0 {
		return
	}
	held, merged := s.resting(b), s.merged(b)
	for _, act := range acts {
		pids := s.pids()
		var quiet, under []measured
		for turn := range *turns {
			for _, isQuiet := range []bool{turn%2 == 0, turn%2 != 0} {
				if isQuiet {
					quiet = append(quiet, s.run(b, attack{name: "quiet"}))
					continue
				}
				under = append(under, s.run(b, attack{name: act.Name, act: &act}))
				s.clear(b, act, merged)
			}
		}
		s.evaluate(b, act, quiet, under)
		for _, manager := range s.managers() {
			before := held[manager]
			if act.Records > 0 {
				before.heap += kept.DefaultBytes // of renderings, which stay until others need the room
				held[manager] = before
			}
			s.expectRest(b, manager, before)
		}
		if now := s.pids(); !slices.Equal(pids, now) {
			b.Errorf("act %s: a manager died: the processes were %v and are %v", act.Name, pids, now)
		}
	}
}

// act goes on until the context is over; a step that began comes to its end.
func (s *siege) act(ctx context.Context, act hostile.Act) {
	whole := context.WithoutCancel(ctx)
	for act.Begin(whole, s.by); ctx.Err() == nil; s.steps++ {
		act.Step(whole, s.by, s.steps)
		pause := time.NewTimer(act.Pause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// evaluate holds the runs of an act to the bars.
func (s *siege) evaluate(b *testing.B, act hostile.Act, quiet, under []measured) {
	b.Helper()
	var applied, offered []float64
	var most stored
	var reported hostile.Answers
	failed, fewest := 0, enough
	for turn, one := range under {
		b.Logf("%-16s %s", act.Name, one.against(quiet[turn]))
		b.Logf("%-16s %s; %s", "", one.answers, one.held)
		applied = append(applied, ratio(percentile(one.applied(), 99), percentile(quiet[turn].applied(), 99)))
		offered = append(offered, ratio(percentile(one.offered, 50), percentile(quiet[turn].offered, 50)))
		most = most.orMore(one.held)
		reported.Taken, reported.Refused = reported.Taken+one.answers.Taken, reported.Refused+one.answers.Refused
		failed, fewest = failed+one.failed, min(fewest, len(one.applied()), len(quiet[turn].applied()))
	}
	isLong := fewest >= enough // a budget takes a while to fill
	isOther := reported.Refused > 0 && !act.IsRefused || isLong && (reported.Refused == 0 && act.IsRefused || most.records < act.Records)
	if reported.Taken == 0 || isOther {
		b.Errorf("act %s is not what it says: %d writes were taken, %d refused, and %d KiB of records made",
			act.Name, reported.Taken, reported.Refused, most.records>>10)
	}
	unit := func(name string) string { return act.Name + "-" + name }
	b.Logf("%-16s against the quiet run of each turn: applied (p99) %.2f times, another catalogue (p50) %.2f times", act.Name, applied, offered)
	bar.Exactly(b, unit("unserved"), float64(failed), 0)
	for name, figure := range map[string]float64{"applied-p99-ratio": median(applied), "offered-p50-ratio": median(offered)} {
		if fewest < enough {
			bar.None(b, unit(name), figure)
			continue
		}
		bar.AtMost(b, unit(name), figure, slower)
	}
	for name, one := range map[string]struct{ bytes, most int }{
		"records-MiB": {most.records, revision.Budget}, "values-MiB": {most.values, valuesBudget},
		"available-MiB": {most.available, catalogue.OfferedLimit + offeredTexts},
	} {
		bar.AtMost(b, unit(name), float64(one.bytes)/(1<<20), float64(one.most)/(1<<20))
	}
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// clear removes what an act wrote, as whoever keeps the platform does, and waits until nothing of it is left and the master is up to date.
func (s *siege) clear(b *testing.B, act hostile.Act, merged map[string][]string) {
	b.Helper()
	begin := time.Now()
	seed, master, label := s.Client(s.attacker.Seed), s.Client(sandbox.Master), client.MatchingLabels{hostile.LabelAct: act.Name}
	home, catalogues := client.InNamespace(s.attacker.Namespace()), client.InNamespace(sandbox.Namespace)
	s.must(b, seed.DeleteAllOf(b.Context(), &kubermaticv1.AddonInstallation{}, home, label))
	s.must(b, master.DeleteAllOf(b.Context(), &kubermaticv1.AddonCatalogue{}, catalogues, label))
	expect.Eventually(b, patience, func() error {
		left := metadata("AddonInstallation")
		if err := seed.List(b.Context(), left, home, label); err != nil || len(left.Items) > 0 {
			return errors.Join(err, fmt.Errorf("%d installations of act %s are left", len(left.Items), act.Name))
		}
		for seed, names := range s.merged(b) {
			if !slices.Equal(names, merged[seed]) {
				return fmt.Errorf("%s has merged catalogues %q, and had %q before act %s", seed, names, merged[seed], act.Name)
			}
		}
		return nil
	})
	if _, err := s.edit(b.Context()); err != nil {
		b.Error(err)
	}
	b.Logf("%-16s is removed after %s", act.Name, time.Since(begin).Round(time.Second/10))
}

// metadata is an empty list of objects of a kind of ours.
func metadata(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kubermaticv1.GroupVersion.WithKind(kind + "List"))
	return list
}

// merged are the names of the merged catalogues of each seed.
func (s *siege) merged(b *testing.B) map[string][]string {
	b.Helper()
	found := map[string][]string{}
	for _, seed := range sandbox.Seeds() {
		list := metadata("AddonCatalogue")
		s.must(b, s.Client(seed).List(b.Context(), list, client.InNamespace(sandbox.CatalogueNamespace)))
		for i := range list.Items {
			found[seed] = append(found[seed], list.Items[i].Name)
		}
	}
	return found
}

// expectRest waits until a manager holds hardly more than before.
func (s *siege) expectRest(b *testing.B, manager string, before usage) {
	b.Helper()
	for begin := time.Now(); ; s.pause(b, time.Second) {
		now := s.usage(b, manager)
		grown := before.growth(now)
		if len(grown) == 0 {
			b.Logf("%s is at rest after %s: %s; before: %s", manager, time.Since(begin).Round(time.Second), now, before)
			return
		}
		if time.Since(begin) > untilRest {
			b.Errorf("%s, %s after the act: %q; it was %s, and is %s", manager, untilRest, grown, before, now)
			return
		}
	}
}

// admit gives a user of the role's own name that role in a namespace, and waits until the API server follows.
func (s *siege) admit(b *testing.B, where, namespace, role string) client.Client {
	b.Helper()
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "attacker"}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user.Name}, Subjects: []rbacv1.Subject{user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	s.must(b, s.Client(where).Create(b.Context(), binding))
	resource := "addoncatalogues"
	if where != sandbox.Master {
		resource = "addoninstallations"
	}
	expect.Eventually(b, expect.Patience, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Name, Groups: []string{"system:authenticated"}, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: kubermaticv1.GroupVersion.Group, Resource: resource, Verb: "create", Namespace: namespace,
			},
		}}
		if err := s.Client(where).Create(b.Context(), review); err != nil || !review.Status.Allowed {
			return errors.Join(err, fmt.Errorf("role %s does not let %s create %s on %s", role, user.Name, resource, where))
		}
		return nil
	})
	config := rest.CopyConfig(s.Server(where).Config)
	config.Impersonate.UserName, config.WarningHandler = user.Name, rest.NoWarnings{}
	made, err := client.New(config, client.Options{Scheme: sandbox.Scheme()})
	s.must(b, err)
	return made
}

// othersCatalogue is one of an author who does no harm, with one version whose name is the number of edits so far.
func (s *siege) othersCatalogue() *kubermaticv1.AddonCatalogue {
	return &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: "harmless"},
		Spec: kubermaticv1.AddonCatalogueSpec{Type: kubermaticv1.CatalogueCustom, Addons: []kubermaticv1.Addon{{
			Name: "harmless", Versions: []kubermaticv1.AddonVersion{{
				Version: fmt.Sprintf("1.0.%d", s.edits), Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate},
				Source: &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
					Remote: kubermaticv1.GitRemote(s.Sources.GitURL + "/samples.git"), Path: "greeter/1.0.0",
					CASecretRef: &kubermaticv1.LocalReference{Name: sandbox.CASecret},
				}},
			}},
		}}},
	}
}

// edit changes the harmless catalogue, waits until a cluster of each seed is offered what it has now, and tells how long that took.
func (s *siege) edit(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	before := s.othersCatalogue()
	s.edits++
	after, begin := s.othersCatalogue(), time.Now()
	if err := s.Client(sandbox.Master).Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("editing the catalogue of another author: %w", err)
	}
	offered := make(chan error)
	clusters := sandbox.UserClusters()[1:3]
	for _, cluster := range clusters {
		go func() { offered <- s.awaitOffer(ctx, cluster, sandbox.Offered(after)[0]) }()
	}
	var errs []error
	for range clusters {
		errs = append(errs, <-offered)
	}
	return time.Since(begin), errors.Join(errs...)
}

// awaitOffer waits until a cluster is offered a version.
func (s *siege) awaitOffer(ctx context.Context, cluster sandbox.UserCluster, version string) error {
	available := sandbox.AvailableIn(cluster)
	watching, err := s.Client(cluster.Seed).Watch(ctx, &kubermaticv1.AddonCatalogueList{}, client.InNamespace(available.Namespace),
		client.MatchingFields{"metadata.name": available.Name})
	if err != nil {
		return fmt.Errorf("watching what cluster %s is offered: %w", cluster.Name, err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if found, ok := event.Object.(*kubermaticv1.AddonCatalogue); ok && slices.Contains(sandbox.Offered(found), version) {
			return nil
		}
	}
	return fmt.Errorf("cluster %s is not offered %s", cluster.Name, version)
}
