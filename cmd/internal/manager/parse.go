package manager

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Parse reads a program's arguments. False: the program ends with the code. The problem is written last, without the
// list of flags, since readers look at the end of a log.
func Parse(set *flag.FlagSet, arguments []string, out, problems io.Writer) (code int, goesOn bool) {
	set.Init(set.Name(), flag.ContinueOnError)
	set.SetOutput(io.Discard)
	err := set.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		set.SetOutput(out)
		_, _ = fmt.Fprintln(out, "Flags:")
		set.PrintDefaults()
		return 0, false
	}
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("argument %q is not a flag: flags are --name=value", set.Arg(0))
	}
	if err != nil {
		_, _ = fmt.Fprintf(problems, "%v (--help lists all flags)\n", err)
		return 2, false //nolint:mnd // as package flag has it
	}
	return 0, true
}
