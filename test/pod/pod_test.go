package pod

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	namespace = "pods"
	account   = "somebody"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	fleet.Main(m, fleet.ClusterOptions{Name: "one", Controllers: true})
}

// programs builds package enter and the probe, once.
var programs = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(fleet.Shared().Folder(), "programs")
	return folder, binaries.BuildOwn(context.Background(), root, folder, EnterPackage, "./test/pod/testdata/probe")
})

func newNode(t *testing.T) (*Node, string) {
	t.Helper()
	folder, err := programs()
	expect.NoError(t, err)
	of := fleet.Shared().Cluster("one")
	return &Node{
		Fleet: fleet.Shared(), Cluster: of, Client: world.Client(t, of.Config), Folder: t.TempDir(), Enter: filepath.Join(folder, Enter),
	}, filepath.Join(folder, "probe")
}

// probe is a pod as the charts' are, with a volume of each kind.
func probe() corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: account, SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(65532))},
		Volumes: []corev1.Volume{
			{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "known"}}},
		},
		Containers: []corev1.Container{{
			Args: []string{"--limit=$(LIMIT)", "$(ABSENT)", "/var/own/file", "/etc/secret/word"},
			Env: []corev1.EnvVar{
				{Name: "TRY", Value: ""},
				{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}},
			},
			Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
			SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "own", MountPath: "/var/own"}, {Name: "secret", MountPath: "/etc/secret", ReadOnly: true},
			},
		}},
	}
}

// TestAContainerHasWhatAPodHas: the process is the pod's user, has no capability and no way to one, sees its program, its volumes and a few
// devices, writes to nothing but its own volume, and a Secret's volume follows the Secret. Red when anything of this machine is
// left to it.
func TestAContainerHasWhatAPodHas(t *testing.T) {
	node, program := newNode(t)
	known := layOut(t, node.Client)
	left, err := unix.Open("/etc", unix.O_RDONLY, 0) // it stays open in programs that are started
	expect.NoError(t, err)
	defer unix.Close(left)
	reported := filepath.Join(t.TempDir(), "log")
	process, err := node.Run(t.Context(), Container{
		Name: "probe", Namespace: namespace, Spec: probe(), Program: program, Environment: []string{"TRY=yes"}, Log: reported,
	})
	expect.NoError(t, err)
	t.Cleanup(process.Kill)
	host, port, _ := strings.Cut(strings.TrimPrefix(node.Cluster.Config.Host, "https://"), ":")
	for _, line := range []string{
		"Uid 65532", "Gid 65532", "NoNewPrivs 1", "Seccomp 2", "CapPrm 0000000000000000", "CapEff 0000000000000000", "CapInh 0000000000000000",
		"CapAmb 0000000000000000", "CapBnd 0000000000000000",
		"arguments [/probe --limit=1073741824 $(ABSENT) /var/own/file /etc/secret/word]",
		fmt.Sprintf("environment [PATH=/ HOME=/ KUBERNETES_SERVICE_HOST=%s KUBERNETES_SERVICE_PORT=%s LIMIT=1073741824 TRY=yes]", host, port),
		"folder / [dev etc probe proc var] <nil>", "folder /dev [full null random urandom zero] <nil>",
		"write /written read-only file system", "write /dev/written read-only file system", "write /probe read-only file system",
		"write /proc/sys/kernel/domainname read-only file system", "ends with its parent by signal 9 <nil>",
		"write /var/own/written <nil>", "write /etc/secret/written read-only file system", "null <nil>",
		"mount operation not permitted", "namespace operation not permitted", "chroot operation not permitted",
		"token 3 <nil>", "followed first <nil>",
	} {
		expect.Eventually(t, expect.Patience, func() error { return says(reported, line) })
	}
	if err := says(reported, fmt.Sprintf("open %d", left)); err == nil {
		t.Error("a file of whoever started it is open")
	}
	known.Data["word"] = []byte("second")
	expect.Update(t, node.Client, known)
	expect.Eventually(t, expect.Patience, func() error { return says(reported, "followed second <nil>") })
	if err := process.Failure(); err != nil {
		t.Error(err)
	}
}

// TestAnOpenNodeRunsPlainProcesses: they find their volumes and who they are where these are on this machine.
func TestAnOpenNodeRunsPlainProcesses(t *testing.T) {
	node, program := newNode(t)
	layOut(t, node.Client)
	node.Open = true
	reported := filepath.Join(t.TempDir(), "log")
	process, err := node.Run(t.Context(), Container{Name: "probe", Namespace: namespace, Spec: probe(), Program: program, Log: reported})
	expect.NoError(t, err)
	t.Cleanup(process.Kill)
	folder := filepath.Join(node.Folder, "probe")
	for _, line := range []string{
		fmt.Sprintf("arguments [%s --limit=1073741824 $(ABSENT) %s/own/file %s/secret/word]", program, folder, folder),
		"followed first <nil>", "KUBECONFIG=" + folder + "/account.yaml]",
	} {
		expect.Eventually(t, expect.Patience, func() error { return says(reported, line) })
	}
}

// TestAPodThatIsNotUnderstoodDoesNotRun: what a node would do and this one does not is told, and not left out.
func TestAPodThatIsNotUnderstoodDoesNotRun(t *testing.T) {
	node, program := newNode(t)
	layOut(t, node.Client)
	for want, change := range map[string]func(*corev1.PodSpec){
		"it has to have one container": func(spec *corev1.PodSpec) { spec.SecurityContext = nil },
		"nothing that is run before":   func(spec *corev1.PodSpec) { spec.InitContainers = spec.Containers },
		"it has a command":             func(spec *corev1.PodSpec) { spec.Containers[0].Command = []string{"sh"} },
		"a user of its own": func(spec *corev1.PodSpec) {
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0))}
		},
		`volume "own" is of a kind that no pod here has`: func(spec *corev1.PodSpec) {
			spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}
		},
		`mount "/var/own" is of no volume`:                      func(spec *corev1.PodSpec) { spec.Volumes = spec.Volumes[1:] },
		`variable "LIMIT" is made of what no pod here has`:      func(spec *corev1.PodSpec) { spec.Containers[0].Env[1].ValueFrom = &corev1.EnvVarSource{} },
		`volume "secret": secrets "unknown" not found`:          func(spec *corev1.PodSpec) { spec.Volumes[1].Secret.SecretName = "unknown" },
		`token of "nobody": serviceaccounts "nobody" not found`: func(spec *corev1.PodSpec) { spec.ServiceAccountName = "nobody" },
	} {
		spec := probe()
		change(&spec)
		_, err := node.Run(t.Context(), Container{Name: "probe", Namespace: namespace, Spec: spec, Program: program})
		if err == nil || !strings.Contains(err.Error(), `pod "probe"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
}

// TestAVolumeOfAConfigMapHasItsItems: all of it, or those under their names, and never less than was asked for.
func TestAVolumeOfAConfigMapHasItsItems(t *testing.T) {
	node, _ := newNode(t)
	layOut(t, node.Client)
	from := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "told"}, Data: map[string]string{"ca.crt": "first", "other": "second"},
	}
	expect.Ensure(t, node.Client, from)
	for why, one := range map[string]struct {
		items []corev1.KeyToPath
		want  map[string]string
		says  string
	}{
		"all of it":              {want: from.Data},
		"one under another name": {items: []corev1.KeyToPath{{Key: "ca.crt", Path: "authority"}}, want: map[string]string{"authority": "first"}},
		"a key that is missing":  {items: []corev1.KeyToPath{{Key: "absent", Path: "x"}}, says: `has no key "absent"`},
		"one in a folder":        {items: []corev1.KeyToPath{{Key: "other", Path: "below/x"}}, says: "wanted in a folder"},
	} {
		t.Run(why, func(t *testing.T) {
			spec := probe()
			spec.Volumes[1] = corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: from.Name}, Items: one.items,
			}}}
			laidOut, err := node.layOut(t.Context(), Container{Name: "told", Namespace: namespace, Spec: spec})
			if one.says != "" {
				if err == nil || !strings.Contains(err.Error(), one.says) {
					t.Errorf("it says %v, want %q", err, one.says)
				}
				return
			}
			expect.NoError(t, err)
			shown := laidOut[len(laidOut)-1]
			for name, want := range one.want {
				if got, err := os.ReadFile(filepath.Join(shown.folder, name)); err != nil || string(got) != want {
					t.Errorf("%q has %q: %v", name, got, err)
				}
			}
			if len(shown.has) != len(one.want) {
				t.Errorf("it shows %v, want %v", shown.has, one.want)
			}
		})
	}
}

// layOut makes what the probe needs, anew, and gives its Secret.
func layOut(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	known := given.Secret(namespace, "known", map[string][]byte{"word": []byte("first")})
	if err := c.Delete(t.Context(), known.DeepCopy()); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, known,
	} {
		expect.Ensure(t, c, object)
	}
	return known
}

// says looks for the end of a line in a log.
func says(reported, line string) error {
	content, err := os.ReadFile(reported)
	if err != nil {
		return err
	}
	if !strings.Contains(string(content), line+"\n") {
		return fmt.Errorf("it does not say %q:\n%s", line, content)
	}
	return nil
}
