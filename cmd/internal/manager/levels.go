package manager

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// keyType is the key of lines that repeat an event: its type.
const keyType = "type"

// leveled sets levels that logr lacks: WARN for Warning events, INFO for errors about conflicts, which the next reconciliation
// solves.
type leveled struct{ slog.Handler }

// Handle implements slog.Handler.
func (l leveled) Handle(ctx context.Context, record slog.Record) error {
	record.Attrs(func(attribute slog.Attr) bool {
		problem, isError := attribute.Value.Any().(error)
		switch {
		case attribute.Key == keyType && attribute.Value.String() == corev1.EventTypeWarning:
			record.Level = slog.LevelWarn
		case isError && apierrors.IsConflict(problem):
			record.Level = slog.LevelInfo
		}
		return true
	})
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l leveled) WithAttrs(attributes []slog.Attr) slog.Handler {
	return leveled{l.Handler.WithAttrs(attributes)}
}

// WithGroup implements slog.Handler.
func (l leveled) WithGroup(name string) slog.Handler { return leveled{l.Handler.WithGroup(name)} }
