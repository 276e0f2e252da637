// Package entry turns a process into a container's: it makes the container's root (root_linux.go), moves into it, gives up all that no
// container of a restricted pod has (confine_linux.go), and becomes the program.
package entry

// Container is what to become.
type Container struct {
	// Root is an empty folder that the root is mounted on.
	Root string
	// Mounts are laid out in their order.
	Mounts []Mount
	// Arguments are the program, by its path within, and its arguments; none where the way is only to be tried.
	Arguments, Environment []string
	// IsWritable says that the root is.
	IsWritable bool
}

// Mount is a file or a folder of this machine within the container.
type Mount struct {
	From, To   string
	IsWritable bool
}
