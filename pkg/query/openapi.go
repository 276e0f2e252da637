package query

import (
	"context"
	_ "embed"
)

// Document is the OpenAPI document of the endpoint, JSON.
//
//go:embed openapi.json
var Document []byte

var document = newContent(Document)

func (s *Server) openAPI(context.Context, *call) (*content, error) { return &document, nil }
