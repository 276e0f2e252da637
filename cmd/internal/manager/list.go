package manager

import (
	"flag"
	"fmt"
	"net/netip"
	"strings"
)

// ListVar registers a flag that takes several values, separated by commas or by being repeated. Read makes values of one
// part, without the space around it: none, or one. It is no flag of pflag's, whose lists take quotes and belong to a set of
// their own: controller-runtime registers its flags in the standard one.
func ListVar[T any](set *flag.FlagSet, into *[]T, name, usage string, read func(part string) ([]T, error)) {
	set.Var(&list[T]{into, read}, name, usage)
}

type list[T any] struct {
	into *[]T
	read func(part string) ([]T, error)
}

// String is the flag as it is written.
func (l *list[T]) String() string {
	if l.into == nil { // package flag asks a zero value
		return ""
	}
	texts := make([]string, len(*l.into))
	for i, value := range *l.into {
		texts[i] = fmt.Sprint(value)
	}
	return strings.Join(texts, ",")
}

// Set adds values.
func (l *list[T]) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		values, err := l.read(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*l.into = append(*l.into, values...)
	}
	return nil
}

// Name reads a name for ListVar; an empty part is none.
func Name(part string) ([]string, error) {
	if part == "" {
		return nil, nil
	}
	return []string{part}, nil
}

// CIDR reads an address range for ListVar.
func CIDR(part string) ([]netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(part)
	if err != nil {
		return nil, fmt.Errorf("address range %q: %w", part, err)
	}
	return []netip.Prefix{prefix}, nil
}
