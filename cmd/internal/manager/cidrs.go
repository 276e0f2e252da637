package manager

import (
	"fmt"
	"net/netip"
	"strings"
)

// CIDRs is a flag that takes a comma list of address ranges.
type CIDRs []netip.Prefix

// String is the flag as it is written.
func (c *CIDRs) String() string {
	if c == nil {
		return ""
	}
	texts := make([]string, len(*c))
	for i, prefix := range *c {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}

// Set adds ranges.
func (c *CIDRs) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("address range %q: %w", part, err)
		}
		*c = append(*c, prefix)
	}
	return nil
}
