package long

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
)

// RotationVariable names the environment variable with the first eight hexadecimal digits of the commit. With -short, each commit runs
// another choice of the tests that call Turn, and of the cases that tests choose by Rotation. A value that is set before `make test`
// repeats the choice of another commit.
const RotationVariable = "TRELLIS_ROTATION"

// Rotation is a number that differs from commit to commit.
func Rotation(t testing.TB) uint32 {
	t.Helper()
	turn, err := rotation(os.Getenv(RotationVariable))
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// Turn skips a test with -short on all but one commit in so many; the rotation chooses which of a package's tests run. Use it for stories
// through whole processes, where tests of single packages hold each rule on every commit. part is the part of `make test-long` that runs
// them all. Without the variable, as in `make check`, no test is skipped.
func Turn(t testing.TB, part string, commits uint32) {
	t.Helper()
	if testing.Short() && os.Getenv(RotationVariable) != "" && !isTurn(t.Name(), Rotation(t), commits) {
		t.Skipf("one commit in %d runs it: run make test-long PART=%s", commits, part)
	}
}

// isTurn says whether the test of a name runs at a rotation.
func isTurn(name string, turn, commits uint32) bool {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return (hash.Sum32()%commits+turn%commits)%commits == 0
}

// rotation reads the value of RotationVariable; an empty one is 0.
func rotation(text string) (uint32, error) {
	if text == "" {
		return 0, nil
	}
	turn, err := strconv.ParseUint(text, 16, 32)
	if err != nil || len(text) != 8 {
		return 0, fmt.Errorf("%s is %q, not 8 hexadecimal digits", RotationVariable, text)
	}
	return uint32(turn), nil
}
