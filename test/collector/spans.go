package collector

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Span is one as the collector read it.
type Span struct {
	Trace, ID, Parent, Name string
	// Kind is OpenTelemetry's number: 1 is internal, 3 a client's.
	Kind         uint64
	Begun, Ended time.Time
	// Attributes are key=value, in their order; Resource are those of the process.
	Attributes, Resource []string
	Failed               bool
}

var errMessage = errors.New("the message can't be read")

// each visits the fields of a message: those of bytes, and others as numbers.
func each(message []byte, visit func(field protowire.Number, inner []byte, number uint64) error) error {
	for len(message) > 0 {
		field, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return errMessage
		}
		message = message[size:]
		var inner []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			inner, size = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			number, size = protowire.ConsumeFixed64(message)
		default:
			return fmt.Errorf("field %d: %w", field, errMessage)
		}
		if size < 0 {
			return errMessage
		}
		message = message[size:]
		if err := visit(field, inner, number); err != nil {
			return fmt.Errorf("field %d: %w", field, err)
		}
	}
	return nil
}

// Read reads an ExportTraceServiceRequest. A field that it does not know is an error.
func Read(message []byte) (spans []Span, err error) {
	err = each(message, func(field protowire.Number, resourceSpans []byte, _ uint64) error {
		if field != 1 {
			return errMessage
		}
		return readResourceSpans(resourceSpans, &spans)
	})
	return spans, err
}

func readResourceSpans(message []byte, spans *[]Span) error {
	var resource []string
	return each(message, func(field protowire.Number, inner []byte, _ uint64) error {
		switch field {
		case 1:
			return each(inner, func(_ protowire.Number, attribute []byte, _ uint64) error { return readAttribute(attribute, &resource) })
		case 2:
			return each(inner, func(field protowire.Number, inner []byte, _ uint64) error {
				if field != 2 {
					return nil // the scope
				}
				span := Span{Resource: resource}
				err := readSpan(inner, &span)
				*spans = append(*spans, span)
				return err
			})
		}
		return errMessage
	})
}

func readSpan(message []byte, span *Span) error {
	return each(message, func(field protowire.Number, inner []byte, number uint64) error {
		switch field {
		case 1:
			span.Trace = hex.EncodeToString(inner)
		case 2:
			span.ID = hex.EncodeToString(inner)
		case 4:
			span.Parent = hex.EncodeToString(inner)
		case 5:
			span.Name = string(inner)
		case 6:
			span.Kind = number
		case 7:
			span.Begun = time.Unix(0, int64(number))
		case 8:
			span.Ended = time.Unix(0, int64(number))
		case 9:
			return readAttribute(inner, &span.Attributes)
		case 15:
			return each(inner, func(field protowire.Number, _ []byte, code uint64) error {
				span.Failed = field == 3 && code == 2
				return nil
			})
		default:
			return errMessage
		}
		return nil
	})
}

func readAttribute(message []byte, into *[]string) error {
	var key, value string
	err := each(message, func(field protowire.Number, inner []byte, _ uint64) error {
		if field == 1 {
			key = string(inner)
			return nil
		}
		return each(inner, func(field protowire.Number, text []byte, number uint64) error {
			value = string(text)
			if field == 3 {
				value = fmt.Sprint(number)
			}
			return nil
		})
	})
	*into = append(*into, key+"="+value)
	return err
}

// Value is that of an attribute; "": there is none.
func (s Span) Value(key string) string {
	for _, attribute := range s.Attributes {
		if value, found := strings.CutPrefix(attribute, key+"="); found {
			return value
		}
	}
	return ""
}

// Tree tells the spans of one trace, the earlier first, a line for each, below their parents. Those that are alike and follow one
// another are one line; calls of one verb that do are told by name, since they are made at a time.
func Tree(spans []Span, trace string) []string {
	spans = slices.DeleteFunc(slices.Clone(spans), func(span Span) bool { return span.Trace != trace })
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Begun.Compare(b.Begun) })
	for at := 1; at < len(spans); at++ {
		for i := at; i > 0 && isBefore(spans[i], spans[i-1]); i-- {
			spans[i], spans[i-1] = spans[i-1], spans[i]
		}
	}
	return below(spans, "", "")
}

// isBefore says whether a call is told before the one that was made before it.
func isBefore(later, earlier Span) bool {
	verb := strings.LastIndex(later.Name, " ") + 1
	return strings.HasPrefix(later.Name, "call ") && later.Parent == earlier.Parent && later.Name < earlier.Name &&
		strings.HasPrefix(earlier.Name, later.Name[:verb])
}

func below(spans []Span, parent, indent string) (lines []string) {
	last := ""
	for _, span := range spans {
		if span.Parent != parent {
			continue
		}
		line := indent + strings.Join(append([]string{span.Name}, span.Attributes...), " ")
		if span.Failed {
			line += " (failed)"
		}
		deeper := below(spans, span.ID, indent+"  ")
		if line == last && len(deeper) == 0 {
			continue
		}
		last = line
		lines = append(append(lines, line), deeper...)
	}
	return lines
}

// IDs are those of a trace and a span as numbers, which must not be zero.
func (s Span) IDs() (trace, span uint64) {
	whole, _ := hex.DecodeString(s.Trace + s.ID)
	if len(whole) != 24 {
		return 0, 0
	}
	return binary.BigEndian.Uint64(whole[:8]), binary.BigEndian.Uint64(whole[16:])
}
