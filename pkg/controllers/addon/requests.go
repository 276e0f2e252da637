package addon

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
)

// request is one entry of annotation initial-installations. It has no coreAddon, metadata or namespace: a user who
// may edit a Cluster must not get more than an ordinary installation.
type request struct {
	Name            string            `json:"name"`
	AddonRef        v1.AddonReference `json:"addonRef"`
	TargetNamespace string            `json:"targetNamespace"`
	CreateNamespace bool              `json:"createNamespace,omitempty"`
	Values          map[string]any    `json:"values,omitempty"`
}

// entry is a request as it was read, or why it can't be read.
type entry struct {
	raw     json.RawMessage
	request request
	// problem is empty if the entry can be carried out.
	problem string
}

// readRequests reads the annotation. The problem says why it is no list, empty if it is one; wrong entries have their
// own problems. Neither quotes a value.
func readRequests(text string) (entries []entry, problem string) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, "it is not a JSON list"
	}
	entries = make([]entry, 0, len(raw))
	seen := map[string]bool{}
	for _, one := range raw {
		read := readRequest(one)
		if read.problem == "" && seen[read.request.Name] {
			read.problem = fmt.Sprintf("name %q is used twice", read.request.Name)
		}
		seen[read.request.Name] = true
		entries = append(entries, read)
	}
	return entries, ""
}

// readRequest reads one entry strictly: unknown and repeated fields are problems.
func readRequest(raw json.RawMessage) entry {
	read := entry{raw: raw}
	strict, err := kjson.UnmarshalStrict(raw, &read.request)
	switch {
	case err != nil:
		read.problem = "a field has a value of the wrong type"
	case len(strict) > 0:
		texts := make([]string, len(strict))
		for i, problem := range strict {
			texts[i] = problem.Error()
		}
		read.problem = text.Names(texts, mostNamed)
	default:
		read.problem = read.request.missing()
	}
	return read
}

func (r *request) missing() string {
	var fields []string
	for _, field := range []struct{ name, value string }{
		{"name", r.Name}, {"addonRef.name", string(r.AddonRef.Name)}, {"targetNamespace", r.TargetNamespace},
	} {
		if field.value == "" {
			fields = append(fields, field.name)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return strings.Join(fields, " and ") + " must be set"
}

// installation is the requested installation in a cluster, with the request's digest, by which it is recognised after
// a crash. The template is that of its add-on; nil if none is known.
func (r *request) installation(in target.Ref, by *v1.Template) (*v1.AddonInstallation, error) {
	digest, err := catalogue.Digest([]any{in.UID, r})
	if err != nil {
		return nil, err
	}
	made := &v1.AddonInstallation{}
	made.Namespace, made.Name = in.Namespace, in.NameOf(r.Name)
	made.Annotations = map[string]string{v1.AnnotationRequest: digest}
	made.Spec = v1.AddonInstallationSpec{
		AddonRef: r.AddonRef, TargetNamespace: r.TargetNamespace, CreateNamespace: r.CreateNamespace,
		ReleaseName: helmrelease.NameForItem(in, r.Name, by),
	}
	if !in.IsKKP() {
		made.Spec.ClusterName = in.Name
	}
	if r.Values != nil {
		encoded, err := json.Marshal(r.Values)
		if err != nil {
			return nil, err
		}
		made.Spec.Values = &runtime.RawExtension{Raw: encoded}
	}
	return made, nil
}
