package git_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/test/expect"
)

func withKey(server *fetchtest.SSH) fetch.Credentials {
	return fetch.Credentials{PrivateKey: server.Key, KnownHosts: server.KnownHosts}
}

func TestSSH(t *testing.T) {
	server, repository := fetchtest.ServeGitSSH(t, "team/addons")
	old := repository.Commit("main", map[string]string{"a/x.yaml": "old"})
	first := repository.Commit("main", map[string]string{"a/x.yaml": "one", "a/b/y.yaml": "two", "z": "other"})
	repository.Annotate("v1.0.0", first)
	repository.Annotate("v1.2.0", first)
	for _, test := range []struct {
		why, commit string
		reference   git.Location
		want        map[string]string
	}{
		{"a branch", first, git.Location{Branch: "main", Path: "a"}, map[string]string{"x.yaml": "one", "b/y.yaml": "two"}},
		{"a tag", first, git.Location{Tag: "v1.0.0", Path: "a/b"}, map[string]string{"y.yaml": "two"}},
		{"a range", first, git.Location{Semver: "~1.0", Path: "a/b"}, map[string]string{"y.yaml": "two"}},
		{"an older commit", old, git.Location{Commit: fetch.Selector(old)}, map[string]string{"a/x.yaml": "old"}},
	} {
		t.Run(test.why, func(t *testing.T) {
			test.reference.Remote = repository.URL
			got, commit, _ := fetchInto(t, client(t), fetch.Reference{Location: test.reference, Credentials: withKey(server)})
			if diff := cmp.Diff(test.want, got); diff != "" || commit != test.commit {
				t.Errorf("commit %s (-want +got):\n%s", commit, diff)
			}
		})
	}
	for _, command := range server.Commands() {
		if command != "git-upload-pack '/team/addons.git'" {
			t.Errorf("the server was asked to run %q", command)
		}
	}
}

// TestSSHShortForm: The short form is ssh, to port 22, and its path is relative.
func TestSSHShortForm(t *testing.T) {
	for remote, want := range map[string][3]string{
		"git@git.example.com:team/addons.git":      {"git", "ssh://git.example.com/team/addons.git", "team/addons.git"},
		"git@git.example.com:/srv/addons.git":      {"git", "ssh://git.example.com/srv/addons.git", "/srv/addons.git"},
		"ssh://me@git.example.com:2222/addons.git": {"me", "ssh://git.example.com:2222/addons.git", "/addons.git"},
		"ssh://git.example.com/~me/addons.git":     {"", "ssh://git.example.com/~me/addons.git", "/~me/addons.git"},
		"ssh://git@[2001:db8::1]:2222/addons.git":  {"git", "ssh://[2001:db8::1]:2222/addons.git", "/addons.git"},
	} {
		user, shown, path, err := git.ParseSSH(remote)
		if got := [3]string{user, shown, path}; err != nil || got != want {
			t.Errorf("%q: got %q, %v", remote, got, err)
		}
	}
}

// TestRemotesThatInjectIntoSSHAreRefused (V20): Remotes that an ssh server would read as options or as shell are
// refused.
func TestRemotesThatInjectIntoSSHAreRefused(t *testing.T) {
	server, repository := fetchtest.ServeGitSSH(t, "x")
	repository.Commit("main", map[string]string{"x": "y"})
	for _, remote := range []string{
		"ssh://-oProxyCommand=x/y", "ssh://git@-oProxyCommand=x/y", "-oProxyCommand@x:y", "git@-oProxyCommand=x:y", "git@x:--upload-pack=y",
		"git@x:-y", "ssh://git@x/--upload-pack=y", "ssh://git@x/a/-y", "ssh://git@x/a'b", "ssh://git@x/a%27b", "ssh://git@x/a$(b)",
		"ssh://git@x/a%60b", "ssh://git@x/a%0ab", "ssh://git@x/a;b", "ssh://git@x/a|b", "ssh://git@x/a&b", `ssh://git@x/a\b`, "ssh://git@x/a b",
		"ssh://git@x/../y", "ssh://git@x/a/../../y", "ssh://git@x/", "ssh://git@x", "ssh://", "ssh:x", "git@:y", "@x:y", "git@x:",
		"ssh://git:canary@x/y", "ssh://git@x/y?z", "ssh://git@x/y#z", "ssh://git@x:port/y", "ssh://git@x:99999/y", "ssh://g'it@x/y",
		"ssh://git%0a@x/y", "ssh://git@x%00/y", "ssh://git@[fe80::1%25eth0]/y", "git@x:y:z", "git@x:y\nz",
	} {
		reference := fetch.Reference{
			Location:    git.Location{Remote: remote, Branch: "main"},
			Credentials: fetch.Credentials{PrivateKey: server.Key, KnownHosts: []byte("* " + string(bytes.SplitN(server.KnownHosts, []byte(" "), 2)[1]))},
		}
		_, err := client(t).Resolve(t.Context(), reference)
		if !isRefused(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: got %v", remote, err)
		}
	}
	if commands := server.Commands(); len(commands) != 0 {
		t.Errorf("the server was asked to run %q", commands)
	}
}

// otherKey generates a key that is in no known_hosts.
func otherKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("passphrase"))
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// TestOnlyKnownHostKeysAreTrusted (V24, V25): A host whose key is unknown, changed or revoked is not trusted.
func TestOnlyKnownHostKeysAreTrusted(t *testing.T) {
	server, repository := fetchtest.ServeGitSSH(t, "x")
	commit := repository.Commit("main", map[string]string{"x": "y"})
	good := string(server.KnownHosts)
	_, key, _ := strings.Cut(strings.TrimSpace(good), " ")
	other, _ := otherKey(t)
	line := func(host string, key ssh.PublicKey) string { return knownhosts.Line([]string{host}, key) + "\n" }
	host := knownhosts.Normalize(server.Address)
	for _, test := range []struct {
		why, hosts string
		ok         bool
	}{
		{"the server's key", good, true},
		{"by a hashed name", knownhosts.HashHostname(host) + " " + key + "\n", true},
		{"by a pattern", "[127.0.0.*]:* " + key + "\n", true},
		{"with comments and other hosts", "# of ours\n\n" + line("example.com", other.PublicKey()) + good, true},
		{"a key before", line(server.Address, other.PublicKey()) + good, true},
		{"none", "", false},
		{"a comment only", "# " + good, false},
		{"of another host", line("example.com", other.PublicKey()), false},
		{"the host's key, but at another port", "127.0.0.1 " + key + "\n", false},
		{"another key", line(server.Address, other.PublicKey()), false},
		{"a pattern that leaves the host out", "[127.0.0.*]:*,!" + host + " " + key + "\n", false},
		{"the key is revoked", good + "@revoked * " + key + "\n", false},
		{"the key is an authority, and no host key", "@cert-authority " + good, false},
		{"an unknown marker", "@unknown " + good, false},
		{"two markers", "@cert-authority @revoked " + good, false},
		{"a line that is none", good + "nonsense of three words\n", false},
	} {
		t.Run(test.why, func(t *testing.T) {
			credentials := withKey(server)
			credentials.KnownHosts = []byte(test.hosts)
			revision, err := client(t).Resolve(t.Context(), fetch.Reference{
				Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: credentials,
			})
			if test.ok && (err != nil || revision.Name != commit) || !test.ok && !isRefused(err) {
				t.Errorf("got %v, %v", revision, err)
			}
		})
	}
}

// TestOnlyValidHostCertificatesAreTrusted (V24, V25): A host's certificate counts while it is valid, for its host,
// and of an authority that is not revoked.
func TestOnlyValidHostCertificatesAreTrusted(t *testing.T) {
	authority, _ := otherKey(t)
	host, _ := otherKey(t)
	certificate := func(change func(*ssh.Certificate)) ssh.PublicKey {
		made := &ssh.Certificate{
			Key: host.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"git.example.com"}, ValidBefore: ssh.CertTimeInfinity,
		}
		change(made)
		if err := made.SignCert(rand.Reader, authority); err != nil {
			t.Fatal(err)
		}
		return made
	}
	trusted := "@cert-authority *.example.com " + string(ssh.MarshalAuthorizedKey(authority.PublicKey()))
	revoked := func(key ssh.PublicKey) string { return trusted + "@revoked * " + string(ssh.MarshalAuthorizedKey(key)) }
	for _, test := range []struct {
		why, hosts string
		key        ssh.PublicKey
		ok         bool
	}{
		{"of a trusted authority", trusted, certificate(func(*ssh.Certificate) {}), true},
		{"for another host", trusted, certificate(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"other.example.com"} }), false},
		{"for users", trusted, certificate(func(c *ssh.Certificate) { c.CertType = ssh.UserCert }), false},
		{"expired", trusted, certificate(func(c *ssh.Certificate) { c.ValidBefore = 1 }), false},
		{"the authority is revoked", revoked(authority.PublicKey()), certificate(func(*ssh.Certificate) {}), false},
		{"the host's key is revoked", revoked(host.PublicKey()), certificate(func(*ssh.Certificate) {}), false},
		{"the authority is for other hosts", strings.Replace(trusted, "*.example.com", "*.example.org", 1),
			certificate(func(*ssh.Certificate) {}), false},
	} {
		if err := git.CheckHostKey(test.hosts, "git.example.com", test.key); (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.why, err)
		}
	}
}

// TestKnownHostsComments: After the key comes a comment of any number of words (sshd(8)); a revocation with a comment
// stays a revocation.
func TestKnownHostsComments(t *testing.T) {
	key, _ := otherKey(t)
	line := "git.example.com " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	for hosts, ok := range map[string]bool{
		line:                             true,
		line + " root@git.example.com\n": true,
		line + " the key of the old host, kept until May\r\n":           true,
		"# a b c d e f g\n\n" + line + " a b c d e\n":                   true,
		line + "\n@revoked " + line + " stolen in May, do not use\n":    false,
		"@cert-authority " + line + " an authority, not a host's key\n": false,
		"@unknown " + line + " a b c d e\n":                             false,
		line + "\n a b c d e f\n":                                       false,
	} {
		if err := git.CheckHostKey(hosts, "git.example.com", key.PublicKey()); (err == nil) != ok {
			t.Errorf("%q: got %v", hosts, err)
		}
	}
}

func TestSSHKeys(t *testing.T) {
	server, repository := fetchtest.ServeGitSSH(t, "x")
	repository.Commit("main", map[string]string{"x": "y"})
	_, encrypted := otherKey(t)
	name, _, _ := strings.Cut(server.Address, ":")
	for _, test := range []struct {
		why    string
		change func(*fetch.Credentials)
		want   func(error) bool
		says   string
	}{
		{"the right one", func(*fetch.Credentials) {}, nil, ""},
		{"for the host that the Secret names", func(c *fetch.Credentials) { c.Hosts = []string{name} }, nil, ""},
		{"for another host", func(c *fetch.Credentials) { c.Hosts = []string{"example.com"} }, isRefused, "do not name this host"},
		{"none", func(c *fetch.Credentials) { c.PrivateKey = nil }, isRefused, "needs a private key"},
		{"none that can be read", func(c *fetch.Credentials) { c.PrivateKey = []byte("canary") }, isRefused, "can't be read"},
		{"one without its passphrase", func(c *fetch.Credentials) { c.PrivateKey = encrypted }, isRefused, "has a passphrase"},
		{"one with a wrong passphrase", func(c *fetch.Credentials) {
			c.PrivateKey, c.Password = encrypted, "canary"
		}, isRefused, "its passphrase is wrong"},
		{"one that the server does not let in", func(c *fetch.Credentials) {
			c.PrivateKey, c.Password = encrypted, "passphrase"
		}, isUnauthorized, "refuses the credentials"},
	} {
		t.Run(test.why, func(t *testing.T) {
			credentials := withKey(server)
			test.change(&credentials)
			_, err := client(t).Resolve(t.Context(), fetch.Reference{
				Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: credentials,
			})
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !test.want(err) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func isUnauthorized(err error) bool {
	var unauthorized *fetch.UnauthorizedError
	return errors.As(err, &unauthorized) && unauthorized.Sent
}

func isUnavailable(err error) bool {
	var unavailable *fetch.UnavailableError
	return errors.As(err, &unavailable)
}

func isMissing(err error) bool {
	var missing *fetch.NotFoundError
	return errors.As(err, &missing)
}

func TestSSHMissing(t *testing.T) {
	server, repository := fetchtest.ServeGitSSH(t, "x")
	repository.Commit("main", map[string]string{"x": "y"})
	for why, reference := range map[string]git.Location{
		"repository": {Remote: server.URL + "/other.git", Branch: "main"},
		"branch":     {Remote: repository.URL, Branch: "other"},
	} {
		_, err := client(t).Resolve(t.Context(), fetch.Reference{Location: reference, Credentials: withKey(server)})
		if !isMissing(err) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	_, err := client(t).Fetch(t.Context(), fetch.Reference{
		Location: git.Location{Remote: repository.URL, Commit: fetch.Selector(strings.Repeat("a", 40))}, Credentials: withKey(server),
	}, fetch.Revision{Name: strings.Repeat("a", 40)}, folder(t))
	if err == nil || isRefused(err) {
		t.Errorf("a commit that is not there: got %v", err)
	}
}

// TestSSHIsCheckedAtTheDial (AC14): An ssh server at a forbidden address is not dialled.
func TestSSHIsCheckedAtTheDial(t *testing.T) {
	server, repository := fetchtest.ServeGitSSH(t, "x")
	repository.Commit("main", map[string]string{"x": "y"})
	closed := outbound.New(outbound.Options{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	t.Cleanup(closed.Close)
	_, err := git.New(closed).Resolve(t.Context(), fetch.Reference{
		Location: git.Location{Remote: repository.URL, Branch: "main"}, Credentials: withKey(server),
	})
	if !isRefused(err) || !strings.Contains(err.Error(), "a loopback address") {
		t.Errorf("got %v", err)
	}
	if server.Connections() != 0 {
		t.Error("the server was dialled")
	}
}

// TestEndlessAnswersOverSSHEnd (V21): An endless answer of a git server over ssh is cut off.
func TestEndlessAnswersOverSSHEnd(t *testing.T) {
	hash := strings.Repeat("a", 40)
	line := fmt.Sprintf("003d%s refs/pull/000000", hash)
	piece := strings.Repeat(line, 1000)
	endless := fmt.Sprintf("%04x\x01%s", 65005, strings.Repeat("x", 65000))
	forever := func(channel io.Writer, text string) uint32 {
		for {
			if _, err := io.WriteString(channel, text); err != nil {
				return 1
			}
		}
	}
	for says, command := range map[string]fetchtest.Command{
		"the answer is larger than 4 MiB":    func(_ string, channel ssh.Channel) uint32 { return forever(channel, piece) },
		"its messages are larger than 1 MiB": func(_ string, channel ssh.Channel) uint32 { return forever(channel.Stderr(), piece) },
		"the answer is larger than 8 MiB": func(_ string, channel ssh.Channel) uint32 {
			_, _ = io.WriteString(channel, pkt(hash+" refs/heads/main"+capabilities)+"0000")
			_, _ = io.WriteString(channel, "00000008NAK\n")
			return forever(channel, endless)
		},
	} {
		t.Run(says, func(t *testing.T) {
			server := fetchtest.ServeSSH(t, command)
			reference := fetch.Reference{
				Location: git.Location{Remote: server.URL + "/x.git", Branch: "main"}, Credentials: withKey(server),
			}
			source := client(t)
			source.LimitWire(4<<20, 8<<20)
			_, err := source.Fetch(t.Context(), reference, fetch.Revision{Name: hash}, folder(t))
			if !isRefused(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSlowSSHServerIsGivenUp (AC23): A silent ssh server is given up after a time.
func TestSlowSSHServerIsGivenUp(t *testing.T) {
	waits := func(_ string, channel ssh.Channel) uint32 {
		_, _ = io.Copy(io.Discard, channel)
		return 0
	}
	server := fetchtest.ServeSSH(t, waits)
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback, IdleTimeout: 50 * time.Millisecond})
	t.Cleanup(network.Close)
	reference := fetch.Reference{
		Location: git.Location{Remote: server.URL + "/x.git", Branch: "main"}, Credentials: withKey(server),
	}
	if _, err := git.New(network).Resolve(t.Context(), reference); !isUnavailable(err) || !strings.Contains(err.Error(), "no data arrived for") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t).Resolve(ctx, reference); !isUnavailable(err) {
		t.Errorf("of a caller that gives up: got %v", err)
	}
}

// TestAPackThatWaitsHasNoConnection fails when the connection to an ssh server stays open while a pack waits for the
// turn of its owner.
func TestAPackThatWaitsHasNoConnection(t *testing.T) {
	good := []byte("good")
	tree, commit := commitOf(objectHash("blob", good))
	hash, ends := objectHash("commit", commit), make(chan struct{})
	server := fetchtest.ServeSSH(t, func(_ string, channel ssh.Channel) uint32 {
		onMain(hash)(channel)
		_, _ = io.WriteString(channel, "0000"+pkt("NAK\n"))
		ended(func(p *pack) {
			p.entry(commitKind, int64(len(commit)), nil, deflate(commit))
			p.entry(treeKind, int64(len(tree)), nil, deflate(tree))
			p.entry(blobKind, int64(len(good)), nil, deflate(good))
		}, 3)(channel)
		_, _ = io.Copy(io.Discard, channel) // until the client disconnects
		close(ends)
		return 0
	})
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback, Timeout: time.Hour, IdleTimeout: time.Hour})
	t.Cleanup(network.Close)
	ctx := fetch.WithSpace(t.Context(), fetch.Space{Turn: func(context.Context) (func(), error) {
		select {
		case <-ends:
		case <-time.After(expect.Patience):
			t.Error("the connection lasts")
		}
		return func() {}, nil
	}})
	reference := fetch.Reference{Location: git.Location{Remote: server.URL + "/x.git", Branch: "main"}, Credentials: withKey(server)}
	if _, err := git.New(network).Fetch(ctx, reference, fetch.Revision{Name: hash}, folder(t)); err != nil {
		t.Error(err)
	}
}
