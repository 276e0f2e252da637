package catalogue_test

import (
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func TestRestrictions(t *testing.T) {
	for _, test := range []struct {
		why, text string
		want      catalogue.Restrictions
		refused   bool
	}{
		{why: "none", text: ""},
		{why: "one", text: "kube-namespaces", want: catalogue.Restrictions{KubeNamespaces: true}},
		{why: "both", text: " pod-security,kube-namespaces", want: catalogue.Restrictions{KubeNamespaces: true, PodSecurity: true}},
		{why: "a slip must not open", text: "kube-namespace", refused: true},
	} {
		got := catalogue.Restrictions{PodSecurity: test.why == "none"}
		if err := got.UnmarshalText([]byte(test.text)); (err != nil) != test.refused || err == nil && got != test.want {
			t.Errorf("%s: got %+v and %v, want %+v", test.why, got, err, test.want)
		}
	}
	text, err := catalogue.Restrictions{KubeNamespaces: true, PodSecurity: true}.MarshalText()
	if err != nil || string(text) != "kube-namespaces,pod-security" {
		t.Errorf("got %q and %v", text, err)
	}
}

func TestRestrictedTarget(t *testing.T) {
	closed := catalogue.Restrictions{KubeNamespaces: true}
	for _, name := range []string{"kube-system", "kube-public", "kube-node-lease"} {
		if reported := closed.Target(name); !strings.Contains(reported, "--restrict-custom-addons=kube-namespaces") {
			t.Errorf("%s: told %q", name, reported)
		}
		if reported := (catalogue.Restrictions{PodSecurity: true}).Target(name); reported != "" {
			t.Errorf("%s: refused where nothing is closed: %q", name, reported)
		}
	}
	for _, name := range []string{"kube-state-metrics", "kube-", "default", ""} {
		if reported := closed.Target(name); reported != "" {
			t.Errorf("%q is nobody's, and refused: %q", name, reported)
		}
	}
}
