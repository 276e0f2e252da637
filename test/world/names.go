package world

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

var named atomic.Int64

// Name is a DNS label of at most 30 characters that begins with the name of the test and is unique in this run of its
// package. Names of namespaces, Clusters and other objects of one test are derived from it, so that tests run in
// parallel.
func Name(t testing.TB) string {
	t.Helper()
	whole := t.Name()
	words := strings.ToLower(strings.TrimPrefix(whole, "Test"))
	words = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, words)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", whole, named.Add(1)))
	return "t" + strings.Trim(words[:min(len(words), 20)], "-") + "-" + hex.EncodeToString(sum[:4])
}
