package config

import (
	"context"
	"errors"
	"time"
)

// Interval is how often the files are compared with what is applied.
const Interval = 5 * time.Second

var errTLS = errors.New("tlsFolder: it can't be added or removed while the program runs: restart the program")

// Follow loads the configuration at each tick, and applies it if any file changed. Apply returns an error if it keeps the configuration
// before. Report gets the outcome of each change: nil once the files are valid and applied. It ends with the context.
func Follow(ctx context.Context, file string, present *Loaded, ticks <-chan time.Time, apply func(*Loaded) error, report func(error)) {
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		next, err := Load(file)
		switch {
		case err == nil && next.digest == present.digest && failed == "":
			continue
		case err == nil && (next.Certificate == nil) != (present.Certificate == nil):
			err = errTLS
		case err == nil:
			err = apply(next)
		}
		if err == nil {
			present, failed = next, ""
			report(nil)
		} else if err.Error() != failed {
			failed = err.Error()
			report(err)
		}
	}
}
