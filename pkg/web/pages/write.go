package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// operation is one of a JSON patch.
type operation map[string]any

func setOrRemove(path string, value any, removes bool) operation {
	if removes {
		return operation{"op": "remove", "path": path}
	}
	return operation{"op": "add", "path": path, "value": value}
}

// annotated is an object with annotations.
type annotated interface{ GetAnnotations() map[string]string }

// annotating sets or removes an annotation.
func annotating(of annotated, key, value string, removes bool) (all []operation) {
	if len(of.GetAnnotations()) == 0 && !removes {
		all = append(all, operation{"op": "add", "path": "/metadata/annotations", "value": map[string]string{}})
	}
	return append(all, setOrRemove("/metadata/annotations/"+strings.ReplaceAll(key, "/", "~1"), value, removes))
}

// preconditioned is a patch that the API server refuses if the spec changed since it was read. Managers write the status all the time, so
// that the resourceVersion would refuse most writes while work goes on.
func preconditioned(generation int64, operations []operation) []operation {
	return append([]operation{{"op": "test", "path": "/metadata/generation", "value": generation}}, operations...)
}

// shownAs identifies what a page showed of an object before an action: its spec, and the facts that the user confirms.
func shownAs(generation int64, facts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(facts, "\x00")))
	return strconv.FormatInt(generation, 10) + "-" + hex.EncodeToString(sum[:6])
}

func objectOf(of *v1.AddonInstallation) upstream.Object {
	return upstream.Object{Resource: resource, Namespace: of.Namespace, Name: of.Name}
}

// read reads the installation of a path.
func (s *Site) read(v *visit) (*upstream.Seed, *v1.AddonInstallation, error) {
	seed, err := s.seedOf(v)
	if err != nil {
		return nil, nil, err
	}
	found := &v1.AddonInstallation{}
	object := upstream.Object{Resource: resource, Namespace: v.PathValue("namespace"), Name: v.PathValue("name")}
	return seed, found, seed.API.Get(v.Context(), v.token(), object, nil, found)
}

func clusterOf(one *v1.AddonInstallation) string { return view.ClusterOf(one) }

// patch changes an object whose spec has this generation.
func patch(v *visit, with *upstream.Target, object upstream.Object, generation int64, operations []operation) error {
	_, err := with.Write(v.Context(), v.token(), upstream.Write{
		Object: object, Method: http.MethodPatch, Body: preconditioned(generation, operations),
	})
	if upstream.Is(err, http.StatusConflict) {
		return changed(object.Name)
	}
	return err
}
