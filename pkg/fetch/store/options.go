package store

import (
	"errors"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Options of a Store. Folder is required; zero values of the rest mean the defaults.
type Options struct {
	// Folder is where content is kept. It belongs to this process alone.
	Folder string
	// Kinds get content. A reference of another kind is refused.
	Kinds fetch.Kinds
	// Mirrors replace what references name (--source-mirror). The sources' Network has the same ones.
	Mirrors fetch.Mirrors
	// Metrics counts what happens; nil: nobody does.
	Metrics *Metrics
	// Interval is the time between two looks at one reference (--source-interval), plus or minus 10 %. Default 5 min.
	Interval time.Duration
	// FirstPause follows the first failed look and doubles with each one, up to LastPause. Defaults 1 s and 5 min.
	FirstPause, LastPause time.Duration
	// Jobs is how many looks and fetches run at a time, HostJobs how many of them for one host. Defaults 8 and 4.
	Jobs, HostJobs int
	// MaxBytes is how much content is kept; what was not used for the longest time goes first. Default 4 GiB.
	MaxBytes int64
	// Recent is for how long content is safe from that after its last use. Default 10 min.
	Recent time.Duration
}

// rememberedFor is how long somebody who asked is woken, and how long a reference is looked at that nobody asks for.
const rememberedFor = time.Hour

func (o Options) complete() (Options, error) {
	if o.Folder == "" {
		return o, errors.New("a folder to keep content in is required")
	}
	defaultTo(&o.Interval, 5*time.Minute)
	defaultTo(&o.FirstPause, time.Second)
	defaultTo(&o.LastPause, 5*time.Minute)
	defaultTo(&o.Recent, 10*time.Minute)
	defaultTo(&o.Jobs, 8)
	defaultTo(&o.HostJobs, 4)
	defaultTo(&o.MaxBytes, 4<<30)
	return o, nil
}

func defaultTo[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Stats counts what happened since the start.
type Stats struct {
	// Resolutions and Fetches are the calls of sources, Failures those that failed.
	Resolutions, Fetches, Failures int
	// Hits is how often Get handed out a snapshot.
	Hits int
	// Bytes is the size of what was fetched, unpacked.
	Bytes int64
}
