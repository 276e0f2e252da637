package long

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// RotationVariable names the environment variable with the first eight hexadecimal digits of the commit: with -short, tests that try only
// some of many cases choose others for each commit. One that is set already repeats another commit's choice.
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
