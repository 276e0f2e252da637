package pod

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod/entry"
)

// Node is where containers run.
type Node struct {
	// Fleet starts the processes.
	Fleet *fleet.Fleet
	// Cluster has the pods, and Client reads there what volumes hold, and asks for the accounts' tokens.
	Cluster *fleet.Cluster
	Client  client.Client
	// Folder keeps volumes, absolute.
	Folder string
	// Enter is the program of package enter, static. An open node needs none.
	Enter string
	// Open has containers be plain processes, where there are no user namespaces to be had.
	Open bool

	// following are those that have volumes follow what they are made of.
	following sync.WaitGroup
}

// Container is the only one of a pod.
type Container struct {
	// Name tells its process, its log and its volumes from others'. What is started again under its name finds its volumes.
	Name string
	// Namespace of the pod.
	Namespace string
	// Spec is that of the pod, as a Deployment or a Job makes it.
	Spec corev1.PodSpec
	// Program is the image's on this machine, absolute and static; "" where there is an Image.
	Program string
	// Image was pulled.
	Image *Image
	// Arguments and Environment, as KEY=value, come after those of the pod.
	Arguments, Environment []string
	// Log takes its output; "" is a file in the fleet's folder of logs.
	Log string
}

var (
	errPod    = errors.New("it has to have one container, a user, and nothing that is run before or beside its program")
	errPlain  = errors.New("an image takes a root of its own, which an open node has not")
	errChange = errors.New("it has a command, a folder to work in, or a user of its own, which no pod here has")
)

// Run starts a container. What its volumes are made of is there already, and they follow it until the process ends.
func (n *Node) Run(ctx context.Context, container Container) (*fleet.Process, error) {
	process, err := n.run(ctx, container)
	if err != nil {
		return nil, fmt.Errorf("running pod %q in namespace %q of cluster %q: %w", container.Name, container.Namespace, n.Cluster.Name, err)
	}
	return process, nil
}

func (n *Node) run(ctx context.Context, container Container) (*fleet.Process, error) {
	if err := container.check(); err != nil {
		return nil, err
	}
	if !n.Open {
		if err := Refused(ctx, n.Enter); err != nil {
			return nil, err
		}
	}
	laidOut, err := n.layOut(ctx, container)
	if err != nil {
		return nil, err
	}
	environment, err := n.environmentOf(container)
	if err != nil {
		return nil, err
	}
	arguments := append(expanded(container.Spec.Containers[0].Args, environment), container.Arguments...)
	start := n.confined
	if n.Open {
		start = n.plain
	}
	command, err := start(container, laidOut, arguments, environment)
	if err != nil {
		return nil, err
	}
	command.Name, command.Log = container.Name, container.Log
	process, err := n.Fleet.Run(command)
	if err == nil {
		n.follow(process, laidOut)
	}
	return process, err
}

// check finds what a node would carry out and this one does not.
func (c Container) check() error {
	security := c.Spec.SecurityContext
	if len(c.Spec.Containers) != 1 || len(c.Spec.InitContainers) > 0 || security == nil || security.RunAsUser == nil {
		return errPod
	}
	inner := c.Spec.Containers[0]
	hasUser := inner.SecurityContext != nil && (inner.SecurityContext.RunAsUser != nil || inner.SecurityContext.RunAsGroup != nil)
	if len(inner.Command) > 0 || inner.WorkingDir != "" || len(inner.EnvFrom) > 0 || hasUser {
		return errChange
	}
	return nil
}

// confined starts package enter in namespaces of its own, where whoever runs this is the pod's user and may mount.
func (n *Node) confined(container Container, volumes []volume, arguments, environment []string) (fleet.Command, error) {
	within, mounts, err := container.program()
	if err != nil {
		return fleet.Command{}, err
	}
	inner := container.Spec.Containers[0].SecurityContext
	made := entry.Container{
		Root: filepath.Join(n.folderOf(container), "root"), Mounts: mounts,
		Arguments: append([]string{within}, arguments...), Environment: append([]string{"PATH=/", "HOME=/"}, environment...),
		IsWritable: inner == nil || inner.ReadOnlyRootFilesystem == nil || !*inner.ReadOnlyRootFilesystem,
	}
	if err := os.MkdirAll(made.Root, 0o700); err != nil {
		return fleet.Command{}, err
	}
	for _, volume := range volumes {
		made.Mounts = append(made.Mounts, entry.Mount{From: volume.folder, To: volume.at, IsWritable: volume.isWritable})
	}
	said, err := json.Marshal(made)
	if err != nil {
		return fleet.Command{}, err
	}
	user := int(*container.Spec.SecurityContext.RunAsUser)
	group := user
	if given := container.Spec.SecurityContext.RunAsGroup; given != nil {
		group = int(*given)
	}
	return fleet.Command{Path: n.Enter, Arguments: []string{string(said)}, System: func(system *syscall.SysProcAttr) {
		asUser(system, user, group)
	}}, nil
}

// program is where the program is within, and what it is part of.
func (c Container) program() (within string, mounts []entry.Mount, err error) {
	if c.Image == nil {
		within = "/" + filepath.Base(c.Program)
		return within, []entry.Mount{{From: c.Program, To: within}}, nil
	}
	if *c.Spec.SecurityContext.RunAsUser != c.Image.User {
		return "", nil, fmt.Errorf("the pod runs as %d, its image as %d", *c.Spec.SecurityContext.RunAsUser, c.Image.User)
	}
	mounts, err = c.Image.mounts()
	return c.Image.Entrypoint, mounts, err
}

// plain starts the program with the folders of volumes in the place of where they would be mounted.
func (n *Node) plain(container Container, volumes []volume, arguments, environment []string) (fleet.Command, error) {
	if container.Image != nil {
		return fleet.Command{}, errPlain
	}
	slices.SortFunc(volumes, func(a, b volume) int { return cmp.Compare(len(b.at), len(a.at)) }) // the longer path is the more precise
	var places []string
	for _, volume := range volumes {
		places = append(places, volume.at, volume.folder)
		if volume.at != accountFolder {
			continue
		}
		kubeconfig, err := n.kubeconfig(volume)
		if err != nil {
			return fleet.Command{}, err
		}
		environment = append(environment, clientcmd.RecommendedConfigPathEnvVar+"="+kubeconfig)
	}
	here := strings.NewReplacer(places...)
	for at := range arguments {
		arguments[at] = here.Replace(arguments[at])
	}
	return fleet.Command{Path: container.Program, Arguments: arguments, Environment: environment}, nil
}

const (
	// EnterPackage is the package of the program that a Node needs, from the checkout's top.
	EnterPackage = "./test/pod/enter"
	// Enter is the program's name.
	Enter = "enter"
)

// Refused says why containers can't be had on this machine: nil where they can. It tries program enter.
func Refused(ctx context.Context, program string) error {
	root, err := os.MkdirTemp("", "trellis-pod-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	said, err := json.Marshal(entry.Container{Root: root})
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, string(said))
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	asUser(command.SysProcAttr, 1, 1)
	runtime.LockOSThread() // it ends with the thread that started it
	defer runtime.UnlockOSThread()
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("this user may not make user namespaces, or not mount in them; allow it by sysctl (user.max_user_namespaces above 0, "+
			"kernel.apparmor_restrict_unprivileged_userns=0), or of the container that this runs in: %w %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// asUser starts a process as a user in namespaces of its own, who is whoever runs this, and may mount there.
func asUser(system *syscall.SysProcAttr, user, group int) {
	system.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
	system.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}}
	system.GidMappings = []syscall.SysProcIDMap{{ContainerID: group, HostID: os.Getgid(), Size: 1}}
	system.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
}

// folderOf is what is kept of a container.
func (n *Node) folderOf(container Container) string { return n.Kept(container.Name) }

// Kept is the folder of what a container has on this machine, each of its volumes by its name.
func (n *Node) Kept(name string) string { return filepath.Join(n.Folder, name) }
