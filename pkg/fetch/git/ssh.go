package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

const (
	// sshOverhead is the overhead of ssh in bytes, in addition to 1/16 of refs and pack.
	sshOverhead = 1 << 20
	// messagesLimit bounds the command's messages, which are ignored.
	messagesLimit = 1 << 20
)

// defaultUser is the user at the large hosts.
const defaultUser = "git"

// sshLink runs only git-upload-pack, over one connection: refs, a request, then the pack.
type sshLink struct {
	network *outbound.Network
	remote  *sshRemote
	user    string
	signer  ssh.Signer
	hosts   *hostKeys
	limits  wireLimits

	connection *outbound.Connection
	client     *ssh.Client
	session    *ssh.Session
	input      io.WriteCloser
	output     io.Reader
	asked      bool // a request was sent
	messages   messages
}

// newSSHLink fails before dialling if the key is missing, or known_hosts lack the host.
func newSSHLink(network *outbound.Network, limits wireLimits, location Location, credentials fetch.Credentials) (*sshLink, error) {
	remote, err := parseSSH(location.Remote)
	if err != nil {
		return nil, err
	}
	made := &sshLink{network: network, remote: remote, limits: limits}
	made.user = cmp.Or(remote.user, credentials.Username, defaultUser)
	if made.hosts, err = made.knownHosts(credentials.KnownHosts); err != nil {
		return nil, err
	}
	if len(credentials.PrivateKey) == 0 {
		return nil, made.refused("ssh needs a private key: put it into the Secret of secretRef, as ssh-privatekey")
	}
	if !outbound.MeantFor(credentials, remote.url, remote.url) {
		return nil, made.refused("the Secret's hosts do not name this host, so its key is not used here")
	}
	made.signer, err = made.parseKey(credentials)
	return made, err
}

func (l *sshLink) refused(rule string) error {
	return &fetch.RefusedError{Subject: l.remote.shown(), Rule: rule}
}

func (l *sshLink) knownHosts(content []byte) (*hostKeys, error) {
	if len(content) == 0 {
		return nil, l.refused("ssh needs known_hosts in the Secret of secretRef: without it the server's identity is unknown")
	}
	hosts, err := readHostKeys(content, l.remote.url.Hostname(), cmp.Or(l.remote.url.Port(), "22"))
	if err != nil {
		return nil, l.refused(fmt.Sprintf("known_hosts can't be read: %v", err))
	}
	if hosts.isEmpty() {
		return nil, l.refused(fmt.Sprintf("known_hosts has no key for %q", hosts.host))
	}
	return hosts, nil
}

// parseKey uses the password as passphrase, if the key has one.
func (l *sshLink) parseKey(credentials fetch.Credentials) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(credentials.PrivateKey)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		if credentials.Password == "" {
			return nil, l.refused("the private key has a passphrase: put it into the Secret of secretRef, as password")
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(credentials.PrivateKey, []byte(credentials.Password))
	}
	if err != nil { // not reported: it may quote the key
		return nil, l.refused("the private key can't be read, or its passphrase is wrong")
	}
	return signer, nil
}

func (l *sshLink) connect(ctx context.Context) error {
	connection, err := l.network.Connect(ctx, l.remote.url, (l.limits.refs+l.limits.pack)/16*17+sshOverhead)
	if err != nil {
		return err
	}
	l.connection = connection
	l.messages.tooMany = func() { _ = connection.Close() }
	offered := false
	address := net.JoinHostPort(l.remote.url.Hostname(), "22") // known_hosts were already read with the port
	handshake, channels, requests, err := ssh.NewClientConn(connection, address, &ssh.ClientConfig{
		User: l.user, ClientVersion: "SSH-2.0-trellis", HostKeyCallback: l.hosts.check, HostKeyAlgorithms: l.hosts.algorithms(),
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			offered = true
			return []ssh.Signer{l.signer}, nil
		})},
	})
	if err != nil {
		return l.handshakeProblem(err, offered)
	}
	l.client = ssh.NewClient(handshake, channels, requests)
	return nil
}

// handshakeProblem distinguishes a wrong host, a wrong user and a bad connection.
func (l *sshLink) handshakeProblem(err error, offered bool) error {
	if wrong, ok := errors.AsType[*hostKeyError](err); ok {
		return l.refused(wrong.rule)
	}
	if mismatch, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok && !l.connection.Ended() {
		return l.refused(fmt.Sprintf(
			"the server and this client have no %s in common; of host keys, only the kinds in known_hosts are used", mismatch.What))
	}
	if offered && !l.connection.Ended() && !isNetwork(err) {
		return &fetch.UnauthorizedError{Subject: l.remote.shown(), Sent: true}
	}
	return l.connection.Problem(err)
}

func isNetwork(err error) bool {
	_, isOf := errors.AsType[net.Error](err)
	return isOf || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

func (l *sshLink) refs(ctx context.Context) (io.ReadCloser, *url.URL, error) {
	if err := l.connect(ctx); err != nil {
		return nil, nil, err
	}
	if err := l.start(); err != nil {
		return nil, nil, l.connection.Problem(err)
	}
	return &sshReader{link: l, from: l.output, left: l.limits.refs, limit: l.limits.refs, first: true}, l.remote.url, nil
}

// start runs the command. The path has no character that needs quoting in a shell.
func (l *sshLink) start() error {
	var err error
	if l.session, err = l.client.NewSession(); err != nil {
		return err
	}
	if l.input, err = l.session.StdinPipe(); err != nil {
		return err
	}
	if l.output, err = l.session.StdoutPipe(); err != nil {
		return err
	}
	l.session.Stderr = &l.messages
	return l.session.Start(service + " '" + l.remote.path + "'")
}

func (l *sshLink) upload(_ context.Context, request []byte) (io.ReadCloser, error) {
	l.asked = true
	if _, err := l.input.Write(request); err != nil {
		return nil, l.connection.Problem(err)
	}
	return &sshReader{link: l, from: l.output, left: l.limits.pack, limit: l.limits.pack}, nil
}

// close sends a flush to a server that waits for a request, and disconnects.
func (l *sshLink) close() {
	if l.session != nil && !l.asked {
		_, _ = io.WriteString(l.input, "0000")
	}
	if l.client != nil {
		_ = l.client.Close()
	}
	if l.connection != nil {
		_ = l.connection.Close()
	}
}

type sshReader struct {
	link        *sshLink
	from        io.Reader
	left, limit int64
	first       bool // nothing arrived yet
}

func (r *sshReader) Read(into []byte) (int, error) {
	count, err := r.from.Read(into)
	r.left -= int64(count)
	if r.left < 0 {
		return 0, r.link.refused("the answer is larger than " + outbound.Bytes(r.limit))
	}
	if err != nil && r.link.messages.remaining() < 0 {
		return 0, r.link.refused("its messages are larger than " + outbound.Bytes(messagesLimit))
	}
	if r.first && count == 0 && errors.Is(err, io.EOF) && !r.link.connection.Ended() && r.link.failed() {
		return 0, &fetch.NotFoundError{
			What: fmt.Sprintf("repository %q", r.link.remote.shown()), Mend: "check the path, and that the key may read it",
		}
	}
	r.first = r.first && count == 0
	if err != nil {
		return count, r.link.connection.Problem(err)
	}
	return count, nil
}

// failed reports that the command ended although the link did not end it: this key sees no such repository.
func (l *sshLink) failed() bool {
	_, ended := errors.AsType[*ssh.ExitError](l.session.Wait())
	return ended
}

func (r *sshReader) Close() error { return nil }

type messages struct {
	count   atomic.Int64
	tooMany func()
}

// Write discards, and ends the connection beyond the limit.
func (m *messages) Write(content []byte) (int, error) {
	if m.count.Add(int64(len(content))) > messagesLimit {
		m.tooMany()
	}
	return len(content), nil
}

func (m *messages) remaining() int64 { return messagesLimit - m.count.Load() }
