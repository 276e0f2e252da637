package gotemplate

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
	"text/template"
)

// Limits of functions that make much from little.
const (
	// maxCount of numbers in a list that a function makes.
	maxCount = 100_000
	// maxText is the longest text, in bytes, that a function makes by repeating.
	maxText = 1 << 20
	// maxRandom characters or bytes at a time.
	maxRandom = 64 << 10
)

// boundedFunctions replace sprig's of the same names.
func boundedFunctions(sprig template.FuncMap) template.FuncMap {
	bounded := template.FuncMap{
		"until":     func(count int) ([]int, error) { return untilStep(0, count, cmp.Or(cmp.Compare(count, 0), 1)) },
		"untilStep": untilStep,
		"seq":       seq,
		"repeat":    repeat,
		"indent":    indent,
		"nindent": func(spaces int, text string) (string, error) {
			indented, err := indent(spaces, text)
			return "\n" + indented, err
		},
		"replace": replace,
		// The results of these can be their arguments again, and double each time.
		"print":   func(values ...any) (string, error) { return checked(fmt.Sprint(values...)) },
		"println": func(values ...any) (string, error) { return checked(fmt.Sprintln(values...)) },
		"printf": func(format string, values ...any) (string, error) {
			return checked(fmt.Sprintf(format, values...))
		},
	}
	cat := sprig["cat"].(func(...any) string)
	bounded["cat"] = func(values ...any) (string, error) { return checked(cat(values...)) }
	for _, name := range []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric"} {
		original := sprig[name].(func(int) string)
		bounded[name] = func(count int) (string, error) {
			if err := checkRange("a random text's length", count, maxRandom); err != nil {
				return "", err
			}
			return original(count), nil
		}
	}
	randBytes := sprig["randBytes"].(func(int) (string, error))
	bounded["randBytes"] = func(count int) (string, error) {
		if err := checkRange("the number of random bytes", count, maxRandom); err != nil {
			return "", err
		}
		return randBytes(count)
	}
	return bounded
}

func checked(text string) (string, error) { return text, checkText(len(text)) }

// untilStep counts from start to before stop. It bounds the length first.
func untilStep(start, stop, step int) ([]int, error) {
	count := countSteps(start, stop, step)
	if count > maxCount {
		return nil, fmt.Errorf("a list of more than %d numbers", maxCount)
	}
	list := make([]int, 0, count)
	for i := range int(count) {
		list = append(list, start+i*step)
	}
	return list, nil
}

func countSteps(start, stop, step int) uint64 {
	var distance, stride uint64
	switch {
	case step > 0 && start < stop:
		distance, stride = uint64(stop)-uint64(start), uint64(step)
	case step < 0 && start > stop:
		distance, stride = uint64(start)-uint64(stop), -uint64(step)
	default:
		return 0
	}
	return (distance-1)/stride + 1
}

// seq writes numbers as the shell's does: END, START END or START STEP END.
func seq(params ...int) (string, error) {
	start, step := 1, 0
	var end int
	switch len(params) {
	case 1:
		end = params[0]
	case 2:
		start, end = params[0], params[1]
	case 3:
		start, step, end = params[0], params[1], params[2]
	default:
		return "", nil
	}
	direction := 1
	if end < start {
		direction = -1
	}
	if len(params) < 3 {
		step = direction
	}
	list, err := untilStep(start, end+direction, step)
	return strings.Trim(fmt.Sprint(list), "[]"), err
}

func repeat(count int, text string) (string, error) {
	if count <= 0 {
		return "", nil
	}
	high, size := bits.Mul64(uint64(count), uint64(len(text)))
	if high > 0 || size > maxText {
		return "", tooLong()
	}
	return strings.Repeat(text, count), nil
}

func indent(spaces int, text string) (string, error) {
	if err := checkRange("an indentation", spaces, maxText); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", spaces)
	if err := checkText(len(text) + (1+strings.Count(text, "\n"))*spaces); err != nil {
		return "", err
	}
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

func replace(old, replacement, text string) (string, error) {
	if err := checkText(len(text) + strings.Count(text, old)*(len(replacement)-len(old))); err != nil {
		return "", err
	}
	return strings.ReplaceAll(text, old, replacement), nil
}

func checkText(size int) error {
	if size > 16*maxText {
		return tooLong()
	}
	return nil
}

func tooLong() error { return fmt.Errorf("a text of more than %d bytes", maxText) }

func checkRange(what string, have, most int) error {
	if have < 0 || have > most {
		return fmt.Errorf("%s that is not between 0 and %d", what, most)
	}
	return nil
}
