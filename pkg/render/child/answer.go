package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
)

// Limits of an answer.
const (
	// maxAnswerBytes: objects with hooks, and the manifest, have manifest.MaxBytes each.
	maxAnswerBytes = 2*manifest.MaxBytes + 4<<20
	maxValueBytes  = 1 << 20
	maxTextBytes   = 64 << 10
	// maxDepth and maxNodes limit decoded maps, lists and values: small JSON can decode to large data.
	maxDepth = 260
	maxNodes = manifest.MaxNodes + 200_000
)

var answerLimits = limits{
	kindReady: maxTextBytes, kindObject: manifest.MaxObjectBytes, kindChart: maxValueBytes + maxTextBytes,
	kindHook: manifest.MaxObjectBytes + maxTextBytes, kindManifest: manifest.MaxBytes, kindValues: maxValueBytes,
	kindFailure: maxTextBytes, kindEnd: 0,
}

// ready is a child's first message.
type ready struct {
	// Filtered says that system calls are filtered.
	Filtered bool
	// Problem says which confinement failed; such a child is not used.
	Problem string
}

type answerer struct{ writer *bufio.Writer }

func (a *answerer) json(kind kind, content any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return a.failure(fmt.Errorf("encoding the result: %w", err))
	}
	if most := answerLimits[kind]; len(encoded) > most {
		return a.failure(&render.LimitError{What: "bytes of one result", Max: most})
	}
	return writeFrame(a.writer, kind, encoded)
}

func (a *answerer) end() error {
	if err := writeFrame(a.writer, kindEnd); err != nil {
		return err
	}
	return a.writer.Flush()
}

// failure ends the answer. The parent drops the frames before it.
func (a *answerer) failure(err error) error {
	encoded, encodingErr := json.Marshal(failureOf(err))
	if encodingErr != nil {
		return encodingErr
	}
	if err := writeFrame(a.writer, kindFailure, encoded); err != nil {
		return err
	}
	if err := a.writer.Flush(); err != nil {
		return err
	}
	return errFailed
}

// errFailed says that a failure was reported.
var errFailed = errors.New("the rendering failed")

func (a *answerer) result(result render.Result) error {
	for _, object := range result.Objects {
		if err := a.json(kindObject, object.Object); err != nil {
			return err
		}
	}
	if chart := result.Chart; chart != nil {
		said := render.Chart{Name: chart.Name, Version: chart.Version, AppVersion: chart.AppVersion, Config: chart.Config}
		if err := a.json(kindChart, said); err != nil {
			return err
		}
		for _, hook := range chart.Hooks {
			if err := a.json(kindHook, hook); err != nil {
				return err
			}
		}
		if most := answerLimits[kindManifest]; len(chart.Manifest) > most {
			return a.failure(&render.LimitError{What: "bytes of rendered text", Max: most})
		}
		if err := writeFrame(a.writer, kindManifest, []byte(chart.Manifest)); err != nil {
			return err
		}
	}
	return a.end()
}

func (a *answerer) values(values map[string]any) error {
	if err := a.json(kindValues, values); err != nil {
		return err
	}
	return a.end()
}

type answer struct {
	result render.Result
	values map[string]any
	// failed is the reason why there is no result: an error of package render.
	failed error
	nodes  int
}

// readAnswer reads one answer. An error is about the child; answer.failed is about the add-on.
func readAnswer(reader io.Reader) (*answer, error) {
	frames := &frames{reader: reader, limits: answerLimits, left: maxAnswerBytes}
	read := &answer{}
	for {
		kind, payload, err := frames.next()
		if err != nil {
			return nil, err
		}
		done, err := read.add(kind, payload)
		if done || err != nil {
			return read, err
		}
	}
}

// add adds one frame; done reports that it was the last.
func (a *answer) add(kind kind, payload []byte) (done bool, err error) {
	switch kind {
	case kindEnd:
		return true, a.complete()
	case kindFailure:
		a.failed, err = readFailure(payload)
		return true, err
	case kindObject:
		return false, a.addObject(payload)
	case kindChart:
		return false, a.addChart(payload)
	case kindHook:
		return false, a.addHook(payload)
	case kindManifest:
		if a.result.Chart == nil || a.result.Chart.Manifest != "" {
			return false, &render.ProtocolError{Problem: "a manifest without a chart, or twice"}
		}
		a.result.Chart.Manifest = string(payload)
		return false, nil
	case kindValues:
		if a.values != nil {
			return false, twice(true)
		}
		return false, a.decode(payload, &a.values)
	}
	return false, &render.ProtocolError{Problem: fmt.Sprintf("a frame of kind %q in an answer", kind)}
}

func twice(is bool) error {
	if is {
		return &render.ProtocolError{Problem: "the same part twice"}
	}
	return nil
}

// complete refuses an answer with values and objects, or with neither. Values may be empty.
func (a *answer) complete() error {
	if (a.values == nil) == (len(a.result.Objects) == 0) {
		return &render.ProtocolError{Problem: "neither objects nor values, or both"}
	}
	return nil
}

// addChart adds a chart's description. Its hooks have frames of their own.
func (a *answer) addChart(payload []byte) error {
	chart := &render.Chart{}
	if err := a.decode(payload, chart); err != nil || a.result.Chart != nil {
		return errors.Join(err, twice(a.result.Chart != nil))
	}
	if len(chart.Hooks) > 0 || chart.Manifest != "" {
		return &render.ProtocolError{Problem: "a chart with parts that have frames of their own"}
	}
	a.result.Chart = chart
	return nil
}

func (a *answer) addHook(payload []byte) error {
	chart := a.result.Chart
	if chart == nil {
		return &render.ProtocolError{Problem: "a hook without a chart"}
	}
	if a.full() {
		return &render.ProtocolError{Problem: "more objects than the limit"}
	}
	var hook render.Hook
	if err := a.decode(payload, &hook); err != nil {
		return err
	}
	if hook.Check() != nil {
		return &render.ProtocolError{Problem: "a hook that is not valid"}
	}
	chart.Hooks = append(chart.Hooks, hook)
	return nil
}

// full reports whether the answer has the maximum of objects, hooks included.
func (a *answer) full() bool {
	count := len(a.result.Objects)
	if a.result.Chart != nil {
		count += len(a.result.Chart.Hooks)
	}
	return count >= manifest.MaxObjects
}

func (a *answer) addObject(payload []byte) error {
	if a.full() {
		return &render.ProtocolError{Problem: "more objects than the limit"}
	}
	content := map[string]any{}
	if err := a.decode(payload, &content); err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
		return &render.ProtocolError{Problem: "an object without apiVersion, kind or name"}
	}
	a.result.Objects = append(a.result.Objects, object)
	return nil
}

// decode decodes JSON after its cost was counted.
func (a *answer) decode(payload []byte, into any) error {
	nodes, depth := weigh(payload)
	if a.nodes += nodes; a.nodes > maxNodes || depth > maxDepth {
		return &render.ProtocolError{Problem: "content that is too deep, or has too many values"}
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return &render.ProtocolError{Problem: "content that can't be decoded"}
	}
	return nil
}

// weigh counts the values and the depth of a JSON text, without decoding it.
func weigh(text []byte) (nodes, depth int) {
	open, quoted := 0, false
	for at := 0; at < len(text); at++ {
		switch char := text[at]; {
		case quoted && char == '\\':
			at++
		case char == '"':
			quoted = !quoted
		case quoted:
		case char == '{' || char == '[':
			nodes++
			open++
			depth = max(depth, open)
		case char == '}' || char == ']':
			open--
		case char == ',':
			nodes++
		}
	}
	return nodes, depth
}
