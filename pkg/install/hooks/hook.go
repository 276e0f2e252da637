package hooks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
)

// Action is the action of a revision; the events of its hooks are named after it.
type Action string

// Actions of Helm, and Delete, which has events too.
const (
	ActionInstall  Action = "install"
	ActionUpgrade  Action = "upgrade"
	ActionRollback Action = "rollback"
	ActionDelete   Action = "delete"
)

// Pre is the event before the action.
func (a Action) Pre() string { return "pre-" + string(a) }

// Post is the event after the action.
func (a Action) Post() string { return "post-" + string(a) }

// testEvent is run by users only.
const testEvent = "test"

// Delete policies of Helm. A hook without any has DeleteBefore.
const (
	DeleteBefore    = "before-hook-creation"
	DeleteSucceeded = "hook-succeeded"
	deleteFailed    = "hook-failed"
)

// Hook is an object that runs around events.
type Hook struct {
	// Path is the hook's name in messages: the file of its chart or, for go-template, namespace, kind and name.
	Path           string          `json:"path"`
	Events         []string        `json:"events"`
	Weight         int             `json:"weight,omitempty"`
	DeletePolicies []string        `json:"deletePolicies,omitempty"`
	LogPolicies    []string        `json:"logPolicies,omitempty"`
	Object         json.RawMessage `json:"object"`
	// Run is the last run; nil before the first. It does not count in Digest.
	Run *Run `json:"run,omitempty"`
}

// Phases of a hook's run, as Helm names them.
const (
	PhaseRunning   = "Running"
	PhaseSucceeded = "Succeeded"
	PhaseFailed    = "Failed"
)

// Run is one run of a hook.
type Run struct {
	Event string `json:"event"`
	// Attempt at the event, from 1.
	Attempt int    `json:"attempt"`
	Phase   string `json:"phase"`
	// UID of the object; empty if the hook accepted an existing one.
	UID types.UID `json:"uid,omitempty"`
	// Cleaned says that a delete policy removed the object.
	Cleaned bool        `json:"cleaned,omitempty"`
	Started metav1.Time `json:"started"`
	Ended   metav1.Time `json:"ended,omitzero"`
}

// State is the progress of a revision's hooks.
type State struct {
	// Event that began last, and the attempt at it, from 1.
	Event   string `json:"event,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Failed says why the attempt failed; "" while it runs. Tidy: the delete policies were applied.
	Failed   string      `json:"failed,omitempty"`
	FailedAt metav1.Time `json:"failedAt,omitzero"`
	// Cause is the cause of the failure in the user cluster; empty: none.
	Cause string `json:"cause,omitempty"`
	Tidy  bool   `json:"tidy,omitempty"`
	// AskedFor is annotation reconcile-at of the attempt; another value begins the next attempt at once.
	AskedFor string   `json:"askedFor,omitempty"`
	Ended    []string `json:"ended,omitempty"`
}

// Set is the recorded state of the hooks of a revision.
type Set struct {
	// Action of the revision; "" if it has neither hooks nor a Helm release, and in records from before hooks were run.
	Action      Action `json:"action,omitempty"`
	Hooks       []Hook `json:"hooks,omitempty"`
	HooksDigest string `json:"hooksDigest,omitempty"`
	HooksState  State  `json:"hooking,omitzero"`
}

// Digest is the SHA-256, in hex, of hooks without their runs and without tests; "" is none.
func Digest(hooks []Hook) string {
	var counted []Hook
	for _, hook := range hooks {
		hook.Run = nil
		if slices.ContainsFunc(hook.Events, func(event string) bool { return event != testEvent }) {
			counted = append(counted, hook)
		}
	}
	if len(counted) == 0 {
		return ""
	}
	text, err := json.Marshal(counted)
	if err != nil { // impossible: the objects were JSON before
		panic(fmt.Sprintf("hooks are not JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// CarryRuns copies the runs of equal hooks to hooks that were rendered again.
func CarryRuns(before, after []Hook) []Hook {
	carried := slices.Clone(after)
	for i := range carried {
		for _, known := range before {
			if known.Path == carried[i].Path && slices.Equal(known.Object, carried[i].Object) {
				carried[i].Run = known.Run
			}
		}
	}
	return carried
}

// NotRun are the hooks without their runs.
func NotRun(hooks []Hook) []Hook {
	fresh := slices.Clone(hooks)
	for i := range fresh {
		fresh[i].Run = nil
	}
	return fresh
}

// WithoutHooked drops entries of objects that a hook accepted, or created again: these belong to the hook.
func (s *Set) WithoutHooked(inventory ownership.Inventory) ownership.Inventory {
	hooked := map[ownership.Key]types.UID{}
	for i := range s.Hooks {
		object, err := s.Hooks[i].Decode()
		if run := s.Hooks[i].Run; err == nil && run != nil && run.Phase == PhaseSucceeded {
			hooked[apply.Hook{Object: object}.Key()] = run.UID
		}
	}
	return slices.DeleteFunc(slices.Clone(inventory), func(entry ownership.Entry) bool {
		uid, found := hooked[entry.Key]
		return found && (uid == "" || entry.UID == "" || uid == entry.UID)
	})
}

// HasHooks says whether a revision has hooks of an event that has not ended.
func (s *Set) HasHooks(event string) bool {
	return !slices.Contains(s.HooksState.Ended, event) &&
		slices.ContainsFunc(s.Hooks, func(hook Hook) bool { return slices.Contains(hook.Events, event) })
}

// RanHooks says whether Jobs or Pods of an event succeeded, which may have had any effect.
func (s *Set) RanHooks(event string) bool {
	return slices.ContainsFunc(s.hooksOf(event), func(hook *Hook) bool {
		object, err := hook.Decode()
		return err == nil && hook.ran(event) && apply.Hook{Object: object}.Runs()
	})
}

// hooksOf has Helm's order (pkg/action/hooks.go): by weight, by name, then as sorted by kind.
func (s *Set) hooksOf(event string) []*Hook {
	var hooks []*Hook
	names := map[*Hook]string{} // each object is decoded once
	for i := range s.Hooks {
		if hook := &s.Hooks[i]; slices.Contains(hook.Events, event) {
			hooks, names[hook] = append(hooks, hook), hook.name()
		}
	}
	slices.SortStableFunc(hooks, func(a, b *Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), strings.Compare(names[a], names[b]))
	})
	return hooks
}

func (h *Hook) name() string {
	var head struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(h.Object, &head) // a hook without a name is last, and refused by the API server
	return head.Metadata.Name
}

// Decode returns the hook's object.
func (h *Hook) Decode() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(h.Object, &object.Object); err != nil {
		return nil, fmt.Errorf("decoding the hook of %q: %w", h.Path, err)
	}
	return object, nil
}

// Objects returns the objects of hooks.
func Objects(hooks []Hook) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(hooks))
	var err error
	for i := range hooks {
		if objects[i], err = hooks[i].Decode(); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (h *Hook) has(policy string) bool {
	if len(h.DeletePolicies) == 0 {
		return policy == DeleteBefore
	}
	return slices.Contains(h.DeletePolicies, policy)
}

func (h *Hook) ran(event string) bool {
	return h.Run != nil && h.Run.Event == event && h.Run.Phase == PhaseSucceeded
}
