package child

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
)

// request is sent to a child. For a method, its content and found objects follow.
type request struct {
	// Method names the renderer; empty for the values of Template.
	Method, Template string
	Input            render.Input
	// CAPI is Template's view of Cluster API.
	CAPI map[string]any `json:",omitempty"`
}

// requestLimits apply to the parent too: it may have bugs.
var requestLimits = limits{
	kindRequest: 16 << 20, kindFound: render.MaxFoundObject, kindFile: maxFileBytes + maxPathBytes + 2, kindOmitted: maxPathBytes,
	kindEnd: 0,
}

// maxRequestBytes is for all frames of one request.
const maxRequestBytes = 16<<20 + render.MaxFoundBytes + maxContentBytes + maxFiles*(maxPathBytes+2)

type question func(writer *bufio.Writer) error

func askObjects(method string, input render.Input, wants Wants) question {
	return func(writer *bufio.Writer) error {
		sent := input
		sent.Tenant, sent.Content, sent.Found = "", nil, nil
		if err := sendRequest(writer, request{Method: method, Input: sent}); err != nil {
			return err
		}
		if err := sendFound(writer, input.Found); err != nil {
			return err
		}
		if err := sendContent(writer, input.Content, wants); err != nil {
			return fmt.Errorf("add-on %q: %w", input.Addon, err)
		}
		return writer.Flush()
	}
}

func askValues(input render.ValuesInput) question {
	return func(writer *bufio.Writer) error {
		asked := request{Template: input.Template, Input: render.Input{Addon: input.Addon, Data: input.Data}, CAPI: input.CAPI}
		if err := sendRequest(writer, asked); err != nil {
			return err
		}
		return writer.Flush()
	}
}

func sendRequest(writer *bufio.Writer, asked request) error {
	encoded, err := json.Marshal(asked)
	if err != nil {
		return fmt.Errorf("encoding the inputs of add-on %q: %w", asked.Input.Addon, err)
	}
	if most := requestLimits[kindRequest]; len(encoded) > most {
		return &render.LimitError{What: "bytes of values and template data", Max: most}
	}
	return writeFrame(writer, kindRequest, encoded)
}

func sendFound(writer *bufio.Writer, found []*unstructured.Unstructured) error {
	left := render.MaxFoundBytes
	for _, object := range found {
		encoded, err := json.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		if len(encoded) > render.MaxFoundObject {
			return &render.LimitError{
				What: fmt.Sprintf("bytes of %s %q, for function lookup", object.GetKind(), object.GetName()), Max: render.MaxFoundObject,
			}
		}
		if left -= len(encoded); left < 0 {
			return &render.LimitError{What: "bytes of objects for function lookup", Max: render.MaxFoundBytes}
		}
		if err := writeFrame(writer, kindFound, encoded); err != nil {
			return err
		}
	}
	return nil
}

// work is a request that a child has received.
type work func(ctx context.Context, renderers Renderers, answer *answerer) error

// receive reads one request with its content; io.EOF is the end of the work.
func receive(reader io.Reader) (work, error) {
	frames := &frames{reader: reader, limits: requestLimits, left: maxRequestBytes}
	kind, payload, err := frames.next()
	if err != nil {
		return nil, err
	}
	if kind != kindRequest {
		return nil, &render.ProtocolError{Problem: fmt.Sprintf("a frame of kind %q instead of a request", kind)}
	}
	var asked request
	if err := json.Unmarshal(payload, &asked); err != nil {
		return nil, &render.ProtocolError{Problem: "a request that can't be decoded"}
	}
	if asked.Method == "" {
		return workOnValues(asked), nil
	}
	asked.Input.Content, asked.Input.Found, err = receiveContent(frames)
	return workOnObjects(asked.Method, asked.Input), err
}

func workOnObjects(method string, input render.Input) work {
	return func(ctx context.Context, renderers Renderers, answer *answerer) error {
		renderer, known := renderers.Methods[method]
		if !known {
			return answer.failure(fmt.Errorf("method %q is not known", method))
		}
		result, err := renderer.Render(ctx, input)
		if err != nil {
			return answer.failure(err)
		}
		return answer.result(result)
	}
}

func workOnValues(asked request) work {
	return func(ctx context.Context, renderers Renderers, answer *answerer) error {
		input := render.ValuesInput{Addon: asked.Input.Addon, Template: asked.Template, Data: asked.Input.Data, CAPI: asked.CAPI}
		values, err := renderers.Values.RenderValues(ctx, input)
		if err != nil {
			return answer.failure(err)
		}
		return answer.values(values)
	}
}
