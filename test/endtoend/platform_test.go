package endtoend_test

import (
	"errors"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// cluster is the user cluster of these tests.
var cluster = sandbox.UserClusters()[0]

// TestPlatform runs every end-to-end test on one platform, one after the other: a platform is seven control planes.
func TestPlatform(t *testing.T) {
	box := start(t, sandbox.Options{
		TwoMinors: true, Environment: listing, Elect: []string{sandbox.Master, sandbox.Seeds()[1]}, Approve: approves,
	})
	// KKP's other kinds, where watches begin with a list: its next manager, at the latest, finds them.
	if err := fleet.InstallCRDs(t.Context(), box.Server(sandbox.Seeds()[1]).Config, "../../pkg/clusters/cluster/testdata/kkp"); err != nil {
		t.Fatal(err)
	}
	t.Run("bad input is refused at once", func(t *testing.T) { testRefusedAtOnce(t, box) })
	t.Run("bad input is explained and changes nothing", func(t *testing.T) { testExplained(t, box) })
	t.Run("admission refuses and warns", func(t *testing.T) { testAdmission(t, box) })
	t.Run("queries are answered as clusters are offered", func(t *testing.T) { testQuery(t, box) })
	t.Run("metrics are for who may get them", func(t *testing.T) { testMetrics(t, box) })
	t.Run("the pull Secret comes and goes", func(t *testing.T) { testPullSecret(t, box, cluster) })
	t.Run("an agent logs in, is rotated and leaves nothing", func(t *testing.T) { testAgents(t, box) })
	t.Run("an installation follows the catalogue", func(t *testing.T) { testFollowsTheCatalogue(t, box) })
	t.Run("content comes from every kind of source", func(t *testing.T) { testEverySource(t, box) })
	t.Run("killed while following a request, nothing is lost or made twice", func(t *testing.T) { testKilledWhileFollowing(t, box) })
	t.Run("a set rolls by ring, halts and leaves nothing", func(t *testing.T) { testSetStory(t, box) })
	t.Run("leaders killed while they write lose nothing, and write nothing twice", func(t *testing.T) { testLeadersKilled(t, box) })
	t.Run("an unreachable cluster is told, and let go", func(t *testing.T) { testUnreachable(t, box) })
	t.Run("what is hijacked is not believed, or left in one step", func(t *testing.T) { testHijacked(t, box) })
	t.Run("what changes on the master is followed", func(t *testing.T) { testFollowed(t, box) })
	t.Run("what is found otherwise than it was written is mended", func(t *testing.T) { testMended(t, box) })
	t.Run("core add-ons can't be lost", func(t *testing.T) { testCoreStory(t, box) })
	t.Run("no call is refused, and no right is spare", func(t *testing.T) { testRights(t, box) })
}

// start starts a sandbox whose API servers note the managers' calls, whose seeds have a pull Secret and whose master has metrics over TLS.
func start(t *testing.T, options sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	options.Folder, options.Progress, options.Audit = t.TempDir()+"/sandbox", fleet.NewProgress(t.Output()), true
	flags := []byte("seed --image-pull-secret=" + mirror + "\nmaster --metrics-secure\n")
	if err := errors.Join(os.Mkdir(options.Folder, 0o700), os.WriteFile(options.Folder+"/flags", flags, 0o600)); err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Stop)
	return box
}

func commit(t *testing.T, box *sandbox.Sandbox, repository string, files map[string]string) {
	t.Helper()
	if _, err := box.Sources.Commit(repository, files); err != nil {
		t.Fatal(err)
	}
}

// catalogueOf has one add-on, of its own name, in one version.
func catalogueOf(name string, version kubermaticv1.AddonVersion) *kubermaticv1.AddonCatalogue {
	return given.Catalogue(sandbox.Namespace, name, given.Addon(name, version))
}

func gitVersion(box *sandbox.Sandbox, repository, path string) kubermaticv1.AddonVersion {
	return given.Version("1.0.0", &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
		Remote: kubermaticv1.GitRemote(box.Sources.GitURL + "/" + repository + ".git"), Path: path,
		CASecretRef: &kubermaticv1.LocalReference{Name: sandbox.CASecret},
	}})
}

func chartVersion(box *sandbox.Sandbox, chart, version string) kubermaticv1.AddonVersion {
	return given.Version("1.0.0", &kubermaticv1.Source{Helm: &kubermaticv1.HelmSource{
		URL: box.Sources.ChartsURL, Chart: chart, Version: version,
		CASecretRef: &kubermaticv1.LocalReference{Name: sandbox.CASecret},
	}})
}

func newInstallation(name, addon string) *kubermaticv1.AddonInstallation {
	return given.Installation(cluster.Namespace(), name, addon, name, given.NewNamespace)
}

// ready waits until an installation is Ready at its present generation.
func ready(t *testing.T, seed client.Client, installation *kubermaticv1.AddonInstallation) *kubermaticv1.AddonInstallation {
	t.Helper()
	return expect.HasCondition(t, seed, installation.DeepCopy(), expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
}
