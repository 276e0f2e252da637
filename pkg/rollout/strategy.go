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

// NoGroup stands for the group of a cluster that is in none: it moves at once and takes no place.
const NoGroup = -1

// maxGroups is how many groups a strategy has at most: those of the kind, and rest.
const maxGroups = 17

// What counts where spec.rollout doesn't say.
const (
	defaultSoak     = 5 * time.Minute
	defaultDeadline = 30 * time.Minute
)

// everyCluster is the limit of a set without rollout: everything at once.
var everyCluster = Limit{amount: 100, percent: true}

// Limit is a number of clusters, or a percentage of those of a group.
type Limit struct {
	amount  int
	percent bool
}

// Places is how many of so many clusters may move at a time: a percentage is rounded up. It is at
// least 1.
func (l Limit) Places(clusters int) int {
	if !l.percent {
		return max(l.amount, 1)
	}
	return max((clusters*l.amount+99)/100, 1)
}

// Failures is how many of so many clusters may fail: a percentage is rounded down.
func (l Limit) Failures(clusters int) int {
	if !l.percent {
		return l.amount
	}
	return clusters * l.amount / 100
}

// Group is one wave, with all that spec.rollout and the defaults say of it.
type Group struct {
	// Name of the group; the last one's is rest.
	Name string
	// Start is Automatic or Approved.
	Start kubermaticv1.GroupStart
	// MaxConcurrency is how many clusters of the group move at a time, on one seed.
	MaxConcurrency Limit
	// MaxFailures is how many clusters of the group may fail: on the master a number is of all
	// seeds, a percentage of each.
	MaxFailures Limit
	// Soak is how long a cluster is to be Ready until its move is a success.
	Soak time.Duration
	// ProgressDeadline is how long a move may take until it is a failure.
	ProgressDeadline time.Duration

	selector labels.Selector
}

// Strategy is how a set rolls: at least one group, in the order in which they move. The last one
// has all clusters that no other selects.
type Strategy struct {
	Groups []Group
}

// InvalidError says what is wrong in spec.rollout.
type InvalidError struct {
	// Field below spec.rollout.
	Field string
	// Why it can't be used.
	Why error
}

func (e *InvalidError) Error() string { return fmt.Sprintf("spec.rollout.%s: %v", e.Field, e.Why) }

// Unwrap gives why the field can't be used.
func (e *InvalidError) Unwrap() error { return e.Why }

// NewStrategy reads spec.rollout; nil is one group that moves at once, whatever fails. Errors are
// of type InvalidError.
func NewStrategy(rollout *kubermaticv1.Rollout) (Strategy, error) {
	if rollout == nil {
		return Strategy{Groups: []Group{{
			Name: kubermaticv1.GroupRest, Start: kubermaticv1.StartAutomatic, MaxConcurrency: everyCluster, MaxFailures: everyCluster,
			Soak: defaultSoak, ProgressDeadline: defaultDeadline, selector: labels.Everything(),
		}}}, nil
	}
	if len(rollout.Groups) >= maxGroups {
		return Strategy{}, &InvalidError{"groups", fmt.Errorf("there are %d, at most %d may be", len(rollout.Groups), maxGroups-1)}
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

// readGroup reads one group; what it doesn't say is as in rest, which has the pace of the whole
// rollout.
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

// prefix is where the group stands, for errors.
func (g Group) prefix() string { return fmt.Sprintf("groups[%q].", g.Name) }

func invalid(prefix, field string, why error) error { return &InvalidError{prefix + field, why} }

// with gives the group with what a pace says.
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

// readLimit reads a number from the least one, or a percentage from 1% to 100%, as the kind has
// them.
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

// GroupOf is the group of a cluster with such labels and facts: the first that selects it.
func (s Strategy) GroupOf(cluster labels.Set) int {
	for i := range s.Groups {
		if s.Groups[i].selector.Matches(cluster) {
			return i
		}
	}
	return len(s.Groups) - 1
}

// Ungrouped is the strategy with its last group alone, for what goes by places and not by groups:
// all that a set which is deleted had made.
func (s Strategy) Ungrouped() Strategy { return Strategy{Groups: s.Groups[len(s.Groups)-1:]} }

// ProgressDeadline is the whole rollout's.
func (s Strategy) ProgressDeadline() time.Duration { return s.Groups[len(s.Groups)-1].ProgressDeadline }
