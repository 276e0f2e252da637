package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// LabelAct is a label with the act's name on all objects that an act wrote to the API servers of the platform.
const LabelAct = "hostile.example/act"

// Act is a repeated action of an author of catalogues and a tenant, with no more than the rights of the charts'
// roles.
type Act struct {
	Name string
	// Tells describes the act for people.
	About string
	// Pause between two steps.
	Pause time.Duration
	// IsRefused says that admission refuses a part of it.
	IsRefused bool
	// Records is the minimum size of the release records that it creates after some seconds, in bytes.
	Records int

	begin func(ctx context.Context, by *Attackers)
	step  func(ctx context.Context, by *Attackers, number int)
}

// Begin writes the objects that the steps change.
func (a Act) Begin(ctx context.Context, by *Attackers) { a.begin(ctx, by) }

// Step is one step; numbers increase from step to step.
func (a Act) Step(ctx context.Context, by *Attackers, number int) { a.step(ctx, by, number) }

// Attackers are an author, who has role catalogue-admin on the master, and a tenant with role cluster-user in one cluster.
type Attackers struct {
	Author, Tenant client.Client
	// Catalogues is the author's namespace on the master, Home the tenant's on its seed.
	Catalogues, Home string
	// Sources have the author's repositories, and CASecret is the Secret with their authority.
	Sources  *fleet.Sources
	CASecret string

	mutex    sync.Mutex
	reported Answers
}

// Answers count the results of writes.
type Answers struct {
	Taken, Refused, Failed int
	// Refusal and Failure are the last ones.
	Refusal, Failure error
}

func (a Answers) String() string {
	return fmt.Sprintf("%d writes were taken, %d refused, %d failed; the last: %.200v, %.200v",
		a.Taken, a.Refused, a.Failed, a.Refusal, a.Failure)
}

// Answers returns the counts since the last call.
func (a *Attackers) Answers() Answers {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	reported := a.reported
	a.reported = Answers{}
	return reported
}

// Acts are all acts, in a fixed order.
func Acts() []Act {
	return []Act{
		{
			Name: "doubling-rules", About: "gives rules of health that double what they bind, and in turns rules that no look comes to the end of",
			Pause: time.Second, IsRefused: true, begin: beginRules, step: changeRules,
		},
		{
			Name: "dear-rules", About: "edits hundreds of KiB of rules that are dear to check, and tries others without storing them",
			Pause: 250 * time.Millisecond, IsRefused: true, begin: nothing, step: editDearRules,
		},
		{
			Name: "long-versions", About: "renames thousands of versions with long names",
			Pause: time.Second, begin: nothing, step: renameVersions,
		},
		{
			Name: "random-records", About: "edits installations of megabytes by chance", Pause: time.Second, Records: 16 << 20,
			begin: beginNoise, step: editNoise,
		},
		{
			Name: "large-values", About: "makes hundreds of paused installations with values of 250 KiB, some of them at once",
			Pause: 100 * time.Millisecond, IsRefused: true, begin: beginLarge, step: addLarge,
		},
		{
			Name: "large-metadata", About: "gives hundreds of paused installations annotations of 250 KiB by edits of nothing else",
			Pause: 100 * time.Millisecond, IsRefused: true, begin: nothing, step: annotateLarge,
		},
		{
			Name: indexesAct, About: "names a hundred large indexes of Helm repositories, and others with each edit", Pause: time.Second,
			begin: beginIndexes, step: nameIndexes,
		},
		{
			Name: movingAct, About: "pushes commits that change thousands of versions", Pause: 10 * time.Second,
			begin: beginMoving, step: func(_ context.Context, by *Attackers, number int) { by.move(number + 1) },
		},
		{
			Name: "made-up-clusters", About: "makes thousands of installations, each for another Cluster that does not exist",
			Pause: 100 * time.Millisecond, IsRefused: true, begin: nothing, step: addHomeless,
		},
	}
}

// ActNamed is the act of that name.
func ActNamed(name string) (act Act, found bool) {
	all := Acts()
	at := slices.IndexFunc(all, func(one Act) bool { return one.Name == name })
	if at < 0 {
		return Act{}, false
	}
	return all[at], true
}

func nothing(context.Context, *Attackers) {}

const (
	slowAddon, doublingAddon, noiseAddon = "slow-rules", "doubling-rules", "noise"
	// ruledOnes and noisyOnes are the numbers of installations of each.
	ruledOnes, noisyOnes = 8, 12
)

func beginRules(ctx context.Context, by *Attackers) {
	by.commit(slowAddon, ManyKeys(4000))
	by.write(ctx, by.Author, by.catalogue("doubling-rules", slowAddon, by.ofRules(slowAddon, SlowRule)))
	for number := range ruledOnes {
		by.write(ctx, by.Tenant, by.installation("doubling-rules", slowAddon, number))
	}
}

// changeRules creates a catalogue with a rule that doubles, and an installation of it, and changes all rules of
// another one.
func changeRules(ctx context.Context, by *Attackers, number int) {
	rules := DoublingRules()
	names := slices.Sorted(maps.Keys(rules))
	doubling := func(int) string { return rules[names[number%len(names)]] }
	by.write(ctx, by.Author, by.catalogue("doubling-rules", doublingAddon, by.ofRules(slowAddon, doubling)))
	by.write(ctx, by.Tenant, by.installation("doubling-rules", doublingAddon, number%ruledOnes))
	slow := func(at int) string { return SlowRule(rulesEach*(number+1) + at) }
	by.write(ctx, by.Author, by.catalogue("doubling-rules", slowAddon, by.ofRules(slowAddon, slow)))
}

// editDearRules changes one of four catalogues, each with the maximum of rules, and tries another one with more.
func editDearRules(ctx context.Context, by *Attackers, number int) {
	versions := func(count int, rule func(int) string) (all []kubermaticv1.AddonVersion) {
		for version := range count {
			one := by.ofRules("dear-rules", func(at int) string { return rule(1000*number + rulesEach*version + at) })
			one.Version = fmt.Sprintf("1.0.%d", version)
			all = append(all, one)
		}
		return all
	}
	by.write(ctx, by.Author, by.catalogue("dear-rules", fmt.Sprintf("dear-rules-%d", number%4), versions(8, DearRule)...))
	doubling := DoublingRules()["lists in lists"]
	more := func(at int) string { return fmt.Sprintf("%s||%d>0", doubling, at) }
	by.try(ctx, by.Author, by.catalogue("dear-rules", "dear-rules-tried", versions(32, more)...))
}

// renameVersions changes one of four catalogues.
func renameVersions(ctx context.Context, by *Attackers, number int) {
	made := by.catalogue("long-versions", fmt.Sprintf("long-versions-%d", number%4))
	made.Spec.Addons = LongNames(made.Name, number, by.source("long-versions"))
	by.write(ctx, by.Author, made)
}

func beginNoise(ctx context.Context, by *Attackers) {
	by.commit(noiseAddon, Noise(4))
	by.write(ctx, by.Author, by.catalogue("random-records", noiseAddon, by.version(noiseAddon)))
	for number := range noisyOnes {
		by.write(ctx, by.Tenant, by.installation("random-records", noiseAddon, number))
	}
}

func editNoise(ctx context.Context, by *Attackers, number int) {
	made := by.installation("random-records", noiseAddon, number%noisyOnes)
	made.Spec.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"turn":%d}`, number+1)}
	by.write(ctx, by.Tenant, made)
}

const (
	// largeAtOnce installations are created concurrently, so that none is counted when the next is admitted.
	largeAtOnce = 32
	mostLarge   = 400
)

func beginLarge(ctx context.Context, by *Attackers) {
	var group sync.WaitGroup
	for number := range largeAtOnce {
		group.Go(func() { by.addLarge(ctx, number) })
	}
	group.Wait()
}

func addLarge(ctx context.Context, by *Attackers, number int) { by.addLarge(ctx, largeAtOnce+number) }

func (a *Attackers) addLarge(ctx context.Context, number int) {
	made := a.installation("large-values", "web", number%mostLarge)
	made.Spec.Paused, made.Spec.Values = true, &runtime.RawExtension{Raw: LargeValues(number)}
	a.write(ctx, a.Tenant, made)
}

// annotateLarge creates an installation, and lets its annotations grow.
func annotateLarge(ctx context.Context, by *Attackers, number int) {
	made := by.installation("large-metadata", "web", number%mostLarge)
	made.Spec.Paused = true
	by.write(ctx, by.Tenant, made)
	made.ResourceVersion = ""
	made.Annotations = map[string]string{"hostile.example/note": string(LargeValues(number))}
	by.write(ctx, by.Tenant, made)
}

// homelessEach is the number of installations that a step creates.
const homelessEach = 10

func addHomeless(ctx context.Context, by *Attackers, number int) {
	for at := range homelessEach {
		made := by.installation("made-up-clusters", "web", homelessEach*number+at)
		made.Spec.ClusterName = made.Name
		by.write(ctx, by.Tenant, made)
	}
}

// catalogue is one of the author's, with one add-on of its name.
func (a *Attackers) catalogue(act, name string, versions ...kubermaticv1.AddonVersion) *kubermaticv1.AddonCatalogue {
	made := given.Catalogue(a.Catalogues, name, given.Addon(name, versions...))
	made.Labels, made.Spec.Type = map[string]string{LabelAct: act}, kubermaticv1.CatalogueCustom
	return made
}

// installation is one of the tenant's.
func (a *Attackers) installation(act, addon string, number int) *kubermaticv1.AddonInstallation {
	name := fmt.Sprintf("%s-%s-%d", act, addon, number)
	made := given.Installation(a.Home, name, addon, name, given.NewNamespace)
	made.Labels = map[string]string{LabelAct: act}
	return made
}

func (a *Attackers) version(repository string) kubermaticv1.AddonVersion {
	return given.Version("1.0.0", a.source(repository))
}

func (a *Attackers) ofRules(repository string, rule func(number int) string) kubermaticv1.AddonVersion {
	made := a.version(repository)
	made.Template.Health = rulesFor(rule)
	return made
}

func (a *Attackers) source(repository string) *kubermaticv1.Source {
	return &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
		Remote: kubermaticv1.GitRemote(fmt.Sprintf("%s/%s.git", a.Sources.GitURL, repository)), Path: "content",
		CASecretRef: &kubermaticv1.LocalReference{Name: a.CASecret},
	}}
}

// commit creates a repository with one file.
func (a *Attackers) commit(repository, content string) {
	if _, err := a.Sources.Commit(repository, map[string]string{"content/all.yaml": content}); err != nil {
		a.note(fmt.Errorf("committing to repository %q: %w", repository, err))
	}
}

// write changes an object, or creates it if it is missing.
func (a *Attackers) write(ctx context.Context, as client.Client, object client.Object) {
	text, err := json.Marshal(object)
	if err != nil {
		a.note(err)
		return
	}
	made := object.DeepCopyObject().(client.Object)
	err = as.Patch(ctx, made, client.RawPatch(types.MergePatchType, text))
	if apierrors.IsNotFound(err) {
		err = as.Create(ctx, object)
	}
	a.note(err)
}

// try requests an object that is not stored.
func (a *Attackers) try(ctx context.Context, as client.Client, object client.Object) {
	a.note(as.Create(ctx, object, client.DryRunAll))
}

func (a *Attackers) note(err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case err == nil:
		a.reported.Taken++
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		a.reported.Refused, a.reported.Refusal = a.reported.Refused+1, err
	default:
		a.reported.Failed, a.reported.Failure = a.reported.Failed+1, err
	}
}
