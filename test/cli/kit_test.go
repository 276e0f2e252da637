package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"}, fleet.ClusterOptions{Name: "other"})
}

// terminal is what a call of the command runs on.
type terminal struct {
	t testing.TB
	// kubeconfig is the file of the caller.
	kubeconfig string
	width      int
	colour     bool
	// input is what the caller answers; nil: there is no terminal to ask on.
	input io.Reader
	// ctx ends the call; nil: that of the test.
	ctx context.Context
	// notes gets what is written to the error stream at once; may be nil.
	notes io.Writer
}

// on is a terminal of cluster-admin, whose output is no terminal.
func on(t testing.TB, cluster string) *terminal {
	t.Helper()
	return as(t, fleet.Shared().Cluster(cluster).Kubeconfig)
}

// as is a terminal with this kubeconfig.
func as(t testing.TB, kubeconfig []byte) *terminal {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	expect.NoError(t, os.WriteFile(file, kubeconfig, 0o600))
	return &terminal{t: t, kubeconfig: file}
}

// answered is what a call wrote, and its exit code.
type answered struct {
	out, err string
	code     int
}

// run calls the command, a day after the objects of the test were created.
func (c *terminal) run(arguments ...string) answered {
	c.t.Helper()
	return c.runWith("", arguments...)
}

// runWith is run with an input.
func (c *terminal) runWith(input string, arguments ...string) answered {
	c.t.Helper()
	var out, errOut bytes.Buffer
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &errOut})
	tool.Width, tool.Colour = c.width, c.colour
	tool.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	ctx := c.t.Context()
	if c.ctx != nil {
		ctx = c.ctx
	}
	if c.notes != nil {
		tool.ErrOut = io.MultiWriter(&errOut, c.notes)
	}
	if c.input != nil {
		tool.In, tool.Asks = c.input, true
	}
	code := cli.Run(ctx, tool, append([]string{"--kubeconfig", c.kubeconfig}, arguments...), verbs.All()...)
	return answered{out.String(), errOut.String(), code}
}

// fails checks that a call printed nothing but one line with these texts, and its exit code.
func (a answered) fails(t testing.TB, code int, texts ...string) {
	t.Helper()
	if a.code != code || a.out != "" || strings.Count(a.err, "\n") != 1 {
		t.Errorf("exit code %d, want %d, output %q, errors %q", a.code, code, a.out, a.err)
	}
	for _, text := range texts {
		if !strings.Contains(a.err, text) {
			t.Errorf("error %q has no %q", a.err, text)
		}
	}
}

// works checks that a call succeeded.
func (a answered) works(t testing.TB) answered {
	t.Helper()
	if a.code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", a.code, a.err)
	}
	return a
}

// inState is an installation with a status.
func inState(
	t testing.TB, seed client.Client, made *v1.AddonInstallation, ready metav1.Condition, change ...func(*v1.AddonInstallation),
) *v1.AddonInstallation {
	t.Helper()
	expect.Create(t, seed, made)
	ready.Type, ready.LastTransitionTime, ready.ObservedGeneration = v1.ConditionReady, metav1.Now(), made.Generation
	made.Status.Conditions = []metav1.Condition{ready}
	made.Status.ObservedGeneration = made.Generation
	for _, one := range change {
		one(made)
	}
	expect.UpdateStatus(t, seed, made)
	return made
}

// at is a status with an installed version.
func at(version string) func(*v1.AddonInstallation) {
	return func(made *v1.AddonInstallation) { made.Status.Version, made.Status.Target = version, version }
}

// ready is condition Ready, True.
var ready = metav1.Condition{Status: metav1.ConditionTrue, Reason: v1.ReasonReady, Message: "all objects are healthy"}

// notReady is condition Ready, False.
func notReady(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// cluster makes the namespace of a KKP Cluster on the seed, with what the cluster is offered.
func cluster(t testing.TB, name string, change ...func(*v1.AddonCatalogue)) (client.Client, string) {
	t.Helper()
	seed, namespace := world.Client(t, fleet.Shared().Cluster("seed").Config), "cluster-"+name
	expect.Create(t, seed, world.Namespace(namespace))
	offered(t, seed, client.ObjectKey{Namespace: namespace, Name: v1.AvailableCatalogue}, change...)
	return seed, namespace
}

// offered is the available catalogue of a cluster.
func offered(t testing.TB, seed client.Client, key client.ObjectKey, change ...func(*v1.AddonCatalogue)) {
	t.Helper()
	made := given.Available(key)
	for _, one := range change {
		one(made)
	}
	status := made.Status.DeepCopy()
	expect.Create(t, seed, made)
	made.Status = *status
	expect.UpdateStatus(t, seed, made)
}

// user is the kubeconfig of a user with rights in one namespace of the seed only.
func user(t testing.TB, seed client.Client, namespace string, rules ...rbacv1.PolicyRule) []byte {
	t.Helper()
	return userNamed(t, seed, namespace, "user", rules...)
}

// userNamed is user for several users of a namespace.
func userNamed(t testing.TB, seed client.Client, namespace, name string, rules ...rbacv1.PolicyRule) []byte {
	t.Helper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: named}
	expect.Create(t, seed, account, &rbacv1.Role{ObjectMeta: named, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: named.Name}},
	})
	kubeconfig, err := fleet.Shared().Cluster("seed").KubeconfigFor(expect.Token(t, seed, account))
	expect.NoError(t, err)
	return kubeconfig
}
