package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// flags are what file flags in the sandbox's folder adds for the manager of a control plane. A line names the control plane, or "seed"
// for all seeds, and flags after it. It is read at each start of a manager.
func (s *Sandbox) flags(cluster string) ([]string, error) {
	content, err := os.ReadFile(s.path("flags"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading further flags of the managers: %w", err)
	}
	var flags []string
	for number, line := range strings.Split(string(content), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		isSeed := slices.Contains(s.seeds(), words[0])
		if !isSeed && words[0] != Master && words[0] != "seed" {
			return nil, fmt.Errorf("%s:%d: %q is no manager: begin the line with %s, seed, or one of %v", s.path("flags"), number+1,
				words[0], Master, s.seeds())
		}
		if words[0] == cluster || words[0] == "seed" && slices.Contains(s.seeds(), cluster) {
			flags = append(flags, words[1:]...)
		}
	}
	return flags, nil
}
