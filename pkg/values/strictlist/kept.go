package strictlist

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// State is the known state of a list.
type State[T any] struct {
	// Items in force; the last good ones if the present list can't be read.
	Items []T
	// Read is true once a good list was read.
	Read bool
	// Absent is true while there is no list.
	Absent bool
	// Problem is why the present list is not in force.
	Problem error
}

// Kept keeps the last good list, and reads each version of its ConfigMap once. The zero value has none.
type Kept[T any] struct {
	mutex   sync.Mutex
	version string
	state   State[T]
}

// Update reads the present ConfigMap. It is nil if there is none: then the items stay. Changed: it has another
// version.
func (k *Kept[T]) Update(found *corev1.ConfigMap, read func(found *corev1.ConfigMap) ([]T, error)) (state State[T], changed bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if found == nil {
		k.version, k.state.Absent, k.state.Problem = "", true, nil
		return k.state, false
	}
	version := string(found.UID) + "/" + found.ResourceVersion
	if version == k.version {
		return k.state, false
	}
	k.version, k.state.Absent = version, false
	items, err := read(found)
	if k.state.Problem = err; err == nil {
		k.state.Items, k.state.Read = items, true
	}
	return k.state, true
}

// Empty treats the absence of a list as an empty one.
func (k *Kept[T]) Empty() State[T] {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.version, k.state = "", State[T]{Read: true, Absent: true}
	return k.state
}

// With returns what Update would return, and changes nothing.
func (k *Kept[T]) With(found *corev1.ConfigMap, read func(found *corev1.ConfigMap) ([]T, error)) State[T] {
	k.mutex.Lock()
	fresh := Kept[T]{version: k.version, state: k.state}
	k.mutex.Unlock()
	state, _ := fresh.Update(found, read)
	return state
}

// State returns the state by now.
func (k *Kept[T]) State() State[T] {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.state
}

// Text returns the list's text in its ConfigMap. The error is an *Error.
func (l List) Text(found *corev1.ConfigMap) (string, error) {
	text, has := found.Data[l.Key]
	if !has {
		return "", &Error{ConfigMap: l.ConfigMap, Key: l.Key, Problem: "the key is missing"}
	}
	return text, nil
}
