package manager

import (
	"flag"
	"fmt"
	"net/netip"
	"strings"
)

// ListVar registers a flag with several values, by commas or repetition. Read makes values, none or one, of one
// trimmed part. pflag's lists are no alternative: they interpret quotes and belong to a set of their own, and
// controller-runtime registers its flags in the standard one.
func ListVar[T any](set *flag.FlagSet, into *[]T, name, usage string, read func(part string) ([]T, error)) {
	set.Var(&list[T]{into, read}, name, usage)
}

type list[T any] struct {
	into *[]T
	read func(part string) ([]T, error)
}

func (l *list[T]) String() string {
	if l.into == nil { // package flag calls a zero value
		return ""
	}
	texts := make([]string, len(*l.into))
	for i, value := range *l.into {
		texts[i] = fmt.Sprint(value)
	}
	return strings.Join(texts, ",")
}

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
