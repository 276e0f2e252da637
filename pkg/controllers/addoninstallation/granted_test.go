package addoninstallation_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

const (
	grantKey = "01234567890123456789012345678901"
	canary   = "canary-of-the-platform"
)

// grantWorld is a seed with the key of marks and an add-on with versions 1.0.0 and 2.0.0. It also returns the log.
func grantWorld(t *testing.T) (*world, func() string) {
	t.Helper()
	w := newWorld(t)
	var mutex sync.Mutex
	var log bytes.Buffer
	w.logger = funcr.New(func(prefix, args string) {
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Fprintln(&log, prefix, args)
	}, funcr.Options{Verbosity: 6}) // the highest level of a manager: from 8 on client-go logs bodies
	w.markWith([]byte(grantKey))
	w.publish("granted", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	w.mark("granted", []byte(grantKey), nothing)
	w.start()
	return w, func() string {
		mutex.Lock()
		defer mutex.Unlock()
		return log.String()
	}
}

// ofSet creates an installation as the controller of sets does, at first without a valid grant.
func (w *world) ofSet(name string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(w.namespace, name, "granted", w.unique(name), given.In("1.0.0"), given.NewNamespace)
	object.Labels = map[string]string{kubermaticv1.LabelManagedBy: kubermaticv1.ManagedBySets, kubermaticv1.LabelSet: "s"}
	object.Annotations = map[string]string{kubermaticv1.AnnotationPlatformValues: w.grantFor(object, canary)}
	w.create(object)
	return object
}

func platformText(text string) []byte { return fmt.Appendf(nil, "version: %s\n", text) }

func (w *world) grantFor(object *kubermaticv1.AddonInstallation, text string) string {
	return w.grantOf(object, platformText(text))
}

func (w *world) grantOf(object *kubermaticv1.AddonInstallation, data []byte) string {
	digest := w.marks.ValuesDigest("shared", "values.yaml", data)
	return w.marks.Grant(installation.Grant{Secret: "shared", Key: "values.yaml", Content: digest}, object)
}

func (w *world) grant(object *kubermaticv1.AddonInstallation, text string) {
	w.t.Helper()
	w.edit(object, func(live *kubermaticv1.AddonInstallation) {
		live.Annotations[kubermaticv1.AnnotationPlatformValues] = w.grantFor(live, text)
	})
}

func (w *world) platformSecret(data []byte) *corev1.Secret {
	return given.MarkedSecret(kubermaticv1.UseValues, w.catalogue, "shared", map[string][]byte{"values.yaml": data})
}

func (w *world) putPlatform(data []byte) {
	w.t.Helper()
	expect.Update(w.t, w.seed, w.platformSecret(data))
}

// expectGranted waits for a reason of ValuesResolved or Ready and for content of the user cluster.
func (w *world) expectGranted(object *kubermaticv1.AddonInstallation, reason, says, has string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(live *kubermaticv1.AddonInstallation) error {
		reported := fmt.Sprintf("%+v", live.Status.Conditions)
		if !strings.Contains(reported, "Reason:"+reason+" ") || !strings.Contains(reported, says) || w.installed(live) != has {
			return fmt.Errorf("the user cluster has %q, want %q; conditions %s, want %s: %s", w.installed(live), has, reported, reason, says)
		}
		return nil
	})
}

// The platform's values reach the installations to which they are granted once the Secret exists, and are nowhere else.
// After a change of the Secret the applied revision is maintained until the grant follows. It fails if the layer is not
// merged (FromPlatform), if the digest is not compared (granted), and if lastApplied lacks it.
func TestGrantedValuesAreInstalled(t *testing.T) {
	t.Parallel()
	w, logged := grantWorld(t)
	object := w.ofSet("member")
	w.expectGranted(object, kubermaticv1.ReasonValuesMissing, "grants this installation nothing", "")
	w.grant(object, canary)
	w.expectGranted(object, kubermaticv1.ReasonValuesMissing, `Secret "shared", which its AddonSet grants, is not on this seed`, "")
	w.create(w.platformSecret(platformText(canary)))
	w.expectGranted(object, kubermaticv1.ReasonReady, "", canary)
	expect.Object(t, w.seed, object, func(live *kubermaticv1.AddonInstallation) error {
		want := w.marks.ValuesDigest("shared", "values.yaml", platformText(canary))
		if applied := live.Status.LastApplied; applied == nil || applied.PlatformValues != want {
			return fmt.Errorf("last applied is %+v", applied)
		}
		return nil
	})

	w.putPlatform(platformText(canary + "-2"))
	w.expectGranted(object, kubermaticv1.ReasonPinned, `Secret "shared" changed`, canary)
	w.spoilSettings(object)
	w.expectGranted(object, kubermaticv1.ReasonPinned, `Secret "shared" changed`, canary)
	w.grant(object, canary+"-2")
	w.expectGranted(object, kubermaticv1.ReasonReady, "", canary+"-2")

	w.expectUntold(object, logged(), canary)
}

// A grant is valid only for the object that the set wrote, and unusable content is reported with the Secret's name. It
// fails if Granted does not verify the mark (anything is rendered), and if an error of the content is reported
// unmasked.
func TestWhatIsNotGrantedIsNotInstalled(t *testing.T) {
	t.Parallel()
	w, _ := grantWorld(t)
	w.create(w.platformSecret(platformText(canary)))
	right := w.ofSet("right")
	w.grant(right, canary)
	w.expectGranted(right, kubermaticv1.ReasonReady, "", canary)
	copied, moved, forged := w.ofSet("copied"), w.ofSet("moved"), w.ofSet("forged")
	w.edit(copied, func(live *kubermaticv1.AddonInstallation) { live.Annotations = right.Annotations })
	w.edit(moved, func(live *kubermaticv1.AddonInstallation) {
		live.Annotations[kubermaticv1.AnnotationPlatformValues] = w.grantFor(live, canary)
		live.Spec.AddonRef.Version = "2.0.0"
	})
	w.edit(forged, func(live *kubermaticv1.AddonInstallation) {
		live.Annotations[kubermaticv1.AnnotationPlatformValues] = "shared/values.yaml/" + strings.Repeat("0", 64) + "/" + strings.Repeat("0", 64)
	})
	for _, one := range []*kubermaticv1.AddonInstallation{copied, moved, forged} {
		w.expectGranted(one, kubermaticv1.ReasonValuesMissing, "grants this installation nothing", "")
	}
	for text, says := range map[string]string{
		"{{ .canary }}": "contains template marks", strings.Repeat("x", 256<<10): "has more than 262144 bytes",
	} {
		text = "'" + text + "'"
		w.putPlatform(platformText(text))
		w.grant(right, text)
		w.expectGranted(right, kubermaticv1.ReasonValuesMissing, says, canary)
	}
}

// Without the labels of a set the annotation has no effect. It fails if claimsGrant only looks at the annotation.
func TestAnAnnotationOfATenantIsIgnored(t *testing.T) {
	t.Parallel()
	w, _ := grantWorld(t)
	w.create(w.platformSecret(platformText(canary)))
	object := w.install("granted", "1.0.0")
	w.edit(object, func(live *kubermaticv1.AddonInstallation) {
		live.Annotations = map[string]string{kubermaticv1.AnnotationPlatformValues: "anything"}
	})
	w.expectGranted(object, kubermaticv1.ReasonReady, "", "1.0.0")
}
