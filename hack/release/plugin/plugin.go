// Package plugin makes the archives of kubectl-addons for users' machines, and the manifest by which krew installs them.
package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/hack/images/archive"
	"github.com/trellis-addons/trellis/hack/images/checkout"
	"github.com/trellis-addons/trellis/hack/images/program"
)

// Platforms are those of users' machines.
var Platforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}, {OS: "darwin", Architecture: "amd64"},
	{OS: "darwin", Architecture: "arm64"}, {OS: "windows", Architecture: "amd64"}, {OS: "windows", Architecture: "arm64"},
}

// ManifestName is the file of the manifest.
const ManifestName = "krew.yaml"

//go:embed krew.yaml
var manifest string

// archived is one archive, as the manifest names it.
type archived struct{ Name, OS, Architecture, Sum, Program string }

// Make builds the program of a module for all platforms. It returns the content of each file by its name. Further files go
// into each archive.
func Make(ctx context.Context, module string, stamp checkout.Stamp, further ...archive.File) (map[string][]byte, error) {
	programs, err := program.Plugins(ctx, module)
	if err != nil {
		return nil, err
	}
	one, files := programs[0], map[string][]byte{}
	var made []archived
	for _, platform := range Platforms {
		content, err := one.Build(ctx, module, platform, stamp)
		if err != nil {
			return nil, err
		}
		name := one.Name()
		if platform.OS == "windows" {
			name += ".exe"
		}
		var packed bytes.Buffer
		members := append([]archive.File{{Name: name, Data: content, Executable: true}}, further...)
		if err := archive.Write(&packed, members, archive.WithoutFolders, stamp.Date); err != nil {
			return nil, err
		}
		file := fmt.Sprintf("%s-%s-%s-%s.tar.gz", one.Name(), stamp.Version, platform.OS, platform.Architecture)
		files[file] = packed.Bytes()
		sum := sha256.Sum256(packed.Bytes())
		made = append(made, archived{file, platform.OS, platform.Architecture, hex.EncodeToString(sum[:]), name})
	}
	var text bytes.Buffer
	filled, err := template.New(ManifestName).Option("missingkey=error").Parse(manifest)
	if err == nil {
		err = filled.Execute(&text, map[string]any{"Version": stamp.Version, "Module": one.Module, "Archives": made})
	}
	if err != nil {
		return nil, fmt.Errorf("filling the manifest for krew: %w", err)
	}
	files[ManifestName] = text.Bytes()
	return files, nil
}
