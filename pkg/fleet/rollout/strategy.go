package rollout

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// NoGroup is the group of a cluster that is in none: it moves at once and takes no place.
const NoGroup = -1

// maxGroups is the maximal number of groups of a strategy: those of the CRD, and rest.
const maxGroups = 17

// Defaults of spec.rollout.
const (
	defaultSoak     = 5 * time.Minute
	defaultDeadline = 30 * time.Minute
)

// everyCluster is the limit of a set without rollout: all at once.
var everyCluster = Limit{amount: 100, percent: true}

// Limit is a number of clusters, or a percentage of those of a group.
type Limit struct {
	amount  int
	percent bool
}

// Places is the number of clusters that may move at a time, of this many, at least 1: a percentage is rounded up.
func (l Limit) Places(clusters int) int {
	if !l.percent {
		return max(l.amount, 1)
	}
	return max((clusters*l.amount+99)/100, 1)
}

// Failures is the number of clusters that may fail, of this many: a percentage is rounded down.
func (l Limit) Failures(clusters int) int {
	if !l.percent {
		return l.amount
	}
	return clusters * l.amount / 100
}

// Group is one wave, with its settings from spec.rollout and the defaults.
type Group struct {
	// Name of the group; the last one is rest.
	Name string
	// Start is Automatic or Approved.
	Start kubermaticv1.GroupStart
	// MaxConcurrency is the maximum number of clusters of the group that move at a time, on one seed.
	MaxConcurrency Limit
	// MaxFailures is the number of clusters of the group that may fail: on the master a number applies to all seeds
	// together, a percentage to each.
	MaxFailures Limit
	// Soak is the time that a cluster must be Ready until its move is a success.
	Soak time.Duration
	// ProgressDeadline is the time after which a move is a failure.
	ProgressDeadline time.Duration

	selector labels.Selector
}

// Strategy is how a set rolls out: at least one group, in the order of the moves. The last group has all clusters that
// no other group selects.
type Strategy struct {
	Groups []Group
}

// InvalidError is a problem of spec.rollout.
type InvalidError struct {
	// Field below spec.rollout.
	Field string
	// Why is the reason why the field can't be used.
	Why error
}

func (e *InvalidError) Error() string { return fmt.Sprintf("spec.rollout.%s: %v", e.Field, e.Why) }

// Unwrap is the reason why the field can't be used.
func (e *InvalidError) Unwrap() error { return e.Why }

// NewStrategy reads spec.rollout; nil is one group that moves at once, regardless of failures. Errors are of type
// InvalidError.
func NewStrategy(rollout *kubermaticv1.Rollout) (Strategy, error) {
	if rollout == nil {
		return Strategy{Groups: []Group{{
			Name: kubermaticv1.GroupRest, Start: kubermaticv1.StartAutomatic, MaxConcurrency: everyCluster, MaxFailures: everyCluster,
			Soak: defaultSoak, ProgressDeadline: defaultDeadline, selector: labels.Everything(),
		}}}, nil
	}
	if len(rollout.Groups) >= maxGroups {
		return Strategy{}, &InvalidError{"groups", fmt.Errorf("there are %d, at most %d are allowed", len(rollout.Groups), maxGroups-1)}
	}
	rest := Group{
		Name: kubermaticv1.GroupRest, Start: kubermaticv1.StartAutomatic, MaxConcurrency: Limit{amount: 10, percent: true},
		Soak: defaultSoak, ProgressDeadline: defaultDeadline, selector: labels.Everything(),
	}
	rest, err := rest.with(rollout.Pace, "")
	if err != nil {
		return Strategy{}, err
	}
	strategy := Strategy{}
	names := map[string]bool{kubermaticv1.GroupRest: true}
	for i := range rollout.Groups {
		group, err := readGroup(&rollout.Groups[i], rest)
		if err == nil && names[group.Name] {
			err = invalid(group.prefix(), "name", errors.New("another group has this name"))
		}
		if err != nil {
			return Strategy{}, err
		}
		names[group.Name] = true
		strategy.Groups = append(strategy.Groups, group)
	}
	strategy.Groups = append(strategy.Groups, rest)
	return strategy, nil
}

// readGroup reads one group; absent fields are as in rest, which has the pace of the whole rollout.
func readGroup(from *kubermaticv1.RolloutGroup, rest Group) (Group, error) {
	group := rest
	group.Name = string(from.Name)
	switch from.Start {
	case "", kubermaticv1.StartAutomatic:
	case kubermaticv1.StartApproved:
		group.Start = kubermaticv1.StartApproved
	default:
		return Group{}, invalid(group.prefix(), "start", errors.New("it is neither Automatic nor Approved"))
	}
	group, err := group.with(from.Pace, group.prefix())
	if err != nil {
		return Group{}, err
	}
	group.selector, err = metav1.LabelSelectorAsSelector(from.ClusterSelector)
	if err != nil {
		return Group{}, invalid(group.prefix(), "clusterSelector", err)
	}
	return group, nil
}

// prefix is the path of the group, for errors.
func (g Group) prefix() string { return fmt.Sprintf("groups[%q].", g.Name) }

func invalid(prefix, field string, why error) error { return &InvalidError{prefix + field, why} }

// with returns the group with the fields of a pace.
func (g Group) with(pace kubermaticv1.Pace, prefix string) (Group, error) {
	if pace.MaxConcurrency != nil {
		limit, err := readLimit(*pace.MaxConcurrency, 1)
		if err != nil {
			return g, invalid(prefix, "maxConcurrency", err)
		}
		g.MaxConcurrency = limit
	}
	if pace.MaxFailures != nil {
		limit, err := readLimit(*pace.MaxFailures, 0)
		if err != nil {
			return g, invalid(prefix, "maxFailures", err)
		}
		g.MaxFailures = limit
	}
	if pace.Soak != nil {
		if g.Soak = pace.Soak.Duration; g.Soak < 0 {
			return g, invalid(prefix, "soak", errors.New("it is below zero"))
		}
	}
	if pace.ProgressDeadline != nil {
		if g.ProgressDeadline = pace.ProgressDeadline.Duration; g.ProgressDeadline <= 0 {
			return g, invalid(prefix, "progressDeadline", errors.New("it is not above zero"))
		}
	}
	return g, nil
}

// readLimit reads a number from the least one, or a percentage from 1% to 100%, as the CRD has them.
func readLimit(from intstr.IntOrString, least int) (Limit, error) {
	if from.Type == intstr.Int {
		if int(from.IntVal) < least || from.IntVal > 1000000 {
			return Limit{}, fmt.Errorf("%d is not from %d to 1000000", from.IntVal, least)
		}
		return Limit{amount: int(from.IntVal)}, nil
	}
	digits, isPercentage := strings.CutSuffix(from.StrVal, "%")
	amount, err := strconv.ParseUint(digits, 10, 8)
	if !isPercentage || err != nil || amount < 1 || amount > 100 || digits != strconv.FormatUint(amount, 10) {
		return Limit{}, errors.New("it is neither a number nor a percentage from 1% to 100%")
	}
	return Limit{amount: int(amount), percent: true}, nil
}

// GroupOf is the group of a cluster with these labels and facts: the first that selects it.
func (s Strategy) GroupOf(cluster labels.Set) int {
	for i := range s.Groups {
		if s.Groups[i].selector.Matches(cluster) {
			return i
		}
	}
	return len(s.Groups) - 1
}

// Ungrouped is the strategy with its last group alone, for moves by places instead of groups: the removals of a
// deleted set.
func (s Strategy) Ungrouped() Strategy { return Strategy{Groups: s.Groups[len(s.Groups)-1:]} }

// ProgressDeadline is that of the whole rollout.
func (s Strategy) ProgressDeadline() time.Duration { return s.Groups[len(s.Groups)-1].ProgressDeadline }
