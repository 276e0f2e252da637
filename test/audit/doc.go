// Package audit replays what API servers noted of calls (fleet.ClusterOptions.Audit) against roles: which calls were refused, and
// which rights nobody used.
package audit
