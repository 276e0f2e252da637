package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildOwn builds programs of a checkout of Trellis into a folder: static, as images have them, so that they run in a container's root.
// The rest are arguments of go build: flags, and packages.
func BuildOwn(ctx context.Context, root, into string, rest ...string) error {
	arguments := append([]string{"build", "-buildvcs=false", "-o", into + string(filepath.Separator)}, rest...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building programs of %q: %w\n%s", root, err, output)
	}
	return nil
}
