package manager

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// debugFlags configure the address that serves profiles and changes the verbosity of the log.
type debugFlags struct{ address string }

func (d *debugFlags) register(set *flag.FlagSet) {
	set.StringVar(&d.address, "debug-bind-address", "0",
		"loopback address, such as 127.0.0.1:6060, of profiles below /debug/pprof and the log's level at /debug/log-level; 0 turns it off")
}

// NotOnLoopbackError refuses an address that others than the pod's own processes could reach: a profile shows what is
// in memory, and no token is required.
type NotOnLoopbackError struct{ Address string }

// Error implements error.
func (e *NotOnLoopbackError) Error() string {
	const refusal = "flag --debug-bind-address is %q, which is not on loopback: give 127.0.0.1 or [::1] with a port, such as 127.0.0.1:6060"
	return fmt.Sprintf(refusal, e.Address)
}

// add adds the endpoint to a manager, whether it leads or not, if a flag requests it.
func (d *debugFlags) add(made manager.Manager, level *slog.LevelVar) error {
	if d.address == "0" {
		return nil
	}
	address, err := netip.ParseAddrPort(d.address) // a name could lead elsewhere
	if err != nil || !address.Addr().Unmap().IsLoopback() {
		return &NotOnLoopbackError{Address: d.address}
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address.String())
	if err != nil {
		return fmt.Errorf("flag --debug-bind-address: %w", err)
	}
	if err := made.Add(debugServer(listener, level)); err != nil {
		return errors.Join(fmt.Errorf("adding the debug endpoint: %w", err), listener.Close())
	}
	return nil
}

// lastAnswer is how long the end of the process waits: a profile may run for an hour.
const lastAnswer = time.Second

func debugServer(listener net.Listener, level *slog.LevelVar) *manager.Server {
	return &manager.Server{
		Name: "debug", Listener: listener, ShutdownTimeout: new(lastAnswer),
		Server: &http.Server{Handler: debugHandler(level), ReadHeaderTimeout: 5 * time.Second},
	}
}

func debugHandler(level *slog.LevelVar) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/log-level", func(writer http.ResponseWriter, _ *http.Request) { report(writer, level) })
	mux.HandleFunc("PUT /debug/log-level", func(writer http.ResponseWriter, request *http.Request) {
		asked, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, 64))
		if err != nil {
			http.Error(writer, "the body of the request can't be read: send a level", http.StatusBadRequest)
			return
		}
		wanted, isLevel := levelOf(strings.TrimSpace(string(asked)))
		if !isLevel {
			refusal := fmt.Sprintf("give a level: errors, changes, details, everything, or a verbosity of 0 to %d", mostVerbose)
			http.Error(writer, refusal, http.StatusBadRequest)
			return
		}
		level.Set(wanted)
		report(writer, level)
	})
	return loopbackOnly(mux)
}

// loopbackOnly refuses requests of a page in a browser by a name that leads to loopback, to which the port may be forwarded.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if !isLoopback((&url.URL{Host: request.Host}).Hostname()) {
			const refusal = "requests for this host are refused: use localhost or a loopback address, such as http://127.0.0.1:6060"
			http.Error(writer, refusal, http.StatusForbidden)
			return
		}
		next.ServeHTTP(writer, request)
	})
}

// levels are the named levels; the verbosities between them have numbers.
var levels = []struct {
	word  string
	level slog.Level
}{
	{"errors", slog.LevelError}, {"changes", slog.LevelInfo}, {"details", -1}, {"everything", -mostVerbose},
}

// levelOf returns the level of a name, or of a verbosity as in flag --v.
func levelOf(asked string) (slog.Level, bool) {
	for _, one := range levels {
		if asked == one.word {
			return one.level, true
		}
	}
	verbosity, err := strconv.Atoi(asked)
	return slog.Level(-verbosity), err == nil && verbosity >= 0 && verbosity <= mostVerbose
}

// report writes the name of the level: the last that it reaches.
func report(writer io.Writer, level *slog.LevelVar) {
	current, word := level.Level(), ""
	for _, one := range levels {
		if current <= one.level {
			word = one.word
		}
	}
	if current > slog.LevelInfo {
		_, _ = fmt.Fprintf(writer, "%s\n", word)
		return
	}
	_, _ = fmt.Fprintf(writer, "%s, verbosity %d\n", word, -int(current))
}
