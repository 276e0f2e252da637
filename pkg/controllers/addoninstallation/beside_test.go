package addoninstallation_test

import (
	"maps"
	"net/http"
	"strconv"
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

// withOwnLists has the controller see no lists of what agents may have but those of its world.
func (w *world) withOwnLists(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return ownLists{next, w.id} })
	return own
}

type ownLists struct {
	next http.RoundTripper
	id   string
}

// RoundTrip implements http.RoundTripper.
func (o ownLists) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && request.URL.Path == "/apis/rbac.authorization.k8s.io/v1/clusterroles" {
		request = request.Clone(request.Context())
		query := request.URL.Query()
		query.Set("labelSelector", query.Get("labelSelector")+","+labelWorld+"="+o.id)
		request.URL.RawQuery = query.Encode()
	}
	return o.next.RoundTrip(request)
}
