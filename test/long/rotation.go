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

// Some gives all cases of a test, and with -short some of them, which the rotation chooses: neighbours, so that cases that belong
// together are tried together. It is for cases that repeat what others show, such as one more chart. The named part of
// `make test-long` runs all of them.
func Some[T any](t testing.TB, part string, all []T, some int) []T {
	t.Helper()
	if !testing.Short() || some >= len(all) {
		return all
	}
	chosen := neighbours(all, some, Rotation(t))
	t.Logf("%d of %d cases: make test-long PART=%s runs all", len(chosen), len(all), part)
	return chosen
}

// neighbours divides all into groups of as many as said, the last one smaller, and gives the group whose turn it is.
func neighbours[T any](all []T, some int, turn uint32) []T {
	groups := (len(all) + some - 1) / some
	begin := int(turn%uint32(groups)) * some
	return all[begin:min(begin+some, len(all))]
}
