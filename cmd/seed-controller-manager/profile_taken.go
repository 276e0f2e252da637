//go:build profile

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
)

// profileVariable names the folder that takes profiles of a manager built with tag "profile".
const profileVariable = "TRELLIS_PROFILE"

// A signal USR1 begins a CPU profile, the next one ends it and writes the heap beside it.
func init() {
	folder := os.Getenv(profileVariable)
	if folder == "" {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for number := 0; ; number++ {
			<-signals
			err := profileUntil(signals, folder, number)
			if err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
			}
		}
	}()
}

func profileUntil(signals <-chan os.Signal, folder string, number int) error {
	cpu, err := os.Create(filepath.Join(folder, fmt.Sprintf("cpu-%d.pprof", number)))
	if err != nil {
		return err
	}
	defer cpu.Close()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	<-signals
	pprof.StopCPUProfile()
	heap, err := os.Create(filepath.Join(folder, fmt.Sprintf("heap-%d.pprof", number)))
	if err != nil {
		return err
	}
	defer heap.Close()
	return pprof.Lookup("allocs").WriteTo(heap, 0)
}
