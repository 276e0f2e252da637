package config

import (
	"context"
	"errors"
	"time"
)

// Interval is how often the files are compared with what is applied.
const Interval = 5 * time.Second

var errTLS = errors.New("tlsFolder: it can't be added or removed while the program runs: restart the program")

// Follower follows a configuration.
type Follower struct {
	// File has the configuration, Present is what was loaded from it.
	File    string
	Present *Loaded
	// Apply returns an error if it keeps the configuration before.
	Apply func(*Loaded) error
	// Report gets the outcome of each change: nil once the files are valid and applied.
	Report func(error)
}

// Follow loads the configuration at each tick, and applies it if any file changed. It ends with the context.
func (f Follower) Follow(ctx context.Context, ticks <-chan time.Time) {
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		next, err := Load(f.File)
		switch {
		case err == nil && next.digest == f.Present.digest && failed == "":
			continue
		case err == nil && (next.Certificate == nil) != (f.Present.Certificate == nil):
			err = errTLS
		case err == nil:
			err = f.Apply(next)
		}
		if err == nil {
			f.Present, failed = next, ""
			f.Report(nil)
		} else if err.Error() != failed {
			failed = err.Error()
			f.Report(err)
		}
	}
}
