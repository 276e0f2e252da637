package query

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// clientVariable makes the test binary a client: its own CPU must not count.
const clientVariable = "TRELLIS_BENCH_QUERY_CLIENT"

// load is what a client does; it reads it from standard input.
type load struct {
	URL, Token string
	Authority  []byte
	// Requests in all, over Connections that are kept.
	Requests, Connections int
	Header                map[string]string
	// Status and Bytes are what each answer must have.
	Status, Bytes int
}

// send has a process of its own carry a load out.
func send(b *testing.B, work load) {
	b.Helper()
	encoded, err := json.Marshal(work)
	if err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), clientVariable+"=1")
	input, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		_, _ = input.Write(encoded) // a client that reads nothing fails by itself
		_ = input.Close()
	}()
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("the client: %v\n%s", err, output)
	}
}

// runClient is the client's main function.
func runClient() int {
	var work load
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		fmt.Println(err)
		return 1
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(work.Authority)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true, MaxIdleConnsPerHost: work.Connections,
	}}
	failures := make([]error, work.Connections)
	var group sync.WaitGroup
	for i := range work.Connections {
		group.Go(func() {
			for range work.Requests / work.Connections {
				if failures[i] = work.once(client); failures[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (l load) once(client *http.Client) error {
	request, err := http.NewRequest(http.MethodGet, l.URL, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+l.Token)
	for name, value := range l.Header {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	size, err := io.Copy(io.Discard, answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != l.Status || int(size) != l.Bytes {
		return fmt.Errorf("got %d with %d bytes, want %d with %d", answer.StatusCode, size, l.Status, l.Bytes)
	}
	return nil
}
