package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Event is a call, as far as rights are concerned: audit.k8s.io/v1 has more.
type Event struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct {
		Code    int
		Message string
	}
	Annotations map[string]string
}

// longest is more than any event without bodies has.
const longest = 1 << 20

// Read reads the events of a log.
func Read(path string) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []Event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("reading %q, event %d: %w", path, len(events)+1, err)
		}
		events = append(events, event)
	}
	return events, lines.Err()
}

// ending is how an API server refuses to make something in a namespace that is being deleted.
const ending = "because it is being terminated"

// notHeld is how an API server refuses to bind a role with rights that the caller lacks. A manager hands out to agents what it holds, and
// that changes in tests.
const notHeld = "is attempting to grant RBAC permissions not currently held"

// isRefused holds for a call that was not let through: for want of a right, or by a policy. It does not where a namespace ends meanwhile,
// or a list of rights for agents changes, which the manager can not know before the call.
func (e Event) isRefused() bool {
	said := e.ResponseStatus
	return said.Code == http.StatusForbidden && !strings.Contains(said.Message, ending) && !strings.Contains(said.Message, notHeld)
}

// String tells whose call it was, and what came of it.
func (e Event) String() string {
	return fmt.Sprintf("%s: %s %s: %d, %s %s", e.User.Username, e.Verb, e.RequestURI, e.ResponseStatus.Code, e.ResponseStatus.Message,
		e.Annotations["authorization.k8s.io/reason"])
}

// resource is that of the call as rules write it, with its subresource.
func (e Event) resource() string {
	return strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
}
