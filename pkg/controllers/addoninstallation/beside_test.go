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

// Functions that let worlds run side by side, and check without waiting that an effect occurs or not.

// hurry accelerates the controller's clock by a factor during a wait.
func (w *world) hurry(times int, wait func()) {
	w.t.Helper()
	kit.Hurry(w.clock, times, wait)
}

// begun is the number of reconciliations of an installation that began since the last start of the controller.
func (w *world) begun(object client.Object) int {
	return w.manager.Began(controller, object.GetNamespace(), object.GetName())
}

// afterwards calls a function that causes a reconciliation of an installation, and waits until a reconciliation that
// began after that has ended.
func (w *world) afterwards(object client.Object, cause func()) {
	w.t.Helper()
	w.manager.After(cause, controller, object.GetNamespace(), object.GetName())
}

// label causes one reconciliation of an installation, without another change.
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

// afterAnother requests a reconciliation of an installation, and waits for its end.
func (w *world) afterAnother(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.afterwards(object, func() { w.lookAgain(object) })
}

const (
	controller = "addoninstallation"
	// labelWorld marks objects of the whole cluster with their world.
	labelWorld = "test.example.com/world"
	// labelLook has the time of a requested reconciliation.
	labelLook = "test.example.com/look"
)

// withOwnLists hides from the controller the lists for agents of other worlds and, if the world has one namespace,
// objects for agents of other worlds.
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
	// namespace is the only one of the world; empty if it has several.
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
