package binaries

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// compilationOf builds programs of one module into a folder.
func compilationOf(module, folder string, programs []Program, further []string) Compilation {
	names := make([]string, len(programs))
	packages := make([]string, len(programs))
	arguments := append([]string{"build", "-v", "-o", folder + string(filepath.Separator)}, further...)
	for i, program := range programs {
		names[i], packages[i] = program.Name+" "+program.Release, program.Package
		arguments = append(arguments, "-ldflags="+program.Package+"="+program.linkFlags())
	}
	return Compilation{
		Names: names, Packages: packages, Flags: further,
		Command: func(ctx context.Context, arguments ...string) *exec.Cmd { return goCommand(ctx, module, arguments...) },
		Build:   append(arguments, packages...),
	}
}

// Compilation is one `go build`, whose progress is shown.
type Compilation struct {
	// Names of the programs, for people, and Packages, their import paths, in the same order.
	Names, Packages []string
	// Flags are those of `go build` that decide which packages there are, such as -modfile and -tags.
	Flags []string
	// Command makes a go command.
	Command func(ctx context.Context, arguments ...string) *exec.Cmd
	// Build are the arguments of `go build`, with -v, by which it names each package that it compiles.
	Build []string
}

// Interruptible makes the end of a command's context interrupt the go command, which then removes its work folder.
func Interruptible(command *exec.Cmd) {
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
}

// Compile runs `go build`, and shows for which program it compiles, how many of how many packages are compiled, and the time.
func Compile(ctx context.Context, out io.Writer, what Compilation) error {
	shown := newMeter(out)
	defer shown.end()
	shown.say("%s: looking for packages to compile", what.Names[0])
	neededBy, stale, err := stalePackages(ctx, shown, what)
	if err != nil {
		return err
	}
	compiled, current := 0, what.Names[0]
	err = follow(what.Command(ctx, what.Build...), func(line string) {
		name, known := neededBy[line]
		if !known {
			return
		}
		compiled, current = compiled+1, name
		shown.say("%s: %d of %d packages compiled", current, compiled, stale)
	})
	if err != nil {
		return fmt.Errorf("compiling %s: %w", strings.Join(what.Names, ", "), err)
	}
	shown.finish("built %s", strings.Join(what.Names, ", "))
	return nil
}

// stalePackages maps the import path of every package to the first program that needs it, and counts those to be compiled.
func stalePackages(ctx context.Context, shown *meter, what Compilation) (map[string]string, int, error) {
	const format = `{{.ImportPath}} {{.Stale}}{{if eq .Name "main"}}{{range .Deps}} {{.}}{{end}}{{end}}`
	list := what.Command(ctx, append(append([]string{"list", "-deps", "-f", format}, what.Flags...), what.Packages...)...)
	listed, err := os.CreateTemp("", "trellis-packages-")
	if err != nil {
		return nil, 0, fmt.Errorf("making a file for the list of packages: %w", err)
	}
	defer os.Remove(listed.Name())
	defer listed.Close()
	list.Stdout = listed
	fetched := 0
	err = follow(list, func(line string) {
		if strings.HasPrefix(line, "go: downloading ") {
			fetched++
			shown.say("%s: %d modules fetched", what.Names[0], fetched)
		}
	})
	if err != nil {
		return nil, 0, fmt.Errorf("listing the packages of %s: %w", strings.Join(what.Names, ", "), err)
	}
	if _, err := listed.Seek(0, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("reading the list of packages: %w", err)
	}
	needs, stale := map[string][]string{}, 0
	lines := bufio.NewScanner(listed)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if fields[1] == "true" {
			stale++
		}
		if len(fields) > 2 {
			needs[fields[0]] = fields
		}
	}
	neededBy := map[string]string{}
	for i, program := range what.Packages {
		for _, path := range needs[importPathOf(program, needs)] {
			if _, known := neededBy[path]; !known {
				neededBy[path] = what.Names[i]
			}
		}
	}
	return neededBy, stale, lines.Err()
}

// importPathOf is the import path of a program that is named by a folder, as in "./cmd/program".
func importPathOf(program string, needs map[string][]string) string {
	folder, relative := strings.CutPrefix(program, ".")
	if !relative {
		return program
	}
	for path := range needs {
		if strings.HasSuffix(path, folder) {
			return path
		}
	}
	return program
}

// follow runs a command and hands out the lines of its standard error; the error of a failed one has the last of them.
func follow(command *exec.Cmd, line func(string)) error {
	output, err := command.StderrPipe()
	if err != nil {
		return fmt.Errorf("following %q: %w", command.Args[0], err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %q: %w", command.Args[0], err)
	}
	var last []string
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(lines.Text())
		last = append(last, lines.Text())
		last = last[max(0, len(last)-lastLines):]
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("go %s in %q: %w\n%s", command.Args[1], command.Dir, err, strings.Join(last, "\n"))
	}
	return nil
}

const lastLines = 20
