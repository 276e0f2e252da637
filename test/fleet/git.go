package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// gitConfiguration configures git only by its environment. Commits may be requested by hash, as at the large hosts.
var gitConfiguration = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=3",
	"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_CONFIG_KEY_1=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_1=true",
	"GIT_CONFIG_KEY_2=uploadpack.allowFilter", "GIT_CONFIG_VALUE_2=true",
}

func gitHandler(folder string) (http.Handler, error) {
	programs, err := exec.CommandContext(context.Background(), "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("finding git's programs: %w", err)
	}
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"), Root: "/git", Dir: folder,
		Env:    append([]string{"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + folder}, gitConfiguration...),
		Stderr: io.Discard,
	}, nil
}

// Commit adds a commit with exactly these files, by path, to branch main of repository NAME.git, which it creates if
// missing. It returns the commit's hash.
func (s *Sources) Commit(repository string, files map[string]string) (string, error) {
	return s.CommitTo(repository, "main", files)
}

// CommitTo is Commit for any branch.
func (s *Sources) CommitTo(repository, branch string, files map[string]string) (string, error) {
	folder := s.repository(repository)
	if _, err := os.Stat(folder); err != nil {
		if _, err := runGit(nil, "init", "--quiet", "--bare", "--initial-branch=main", folder); err != nil {
			return "", err
		}
	}
	reference := "refs/heads/" + branch
	parent, _ := runGit(nil, "-C", folder, "rev-parse", "--verify", "--quiet", reference)
	if _, err := runGit(importStream(reference, parent, files), "-C", folder, "fast-import", "--quiet", "--date-format=now"); err != nil {
		return "", err
	}
	return runGit(nil, "-C", folder, "rev-parse", reference)
}

// Tag sets a tag to a commit.
func (s *Sources) Tag(repository, tag, commit string) error {
	_, err := runGit(nil, "-C", s.repository(repository), "update-ref", "refs/tags/"+tag, commit)
	return err
}

func (s *Sources) repository(name string) string {
	return filepath.Join(s.GitFolder, strings.TrimSuffix(name, ".git")+".git")
}

// importStream is one commit in the format of git fast-import.
func importStream(reference, parent string, files map[string]string) []byte {
	const message = "Change the add-on"
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit %s\ncommitter Trellis <sources@trellis.invalid> now\ndata %d\n%s\n",
		reference, len(message), message)
	if parent != "" {
		fmt.Fprintf(&stream, "from %s\ndeleteall\n", parent)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(files[path]), files[path])
	}
	return stream.Bytes()
}

func runGit(input []byte, arguments ...string) (string, error) {
	command := exec.CommandContext(context.Background(), "git", arguments...)
	command.Stdin = bytes.NewReader(input)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}, gitConfiguration...)
	var output, complaint bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("git %q: %w: %s", arguments, err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(output.String()), nil
}
