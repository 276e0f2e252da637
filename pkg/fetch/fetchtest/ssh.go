package fetchtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH serves git repositories by ssh: it runs git's own upload-pack on a folder.
type SSH struct {
	// Address is its host:port, URL the remote above all repositories.
	Address, URL string
	// KnownHosts is for clients, Key an accepted private key, PEM.
	KnownHosts, Key []byte

	listener net.Listener
	config   *ssh.ServerConfig
	run      Command
	working  sync.WaitGroup

	mu          sync.Mutex
	commands    []string
	connections map[net.Conn]bool
	attempts    int
}

// Command handles a client's command and returns the exit status.
type Command func(command string, channel ssh.Channel) uint32

// StartSSH serves a folder of bare repositories on a port of 127.0.0.1 until Close.
func StartSSH(folder string) (*SSH, error) { return startSSH(uploadPack(folder)) }

// ServeSSH starts a server that ends with the test.
func ServeSSH(t testing.TB, run Command) *SSH {
	t.Helper()
	server, err := startSSH(run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// ServeGitSSH starts a server with one empty repository of that name. Its URL uses ssh.
func ServeGitSSH(t testing.TB, name string) (*SSH, *Repository) {
	t.Helper()
	folder := t.TempDir()
	server := ServeSSH(t, uploadPack(folder))
	return server, newRepository(t, server.URL, folder, name)
}

func startSSH(run Command) (*SSH, error) {
	host, _, err := newSSHKey()
	if err != nil {
		return nil, err
	}
	client, private, err := newSSHKey()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a listener has no deadline
	if err != nil {
		return nil, fmt.Errorf("listening for ssh: %w", err)
	}
	s := &SSH{
		Address: listener.Addr().String(), URL: "ssh://git@" + listener.Addr().String(), Key: private,
		KnownHosts: []byte(knownhosts.Line([]string{listener.Addr().String()}, host.PublicKey()) + "\n"),
		listener:   listener, run: run, connections: map[net.Conn]bool{},
	}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, fmt.Errorf("key %s is not let in", ssh.FingerprintSHA256(key))
		}
		return &ssh.Permissions{}, nil
	}}
	s.config.AddHostKey(host)
	s.working.Go(s.accept)
	return s, nil
}

func newSSHKey() (ssh.Signer, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	return signer, pem.EncodeToMemory(block), err
}

// Commands are the clients' commands so far.
func (s *SSH) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Connections counts the connections so far.
func (s *SSH) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts
}

// Close ends the server and its commands.
func (s *SSH) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for connection := range s.connections {
		_ = connection.Close()
	}
	s.mu.Unlock()
	s.working.Wait()
}

func (s *SSH) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.connections[connection] = true
		s.attempts++
		s.mu.Unlock()
		s.working.Go(func() { s.serve(connection) })
	}
}

func (s *SSH) serve(connection net.Conn) {
	defer func() {
		_ = connection.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connections, connection)
	}()
	made, channels, requests, err := ssh.NewServerConn(connection, s.config)
	if err != nil {
		return
	}
	defer func() { _ = made.Close() }()
	s.working.Go(func() { ssh.DiscardRequests(requests) })
	for fresh := range channels {
		if fresh.ChannelType() != "session" {
			_ = fresh.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, asked, err := fresh.Accept()
		if err != nil {
			return
		}
		s.working.Go(func() { s.session(channel, asked) })
	}
}

func (s *SSH) session(channel ssh.Channel, asked <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for request := range asked {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		var command struct{ Text string }
		_ = ssh.Unmarshal(request.Payload, &command)
		s.mu.Lock()
		s.commands = append(s.commands, command.Text)
		s.mu.Unlock()
		_ = request.Reply(true, nil)
		s.working.Go(func() { ssh.DiscardRequests(asked) })
		status := s.run(command.Text, channel)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

var uploadPackCommand = regexp.MustCompile(`^git-upload-pack '/?([A-Za-z0-9._/-]+)'$`)

func uploadPack(folder string) Command {
	return func(command string, channel ssh.Channel) uint32 {
		parts := uploadPackCommand.FindStringSubmatch(command)
		if parts == nil {
			_, _ = io.WriteString(channel.Stderr(), "this command is not served\n")
			return 127
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		git := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "-c", "uploadpack.allowAnySHA1InWant=true",
			"upload-pack", filepath.Join(folder, filepath.FromSlash(parts[1])))
		git.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		}
		git.Stdout, git.Stderr = channel, channel.Stderr()
		input, err := git.StdinPipe()
		if err != nil {
			return 126
		}
		go func() { // ends with the channel, which the session closes
			_, _ = io.Copy(input, channel)
			_ = input.Close()
		}()
		if err := git.Run(); err != nil {
			return 128
		}
		return 0
	}
}
