package query

import (
	"time"

	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// RouteTable lists what is served: method and path, and the names of parameters.
func RouteTable() map[string][]string {
	table := map[string][]string{}
	for _, route := range routes {
		table[route.method+" "+route.path] = route.parameters
	}
	return table
}

// RouteOf is the documented path of a request's path; empty where it has none.
func RouteOf(path string) string {
	found, _, _ := find("", path)
	if found == nil {
		return ""
	}
	return found.path
}

// CheckStreamsEach sets the time between two reviews of a stream's rights.
func (s *Server) CheckStreamsEach(pause time.Duration) { s.checks = pause }

// All are all rows, by namespace and name.
func (r *Rows) All() (all []view.Row) {
	r.each(scope{all: true}, func(one *row) { all = append(all, one.Row) })
	return all
}
