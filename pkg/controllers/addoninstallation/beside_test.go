package addoninstallation_test

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	kit "github.com/trellis-addons/trellis/test/world"
)

// What lets worlds run side by side, and shows without waiting what happens and what does not.

// hurry has the controller's clock go so many times as fast while something is waited for.
func (w *world) hurry(times int, wait func()) {
	w.t.Helper()
	kit.Hurry(w.clock, times, wait)
}

// begun is how many reconciliations of an installation began, since the controller was started last.
func (w *world) begun(object client.Object) int {
	return w.manager.Began(controller, object.GetNamespace(), object.GetName())
}

// afterwards does what has the controller look at an installation, and waits until a reconciliation that began after that has ended.
func (w *world) afterwards(object client.Object, cause func()) {
	w.t.Helper()
	w.manager.After(cause, controller, object.GetNamespace(), object.GetName())
}

// label has the controller make one pass over an installation, for which nothing else is different.
func (w *world) label(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		labels := maps.Clone(object.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelLook] = strconv.FormatInt(time.Now().UnixNano(), 10)
		object.Labels = labels
	})
}

// afterAnother asks for a look at an installation, and waits for its end.
func (w *world) afterAnother(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.afterwards(object, func() { w.lookAgain(object) })
}

const (
	controller = "addoninstallation"
	// labelWorld marks what is of the whole cluster with its world.
	labelWorld = "test.example.com/world"
	// labelLook says when a pass was asked for.
	labelLook = "test.example.com/look"
)

// withOwnLists has the controller see no lists of what agents may have but those of its world, and nothing that is made for agents of other
// worlds, where it has one namespace.
func (w *world) withOwnLists(config *rest.Config) *rest.Config {
	lists := ownLists{id: w.id}
	if len(w.neighbours) == 0 {
		lists.namespace = w.namespace
	}
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper {
		lists.next = next
		return lists
	})
	return own
}

type ownLists struct {
	next http.RoundTripper
	id   string
	// namespace is the only one of the world; empty where it has several.
	namespace string
}

// RoundTrip implements http.RoundTripper.
func (o ownLists) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	selector := query.Get("labelSelector")
	switch {
	case request.Method != http.MethodGet || selector == "":
		return o.next.RoundTrip(request)
	case strings.Contains(selector, kubermaticv1.LabelAgents):
		query.Set("labelSelector", selector+","+labelWorld+"="+o.id)
	case selector == kubermaticv1.LabelAccess && o.namespace != "" && query.Get("fieldSelector") == "":
		query.Set("fieldSelector", "metadata.namespace="+o.namespace)
	}
	request = request.Clone(request.Context())
	request.URL.RawQuery = query.Encode()
	return o.next.RoundTrip(request)
}
