package pages

import (
	"cmp"
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

const resourceSets = "addonsets"

// squaresOfCell is how many clusters a cell of the board shows; others are counted.
const squaresOfCell = 60

// setRow is a row of the board.
type setRow struct {
	// Seed is "" for a set of the master.
	Seed, Name             string
	State, Reason, Message string
	Pending                int32
	Counts                 v1.ClusterCounts
	Groups                 []setGroup
	URL                    string
}

// setGroup is a cell of the board.
type setGroup struct {
	Name, State string
	Squares     []string
	More        int
	Counts      v1.ClusterCounts
}

// squaresOf are the states of clusters, those that need a person first.
func squaresOf(of v1.ClusterCounts) (squares []string, more int) {
	rest := of.Selected
	for _, one := range []struct {
		state  v1.ClusterState
		number int32
	}{
		{v1.ClusterFailed, of.Failed}, {v1.ClusterSick, of.Sick}, {v1.ClusterBlocked, of.Blocked}, {v1.ClusterAway, of.Away},
		{v1.ClusterMoving, of.Moving}, {v1.ClusterBehind, of.Behind}, {v1.ClusterCurrent, of.Current},
	} {
		for range min(one.number, rest, squaresOfCell) {
			if rest--; len(squares) < squaresOfCell {
				squares = append(squares, string(one.state))
			} else {
				more++
			}
		}
	}
	return squares, more + int(max(0, rest))
}

func groupOf(name, state string, counts v1.ClusterCounts) setGroup {
	made := setGroup{Name: name, State: state, Counts: counts}
	made.Squares, made.More = squaresOf(counts)
	return made
}

// readSets reads the sets of the master, or else those of the seeds.
func (s *Site) readSets(v *visit) (rows []setRow, problems []seedRows) {
	if s.platform.Master != nil {
		var found v1.AddonSetList
		err := s.platform.Master.Get(v.Context(), v.token(), s.setObject(""), nil, &found)
		for i := range found.Items {
			rows = append(rows, setRowOf(&found.Items[i]))
		}
		if !isHidden(err) {
			if err != nil {
				problems = append(problems, seedRows{Seed: "master", Problem: problemOf(err)})
			}
			return rows, problems
		}
	}
	answers := upstream.Each(v.Context(), s.platform.Seeds, func(ctx context.Context, seed *upstream.Seed) (found upstream.Sets, _ error) {
		err := seed.Ask(ctx, v.token(), nil, &found, "sets")
		return found, err
	})
	for _, one := range answers {
		if one.Err != nil && !isHidden(one.Err) {
			problems = append(problems, seedRows{Seed: one.Seed.Name, Problem: problemOf(one.Err)})
		}
		for _, set := range one.Answer.Sets {
			rows = append(rows, setRow{
				Seed: one.Seed.Name, Name: set.Name, State: set.State, Reason: set.Reason, Message: set.Message, Pending: set.PendingCount,
				Counts: set.Counts, Groups: []setGroup{groupOf("all", "", set.Counts)}, URL: with(at("sets", set.Name), "seed", one.Seed.Name),
			})
		}
	}
	return rows, problems
}

func setRowOf(one *v1.AddonSet) setRow {
	made := setRow{Name: one.Name, Pending: one.Status.PendingCount, URL: at("sets", one.Name)}
	made.Counts = *cmp.Or(one.Status.Counts, &v1.ClusterCounts{})
	made.State, made.Reason, made.Message = view.StateOf(one.Status.Conditions)
	for _, group := range one.Status.Groups {
		made.Groups = append(made.Groups, groupOf(group.Name, string(group.State), group.Counts))
	}
	if len(made.Groups) == 0 {
		made.Groups = []setGroup{groupOf("all", "", made.Counts)}
	}
	return made
}

type setsView struct {
	Rows     []setRow
	Problems []seedRows
}

func (s *Site) sets(v *visit) (*page, error) {
	made := setsView{}
	made.Rows, made.Problems = s.readSets(v)
	return &page{template: "sets", title: "Sets", data: made}, nil
}

// setView is one set.
type setView struct {
	setRow
	Path     string
	Steps    []metav1.Condition
	Pending  []v1.PendingChange
	Clusters []v1.SetClusterStatus
	Seeds    []v1.SetSeedStatus
	Actions  []action
	YAML     string
}

func (s *Site) set(v *visit) (*page, error) {
	made := &setView{Path: v.URL.Path}
	if name := v.form.Get("seed"); name != "" {
		seeds, err := s.seedsOf(name)
		if err != nil {
			return nil, err
		}
		var found upstream.Set
		if err := seeds[0].Ask(v.Context(), v.token(), nil, &found, "sets", v.PathValue("name")); err != nil {
			return nil, err
		}
		made.setRow = setRow{
			Seed: name, Name: found.Name, State: found.State, Reason: found.Reason, Message: found.Message, Counts: found.Counts,
			Pending: found.PendingCount,
		}
		for _, group := range found.Groups {
			made.Groups = append(made.Groups, groupOf(group.Name, string(group.State), group.Counts))
		}
		made.Steps, made.Pending, made.Clusters = found.Conditions, found.Pending, found.Clusters
		return &page{template: "set", title: "Set " + found.Name, data: made}, nil
	}
	one, err := s.readSet(v)
	if err != nil {
		return nil, err
	}
	made.setRow = setRowOf(one)
	made.Steps = one.Status.Conditions
	made.Pending, made.Clusters, made.Seeds = one.Status.Pending, one.Status.Clusters, one.Status.Seeds
	if s.platform.Master.Rights(v.Context(), v.token(), one.Namespace).May("patch", resourceSets, one.Name) {
		made.Actions = actionsOfSet(one)
	}
	one.APIVersion, one.Kind = v1.GroupVersion.String(), "AddonSet"
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one); err == nil {
		made.YAML = manifest(content)
	}
	return &page{template: "set", title: "Set " + one.Name, data: made}, nil
}

func (s *Site) setObject(name string) upstream.Object {
	return upstream.Object{Resource: resourceSets, Namespace: s.platform.Namespace, Name: name}
}

// readSet reads the set of a path from the master.
func (s *Site) readSet(v *visit) (*v1.AddonSet, error) {
	if s.platform.Master == nil {
		return nil, missing("no master is configured: open the set of a seed")
	}
	found := &v1.AddonSet{}
	return found, s.platform.Master.Get(v.Context(), v.token(), s.setObject(v.PathValue("name")), nil, found)
}

// actionsOfSet are what a user may do with a set of the master. An approval is for the status that the page shows.
func actionsOfSet(one *v1.AddonSet) (all []action) {
	pausing := action{Do: "pause", Label: "Pause"}
	if one.Spec.Paused {
		pausing = action{Do: "resume", Label: "Resume"}
	}
	pausing.operations = []operation{{"op": "add", "path": "/spec/paused", "value": !one.Spec.Paused}}
	all = append(all, pausing)
	isCurrent := one.Status.ObservedGeneration >= one.Generation && one.Status.Revision != ""
	for _, group := range one.Status.Groups {
		if group.State != v1.GroupAwaitingApproval || !isCurrent {
			continue
		}
		facts := []string{"It opens group " + group.Name + " for revision " + one.Status.Revision + ", with " +
			text.Count(int(group.Counts.Selected), "cluster") + "."}
		for _, change := range one.Status.Pending {
			facts = append(facts, strings.TrimSpace(string(change.Change)+" "+change.Item+" "+change.From+" → "+change.To)+" in "+
				text.Count(int(change.Clusters), "cluster"))
		}
		all = append(all, action{
			Do: "approve", Label: "Approve group " + group.Name, Confirm: one.Name, Facts: facts,
			operations: annotating(one, v1.AnnotationApprove, one.Status.Revision+"/"+group.Name, false),
		})
		break
	}
	if waiting := one.Status.Removal; waiting != nil && waiting.Word != "" && isCurrent {
		all = append(all, action{
			Do: "approve-removal", Label: "Approve the removals", Confirm: one.Name, IsDanger: true,
			Facts:      []string{"It removes " + text.Count(int(waiting.Count), "installation") + " in " + text.Names(waiting.Clusters, 10) + "."},
			operations: annotating(one, v1.AnnotationRemovalApproved, waiting.Word, false),
		})
	}
	for i := range all {
		verb, flag, _ := strings.Cut(all[i].Do, "-")
		words := []string{"kubectl", "addons", "set", verb, one.Name, "--namespace", one.Namespace}
		if flag != "" {
			words = append(words, "--"+flag)
		}
		all[i].Command, all[i].Shown = command(words...), shownAs(one.Generation, all[i].Facts...)
	}
	return all
}

// actOnSet carries out an action of the page of a set.
func (s *Site) actOnSet(v *visit) (*page, error) {
	one, err := s.readSet(v)
	if err != nil {
		return nil, err
	}
	chosen, err := confirmed(v, actionsOfSet(one), one.Name)
	if err != nil {
		return nil, err
	}
	return &page{to: v.URL.Path}, patch(v, s.platform.Master, s.setObject(one.Name), one.Generation, chosen.operations)
}
