package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

const (
	// many is an add-on of many objects, and begins the names of as many catalogues.
	many           = "many"
	manyObjects    = 1000
	manyCatalogues = 20
	// killedLimit is for a busy machine: two leases run out, and a thousand objects are written.
	killedLimit = 5 * time.Minute
)

// leadersKilled kills the leaders of the master's and of a seed's manager in the middle of their work. Another process ends it, the other
// replica or the one that is started in the killed one's place: nothing is lost, and no content is written again.
func (s *story) leadersKilled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killedLimit)
	defer cancel()
	if err := s.publishMany(ctx); err != nil {
		return err
	}
	leaders, err := s.box.Holders(ctx, sandbox.Master, s.first.Seed)
	if err != nil {
		return err
	}
	objects, err := s.watchNames(ctx, s.first.Name, &corev1.ConfigMapList{}, many)
	if err != nil {
		return err
	}
	merged, err := s.watchNames(ctx, s.first.Seed, &kubermaticv1.AddonCatalogueList{}, sandbox.CatalogueNamespace)
	if err != nil {
		return err
	}
	installation := &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: many, Namespace: s.first.Namespace()},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: many}, TargetNamespace: many, CreateNamespace: true,
		},
	}
	onSeed := s.killAtWork(ctx, s.first.Seed, objects, manyObjects)
	onMaster := s.killAtWork(ctx, sandbox.Master, merged, manyCatalogues)
	if err := s.box.Client(s.first.Seed).Create(ctx, installation); err != nil {
		return fmt.Errorf("creating installation %q in %s: %w", many, s.first.Name, err)
	}
	if err := s.makeMany(ctx, 0, manyCatalogues/2); err != nil {
		return err
	}
	if err := errors.Join(<-onSeed, <-onMaster); err != nil {
		return err
	}
	if err := s.makeMany(ctx, manyCatalogues/2, manyCatalogues); err != nil {
		return err
	}
	begin := time.Now()
	err = s.box.Await(ctx, s.first.Seed, installation, func(client.Object) error {
		return errors.Join(expect.Condition(installation, kubermaticv1.ConditionReady, "True", ""),
			objects.missing(manyObjects), merged.missing(manyCatalogues))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(objects.notOnce(manyObjects), merged.notOnce(manyCatalogues), s.othersLead(ctx, leaders)); err != nil {
		return err
	}
	s.progress.Printf("  other processes lead, and ended it after %.1f s: %d objects in %s and %d catalogues on %s, each content written once",
		time.Since(begin).Seconds(), manyObjects, s.first.Name, manyCatalogues, s.first.Seed)
	return nil
}

// publishMany makes the add-on, and waits until it is offered.
func (s *story) publishMany(ctx context.Context) error {
	var manifests strings.Builder
	for i := range manyObjects {
		fmt.Fprintf(&manifests, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\n---\n", many, i)
	}
	if _, err := s.box.Sources.Commit(many, map[string]string{"all.yaml": manifests.String()}); err != nil {
		return err
	}
	seen, err := s.watchOffers(ctx, many+" 1.0.0")
	if err != nil {
		return err
	}
	if err := s.box.Client(sandbox.Master).Create(ctx, s.manyCatalogue(many)); err != nil {
		return fmt.Errorf("creating catalogue %q: %w", many, err)
	}
	for range sandbox.UserClusters() {
		if err := <-seen; err != nil {
			return err
		}
	}
	return nil
}

// manyCatalogue has one add-on, whose name is its own.
func (s *story) manyCatalogue(name string) *kubermaticv1.AddonCatalogue {
	made := catalogue(name, sandbox.Namespace)
	version := s.probeVersion("1.0.0")
	version.Source.Git.Remote = kubermaticv1.GitRemote(s.box.Sources.GitURL + "/" + many + ".git")
	made.Spec.Addons = []kubermaticv1.Addon{{Name: kubermaticv1.AddonName(name), Versions: []kubermaticv1.AddonVersion{version}}}
	return made
}

// makeMany makes catalogues from one number up to another.
func (s *story) makeMany(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		name := fmt.Sprintf("%s-%d", many, i)
		if err := s.box.Client(sandbox.Master).Create(ctx, s.manyCatalogue(name)); err != nil {
			return fmt.Errorf("creating catalogue %q: %w", name, err)
		}
	}
	return nil
}

// killAtWork waits for the first of what the leader of a control plane is about to write, and kills it there.
func (s *story) killAtWork(ctx context.Context, cluster string, written *seen, whole int) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.killAt(ctx, cluster, written, whole) }()
	return done
}

// killAt kills the manager of a control plane that leads when it has written something, and not yet all.
func (s *story) killAt(ctx context.Context, cluster string, written *seen, whole int) error {
	leader, err := s.box.Leader(ctx, cluster)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) { return written.count() > 0, nil })
	if err != nil {
		return fmt.Errorf("%s writes nothing: %w", leader.Name, err)
	}
	leader.Process().Kill()
	there := written.count()
	if there >= whole {
		return fmt.Errorf("%s had written all of %d before it was killed", leader.Name, whole)
	}
	s.progress.Printf("  %s was killed with kill -9 when %d of %d were there", leader.Name, there, whole)
	return nil
}

// othersLead is an error where one leads who led before.
func (s *story) othersLead(ctx context.Context, before map[string]string) error {
	now, err := s.box.Holders(ctx, sandbox.Master, s.first.Seed)
	if err != nil {
		return err
	}
	for cluster, holder := range before {
		if now[cluster] == holder {
			err = errors.Join(err, fmt.Errorf("%s still leads on %s: no leader was killed", holder, cluster))
		}
	}
	return err
}

// seen are the objects that a watch saw, each with what became of it.
type seen struct {
	// what they are, for errors.
	what   string
	mutex  sync.Mutex
	events map[string][]watch.EventType
}

// watchNames watches objects in a namespace whose names begin with many, from now on until the context ends.
func (s *story) watchNames(ctx context.Context, cluster string, of client.ObjectList, namespace string) (*seen, error) {
	events, err := s.box.Client(cluster).Watch(ctx, of, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watching %T in namespace %s of %s: %w", of, namespace, cluster, err)
	}
	watched := &seen{what: fmt.Sprintf("%T in namespace %s of %s", of, namespace, cluster), events: map[string][]watch.EventType{}}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			watched.add(event)
		}
	}()
	return watched, nil
}

func (n *seen) add(event watch.Event) {
	object, isObject := event.Object.(client.Object)
	// The status of a catalogue is written after its content, and does not count.
	isStatus := isObject && event.Type == watch.Modified && object.GetGeneration() == 1
	if !isObject || isStatus || !strings.HasPrefix(object.GetName(), many+"-") {
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.events[object.GetName()] = append(n.events[object.GetName()], event.Type)
}

func (n *seen) count() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return len(n.events)
}

// missing is an error until so many were seen.
func (n *seen) missing(want int) error {
	if have := n.count(); have != want {
		return fmt.Errorf("%d of %d are there: %s", have, want, n.what)
	}
	return nil
}

// notOnce is an error where the content of one was written more than once, or there are not so many.
func (n *seen) notOnce(want int) error {
	err := n.missing(want)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for name, events := range n.events {
		if !slices.Equal(events, []watch.EventType{watch.Added}) {
			err = errors.Join(err, fmt.Errorf("%s was written more than once: %v: %s", name, events, n.what))
		}
	}
	return err
}
