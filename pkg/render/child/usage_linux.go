package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	// tick is the unit of processor time in /proc (USER_HZ), on every architecture that Go supports.
	tick = 10 * time.Millisecond
	// Fields of /proc/<pid>/stat after the name, from 0 (proc(5), fields 14 and 15).
	fieldUser, fieldSystem = 11, 12
	// Fields of /proc/<pid>/statm, in pages.
	fieldResident, fieldFile = 1, 2
)

// usage reads the resource use of a process. Its files stay open, which is cheaper.
type usage struct {
	stat, statm *os.File
	buffer      []byte
}

func openUsage(pid int) usage {
	stat, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}
	}
	statm, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		stat.Close()
		return usage{}
	}
	return usage{stat: stat, statm: statm, buffer: make([]byte, 1024)}
}

func (u usage) close() {
	if u.stat != nil {
		u.stat.Close()
		u.statm.Close()
	}
}

// now returns the process's own memory in bytes, and its processor time so far. Pages of the program file, which all
// children share, don't count. False: the process has exited.
func (u usage) now() (int64, time.Duration, bool) {
	if u.stat == nil {
		return 0, 0, false
	}
	memory := u.fields(u.statm)
	times := u.fields(u.stat)
	if len(memory) <= fieldFile || len(times) <= fieldSystem {
		return 0, 0, false
	}
	pages := memory[fieldResident] - memory[fieldFile]
	return pages * int64(os.Getpagesize()), time.Duration(times[fieldUser]+times[fieldSystem]) * tick, true
}

// fields are the numbers of a file after the last bracket; other words are 0.
func (u usage) fields(file *os.File) []int64 {
	if file == nil {
		return nil
	}
	read, _ := file.ReadAt(u.buffer, 0)
	text := u.buffer[:read]
	text = text[bytes.LastIndexByte(text, ')')+1:]
	var numbers []int64
	for field := range bytes.FieldsSeq(text) {
		number, _ := strconv.ParseInt(string(field), 10, 64)
		numbers = append(numbers, number)
	}
	return numbers
}
