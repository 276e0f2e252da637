package outbound_test

import (
	"io"
	"log"
)

// quiet is for servers whose clients are expected to disconnect.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
