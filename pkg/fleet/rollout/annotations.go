package rollout

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// maxAnnotation is the maximum length of values of annotations approve and gate: a revision and a name.
const maxAnnotation = 128 + 1 + 63

// Allowance is the number of groups of a revision that a seed may open, from the first: 0, with which nothing moves,
// a higher number, or one of the following.
type Allowance int

const (
	// ByRule: the master does not decide; the seed uses evidence and its own failures. Groups that wait for approval
	// don't open.
	ByRule Allowance = -1
	// FirstOnly: the master has not evaluated this revision yet. The first group is open if its start is automatic.
	FirstOnly Allowance = -2
)

// Bounds of annotation leave-out, in bytes and names: a copy on a seed has no longer annotation.
const (
	maxLeaveOut = 1024
	maxLeftOut  = 32
)

// LeaveOut are the clusters that annotation leave-out names, in order.
type LeaveOut []string

// leftOut is the format of one of them: a name, or a namespace and a name; then perhaps an item, and a version of it.
var leftOut = regexp.MustCompile(
	`^[a-z0-9]([a-z0-9.-]{0,252})(/[a-z0-9]([a-z0-9.-]{0,252}))?(:[a-z0-9][a-z0-9-]{0,62}(=[A-Za-z0-9][A-Za-z0-9._+-]{0,127})?)?$`)

// ReadLeaveOut reads annotation leave-out. An unreadable one leaves out no cluster, with an AnnotationError.
func ReadLeaveOut(value string) (LeaveOut, error) {
	if value == "" {
		return nil, nil
	}
	names := strings.Split(value[:min(len(value), maxLeaveOut+1)], ",")
	for i := range names {
		if names[i] = strings.TrimSpace(names[i]); !leftOut.MatchString(names[i]) || len(value) > maxLeaveOut || len(names) > maxLeftOut {
			return nil, &AnnotationError{kubermaticv1.AnnotationLeaveOut,
				fmt.Sprintf("<cluster>,<cluster>:<item>,<cluster>:<item>=<version>, with at most %d entries and %d bytes; no cluster is "+
					"left out until it is corrected", maxLeftOut, maxLeaveOut)}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Has reports whether a cluster is left out, by its long name: outside of KKP "<namespace>/<name>". A namespace
// represents all clusters in it; that of a Cluster of KKP has its name.
func (l LeaveOut) Has(cluster string) bool {
	namespace, _, isLong := strings.Cut(cluster, "/")
	if !isLong {
		namespace = "cluster-" + cluster
	}
	return slices.Contains(l, cluster) || slices.Contains(l, namespace)
}

// Item reports whether the annotation names an item of a cluster, by its long name, and the version that it is pinned to; empty: the item
// is left out.
func (l LeaveOut) Item(cluster, item string) (version string, isNamed bool) {
	for _, one := range l {
		name, rest, isItem := strings.Cut(one, ":")
		if !isItem || !(LeaveOut{name}).Has(cluster) {
			continue
		}
		if named, version, _ := strings.Cut(rest, "="); named == item {
			return version, true
		}
	}
	return "", false
}

// UnknownItems are the entries whose item a set does not have. A set of type Core has none.
func (l LeaveOut) UnknownItems(of *kubermaticv1.AddonSetSpec) (unknown []string) {
	for _, one := range l {
		_, rest, isItem := strings.Cut(one, ":")
		named, _, _ := strings.Cut(rest, "=")
		if isItem && !slices.ContainsFunc(of.Addons, func(item kubermaticv1.AddonSetItem) bool { return string(item.Name) == named }) {
			unknown = append(unknown, one)
		}
	}
	return unknown
}

// Unknown are the names that match no cluster in the lists of seeds.
func (l LeaveOut) Unknown(listed []kubermaticv1.SetClusterStatus) []string {
	var unknown []string
	for _, entry := range l {
		name, _, _ := strings.Cut(entry, ":")
		if !slices.ContainsFunc(listed, func(row kubermaticv1.SetClusterStatus) bool { return LeaveOut{name}.Has(row.Name) }) {
			unknown = append(unknown, entry)
		}
	}
	return unknown
}

// AnnotationError reports that an annotation can't be read.
type AnnotationError struct {
	// Annotation is its name.
	Annotation string
	// Form is the required format.
	Form string
}

func (e *AnnotationError) Error() string {
	return fmt.Sprintf("annotation %s is not of the form %s", e.Annotation, e.Form)
}

// UnknownGroupError reports that annotation approve names a group that the set doesn't have.
type UnknownGroupError struct {
	// Group is the unknown name.
	Group string
}

func (e *UnknownGroupError) Error() string {
	return fmt.Sprintf("annotation %s names group %q, which the set doesn't have", kubermaticv1.AnnotationApprove, e.Group)
}

// split splits a value at its last slash: the revision, and the group or number after it.
func split(value string) (revision, what string, ok bool) {
	if len(value) > maxAnnotation {
		return "", "", false
	}
	at := strings.LastIndexByte(value, '/')
	if at < 1 || at == len(value)-1 {
		return "", "", false
	}
	return value[:at], value[at+1:], true
}

// ReadApproval reads annotation approve: the last group that is approved in this revision, or NoGroup. A value for
// another revision approves nothing, and is no error. Errors are of types AnnotationError and UnknownGroupError; with
// an error nothing is approved.
func (s Strategy) ReadApproval(value, revision string) (int, error) {
	if value == "" {
		return NoGroup, nil
	}
	approved, name, ok := split(value)
	if !ok {
		return NoGroup, &AnnotationError{kubermaticv1.AnnotationApprove, "<revision>/<group>"}
	}
	if approved != revision {
		return NoGroup, nil
	}
	for i := range s.Groups {
		if s.Groups[i].Name == name {
			return i, nil
		}
	}
	if len(name) > 63 {
		return NoGroup, &AnnotationError{kubermaticv1.AnnotationApprove, "<revision>/<group>"}
	}
	return NoGroup, &UnknownGroupError{name}
}

// ReadGate reads annotation gate of a copy. If it is absent, or for another revision, the result is FirstOnly. An
// unreadable one opens nothing, with an AnnotationError.
func ReadGate(value, revision string) (Allowance, error) {
	if value == "" {
		return FirstOnly, nil
	}
	of, number, ok := split(value)
	groups, err := strconv.ParseUint(number, 10, 8)
	if !ok || err != nil || groups > maxGroups || number != strconv.FormatUint(groups, 10) {
		return 0, &AnnotationError{kubermaticv1.AnnotationGate, "<revision>/<groups>"}
	}
	if of != revision {
		return FirstOnly, nil
	}
	return Allowance(groups), nil
}

// GateValue is the value of annotation gate with which a seed may open this many groups of its revision.
func GateValue(revision string, groups int) string { return fmt.Sprintf("%s/%d", revision, groups) }
