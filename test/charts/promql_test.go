package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/binaries"
)

// promEngine is the program that asks Prometheus' own engine. It is a module of its own: nothing of Prometheus is in
// ours.
var promEngine = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	cache, err := binaries.Cache()
	if err != nil {
		return "", err
	}
	return binaries.FindModule(context.Background(), root, cache, "promql")
})

// scrape and answer are what the engine reads and writes.
type scrape struct {
	At     time.Time         `json:"at"`
	Labels map[string]string `json:"labels"`
	Text   string            `json:"text"`
}

type answer struct {
	Query, Problem string
	Series, Firing int
	Missing, Unmet []string
}

// answers of the engine over scrapes.
func answers(t *testing.T, scrapes []scrape, queries []string) []answer {
	t.Helper()
	program, err := promEngine()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(map[string]any{"scrapes": scrapes, "queries": queries})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	var reported, complaints bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(asked), &reported, &complaints
	if err := command.Run(); err != nil {
		t.Fatalf("asking Prometheus' engine: %v\n%s", err, complaints.String())
	}
	var found []answer
	if err := json.Unmarshal(reported.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// wrong says what an answer lacks; nil: nothing.
func (a *answer) wrong() error {
	switch {
	case a.Problem != "":
		return fmt.Errorf("%s: %s", a.Query, a.Problem)
	case len(a.Unmet) > 0:
		return fmt.Errorf("%s: nothing was scraped for %q", a.Query, a.Unmet)
	case a.Series == 0:
		return fmt.Errorf("%s: no series", a.Query)
	case len(a.Missing) > 0:
		return fmt.Errorf("%s: no series has label %q", a.Query, a.Missing)
	}
	return nil
}
