package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a certificate in PEM.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
}

// AG15: Without any there is nothing for agents; wrong ones end the start, and the error has the flag's name and no user part.
func TestFlagsOfAgents(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, key := file("good", authority(t)), file("key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
	for _, test := range []struct {
		why, server, ca, problem string
	}{
		{"neither", "", "", ""},
		{"both", "https://seed.example.com:6443", good, ""},
		{"an address with a path", "https://seed.example.com/k8s/clusters/1", good, ""},
		{"plain http", "http://seed.example.com", good, "--hub-server"},
		{"no scheme", "seed.example.com:6443", good, "--hub-server"},
		{"a user", "https://somebody:canary@seed.example.com", good, "--hub-server"},
		{"a query", "https://seed.example.com?a=b", good, "--hub-server"},
		{"no server", "", good, "--hub-server"},
		{"no authority", "https://seed.example.com", "", "--hub-ca-file"},
		{"no file", "https://seed.example.com", filepath.Join(folder, "none"), "--hub-ca-file"},
		{"no PEM", "https://seed.example.com", file("text", "text"), "--hub-ca-file"},
		{"a key", "https://seed.example.com", key, "--hub-ca-file"},
		{"a broken certificate", "https://seed.example.com", file("broken", strings.Replace(authority(t), "-----\nM", "-----\nA", 1)), "--hub-ca-file"},
		{"too large", "https://seed.example.com", file("large", strings.Repeat("#", largestCA+1)), "--hub-ca-file"},
	} {
		t.Run(test.why, func(t *testing.T) {
			options, set := &agentOptions{}, flag.NewFlagSet("", flag.ContinueOnError)
			options.register(set)
			if err := set.Parse([]string{"--hub-server=" + test.server, "--hub-ca-file=" + test.ca}); err != nil {
				t.Fatal(err)
			}
			given, err := options.access()
			switch {
			case test.problem == "" && err != nil:
				t.Error(err)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem) || strings.Contains(err.Error(), "canary")):
				t.Errorf("the error is %v", err)
			case (given != nil) != (test.server != "" && test.problem == ""):
				t.Errorf("agents get %v", given)
			}
		})
	}
}

// AG15: What can't be read any more leaves what was read before.
func TestAuthoritiesOfTheHubFollowTheirFile(t *testing.T) {
	path, first, second := filepath.Join(t.TempDir(), "ca.crt"), authority(t), authority(t)
	of := &hub{server: "https://seed.example.com", file: path}
	for _, step := range []struct{ why, content, want string }{
		{"the first", first, first}, {"broken", "text", first}, {"another", second, second}, {"empty", "", second},
	} {
		if err := os.WriteFile(path, []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		of.looked = time.Time{}
		now, err := of.now()
		if err != nil || string(now.CA) != step.want {
			t.Errorf("%s: the authorities are others, %v", step.why, err)
		}
	}
}
