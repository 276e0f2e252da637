package manager

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Red when trouble of an installation, a repair and a conflict that solves itself have the wrong level.
func TestLevelsOfLines(t *testing.T) {
	var out bytes.Buffer
	log := logr.FromSlogHandler(leveled{slog.NewTextHandler(&out, nil)}).WithValues("name", "web")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "addoninstallations"}, "web", errors.New("modified"))
	for _, test := range []struct {
		want string
		line func(logr.Logger)
	}{
		{"level=WARN", func(l logr.Logger) { l.Info("event", "type", "Warning", "reason", "Timeout") }},
		{"level=INFO", func(l logr.Logger) { l.Info("event", "type", "Normal", "reason", "Repaired") }},
		{"level=INFO", func(l logr.Logger) { l.Info("event", "reason", "Warning") }},
		{"level=INFO", func(l logr.Logger) { l.Error(fmt.Errorf("writing: %w", conflict), "Reconciler error") }},
		{"level=ERROR", func(l logr.Logger) { l.Error(errors.New("lost"), "Reconciler error") }},
		{"level=ERROR", func(l logr.Logger) { l.Error(nil, "Reconciler error", "type", "Normal") }},
	} {
		out.Reset()
		test.line(log)
		if !strings.Contains(out.String(), test.want) || !strings.Contains(out.String(), "name=web") {
			t.Errorf("want %s, got %s", test.want, out.String())
		}
	}
}
