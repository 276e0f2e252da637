package apply_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/lab"
)

// full answers writes as an API server whose etcd is full: with a Status that has no reason.
func full(next http.RoundTripper) http.RoundTripper {
	return lab.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || request.URL.Query().Get("dryRun") != "" {
			return next.RoundTrip(request)
		}
		const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcdserver: mvcc: database space exceeded"}`
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	})
}

// TestAFullEtcdIsNoFaultOfTheObject fails if an internal error without a reason counts as the object's fault regardless
// of a dry run: a correct add-on would be blamed, and retried after minutes, not seconds.
// TestRefusalsKeepValuesToThemselves has objects at fault.
func TestAFullEtcdIsNoFaultOfTheObject(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	config := rest.CopyConfig(fleet.Shared().Cluster("user").Config)
	config.Wrap(full)
	l.Target.Metadata, l.Target.Dynamic = lab.Must(metadata.NewForConfig(config))(t), lab.Must(dynamic.NewForConfig(config))(t)
	for why, objects := range map[string]string{
		"a change": strings.Replace(lab.Settings, "green", "blue", 1), "a new object": strings.Replace(lab.Settings, "settings", "other", 1),
	} {
		progress, err := apply.NewRollout(l.Owner, l.Prepare(objects), inventory, apply.RolloutOptions{}).Advance(t.Context(), l.Target)
		if err == nil || len(progress.Refused) > 0 {
			t.Errorf("%s: got %v, refused %v; want an error that passes", why, err, progress.Refused)
		}
	}
	hook := apply.Hook{Object: l.Prepare(strings.Replace(lab.Settings, "settings", "hook", 1))[0], Run: "1"}
	if _, refused, err := apply.CreateHook(t.Context(), l.Target, l.Owner, hook); err == nil || refused.Text != "" {
		t.Errorf("a hook: got %v, refused %q; want an error that passes", err, refused)
	}
}
