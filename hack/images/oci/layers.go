package oci

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/trellis-addons/trellis/hack/images/archive"
	"github.com/trellis-addons/trellis/hack/images/sbom"
)

// AuthoritiesFile is where Go's library looks for authorities first.
const AuthoritiesFile = "etc/ssl/certs/ca-certificates.crt"

// rootsModule is the Go module that the authorities come with.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// layerOf makes a layer of files.
func layerOf(files ...archive.File) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := archive.Write(&packed, files, archive.WithFolders, time.Time{}); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	return layer, nil
}

// authorities are Mozilla's, save for those that it trusts for a part of their certificates only: a
// file of certificates can't say so, and would have them trusted for all.
func authorities() archive.File {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return archive.File{Name: AuthoritiesFile, Data: text.Bytes()}
}

// authoritiesComponent is the module that the authorities come with, in the version that this very
// program was built with.
func authoritiesComponent() (sbom.Component, error) {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return sbom.Component{}, fmt.Errorf("this program says nothing of its modules")
	}
	at := slices.IndexFunc(build.Deps, func(module *debug.Module) bool { return module.Path == rootsModule })
	if at < 0 {
		return sbom.Component{}, fmt.Errorf("this program does not know module %s", rootsModule)
	}
	return sbom.Component{Module: rootsModule, Version: build.Deps[at].Version, Why: "Mozilla's authorities, in /" + AuthoritiesFile}, nil
}
