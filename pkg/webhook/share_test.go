package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/webhook"
)

// crowded is a cache that has so many installations of the cluster, with values of so many bytes.
type crowded struct {
	client.Reader
	count, bytes int
}

func (c crowded) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	found, isThese := list.(*v1.AddonInstallationList)
	if !isThese {
		return c.Reader.List(ctx, list, options...)
	}
	for i := range c.count {
		one := installation("1.0.0", fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", c.bytes)))
		one.Name = fmt.Sprintf("web-%d", i)
		found.Items = append(found.Items, *one)
	}
	return nil
}

// F12: Red when one cluster may have installations, or values, without a bound; when what is there can't be made smaller; and when a Core
// add-on is refused for it.
func TestInstallationsOfAClusterHaveABound(t *testing.T) {
	c := connect(t)
	large := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 200<<10))
	core := func(i *v1.AddonInstallation) { i.Spec.CoreAddon = true }
	ofSet := func(i *v1.AddonInstallation) { i.Labels = map[string]string{v1.LabelSet: "monitoring"} }
	first := func(i *v1.AddonInstallation) { i.Name = "web-0" }
	for _, test := range []struct {
		why           string
		count, bytes  int
		before, after *v1.AddonInstallation
		refused       string
	}{
		{why: "one more than 999", count: 999, after: installation("1.0.0", "")},
		{why: "one more than 1000", count: 1000, after: installation("1.0.0", ""), refused: "the cluster has 1000 AddonInstallations, and at most 1000 are allowed"},
		{why: "a Core add-on", count: 1000, after: with(installation("1.0.0", large), core)},
		{why: "one of a set", count: 1000, after: with(installation("1.0.0", large), ofSet)},
		{why: "an edit of one of them", count: 1001, before: with(installation("1.0.0", ""), first), after: with(installation("1.1.0", ""), first)},
		{why: "large values", count: 80, bytes: 200 << 10, after: installation("1.0.0", "")},
		{why: "more large values", count: 82, bytes: 200 << 10, after: installation("1.0.0", large), refused: "at most 16384 KiB are allowed"},
		{why: "values that grow", count: 82, bytes: 200 << 10, before: with(installation("1.0.0", ""), first),
			after: with(installation("1.0.0", large), first), refused: "spec.values"},
		{why: "values that shrink", count: 100, bytes: 200 << 10, before: with(installation("1.0.0", large), first),
			after: with(installation("1.0.0", `{"a":"x"}`), first)},
	} {
		t.Run(test.why, func(t *testing.T) {
			handler := &webhook.Installations{
				Reader: crowded{c, test.count, test.bytes}, Marks: mergedcatalogue.New(logr.Discard()), Clusters: living("1.36.3"), CatalogueNamespace: merged,
			}
			answer := handler.Handle(t.Context(), question(t, orNil(test.before), orNil(test.after)))
			if test.refused != "" {
				expectRefused(t, answer, test.refused)
			} else if !answer.Allowed {
				t.Errorf("it is refused: %s", messageOf(answer))
			}
		})
	}
}
