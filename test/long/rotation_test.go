package long

import (
	"fmt"
	"slices"
	"testing"
)

func TestRotationIsEightDigits(t *testing.T) {
	for _, test := range []struct {
		text  string
		want  uint32
		holds bool
	}{
		{"", 0, true}, {"00000003", 3, true}, {"ffffffff", 1<<32 - 1, true},
		{"3", 0, false}, {"0000000g", 0, false}, {"9c051895c", 0, false}, {"-0000001", 0, false},
	} {
		if got, err := rotation(test.text); got != test.want || test.holds != (err == nil) {
			t.Errorf("%q: %d, %v", test.text, got, err)
		}
	}
}

// A test that no rotation runs would be lost, and so would one that shares its turn with all others: each commit would run all or none.
func TestEveryTestHasATurn(t *testing.T) {
	for _, commits := range []uint32{1, 2, 3, 7} {
		for turn := range commits {
			ran := 0
			for i := range 600 {
				if isTurn(fmt.Sprintf("TestStory%d", i), turn, commits) {
					ran++
				}
			}
			if least := 600 / int(commits) / 2; ran < least || ran > 4*least {
				t.Errorf("one commit in %d: rotation %d runs %d of 600 tests", commits, turn, ran)
			}
		}
		for i := range 20 {
			name, runs := fmt.Sprintf("TestStory%d", i), 0
			for turn := range commits {
				if isTurn(name, turn+5*commits, commits) {
					runs++
				}
			}
			if runs != 1 {
				t.Errorf("one commit in %d: %s runs in %d of as many rotations", commits, name, runs)
			}
		}
	}
}

// Red when a test by hand, which has no rotation, is left out.
func TestWithoutARotationEveryTestRuns(t *testing.T) {
	t.Setenv(RotationVariable, "")
	for i := range 5 {
		if !t.Run(fmt.Sprint(i), func(t *testing.T) {
			Turn(t, "part", 1000)
			if t.Skipped() {
				t.Error("it was skipped")
			}
		}) {
			return
		}
	}
}

// Red when a test is left out on every commit, or what always runs is left out on one.
func TestEachTestRunsOnceInThreeCommits(t *testing.T) {
	names, err := testsIn(".")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, t.Name()) {
		t.Fatalf("%s is not found among %q", t.Name(), names)
	}
	names = append(names, "FuzzInput", "TestKilledAtEveryWriteOfCopies")
	runs := map[string]int{}
	for turn := range uint32(oneIn) {
		left := leftOut(names, turn)
		for _, name := range names {
			if !slices.Contains(left, name) {
				runs[name]++
			}
		}
	}
	for _, name := range names {
		want := 1
		if name == "FuzzInput" || name == "TestKilledAtEveryWriteOfCopies" {
			want = oneIn
		}
		if runs[name] != want {
			t.Errorf("%s runs on %d of %d commits", name, runs[name], oneIn)
		}
	}
}
