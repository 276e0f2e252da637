package images

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// checksAtOnce is how many images are looked for at a time.
const checksAtOnce = 8

// Registries says which manifest a registry has for a reference, by its digest; "" for none.
type Registries interface {
	Digest(ctx context.Context, reference string) (string, error)
}

// Open makes Registries with the logins of a Docker config and a certificate authority, which may be empty.
type Open func(dockerConfig, authority []byte) Registries

// States of an image in a mirror.
const (
	statePresent = "Present"
	stateMissing = "Missing"
	// stateNoRule: no mirror is for its registry.
	stateNoRule = "NoRule"
	// stateUnknown: the mirror could not be asked.
	stateUnknown = "Unknown"
)

// mirrored is an image and its copy in a mirror.
type mirrored struct {
	// From is the source; empty for an image that is in the mirror already, of which no rule names the source.
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	State string `json:"state"`
	// Message says why the state is Unknown.
	Message string `json:"message,omitempty"`
}

// check are the flags of a check.
type check struct {
	mirrors           []string
	config, authority string
	open              Open
}

// registries reads the files of the flags. Errors: ExitUsage.
func (c *check) registries() (Registries, error) {
	var files [2][]byte
	for i, path := range []string{c.config, c.authority} {
		var err error
		if path == "" {
			continue
		} else if files[i], err = os.ReadFile(path); err != nil {
			return nil, cli.Fail(cli.ExitUsage, "name a file that you may read with --registry-config and --registry-ca", "%w", err)
		}
	}
	return c.open(files[0], files[1]), nil
}

// rules are those of the flags. A mirror without a source is for all registries that have no rule. Errors: ExitUsage.
func (c *check) rules(registries []string) (images.Rules, error) {
	var given []string
	for _, mirror := range c.mirrors {
		if strings.Contains(mirror, "=") {
			given = append(given, mirror)
			continue
		}
		for _, registry := range registries {
			if !slices.ContainsFunc(c.mirrors, func(rule string) bool { return strings.HasPrefix(rule, registry+"=") }) {
				given = append(given, registry+"="+mirror)
			}
		}
	}
	parsed, err := images.ParseMirrors(given)
	if err != nil {
		return images.Rules{}, cli.Fail(cli.ExitUsage,
			"write --check once as MIRROR[/PATH], or for each registry as REGISTRY[/PATH]=MIRROR[/PATH]", "%w", err)
	}
	return images.Rules{Mirrors: parsed}, nil
}

// run looks for each image in its mirror.
func (c *check) run(ctx context.Context, found *view.Contents) (cli.Answer, error) {
	references, known := referencesOf(found), []string{"docker.io"}
	for _, one := range references {
		if !slices.Contains(known, one.Domain) {
			known = append(known, one.Domain)
		}
	}
	rules, err := c.rules(known)
	if err != nil {
		return cli.Answer{}, err
	}
	registries, err := c.registries()
	if err != nil {
		return cli.Answer{}, err
	}
	made := make([]mirrored, len(references))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(checksAtOnce)
	for i, one := range references {
		asking.Go(func() error {
			made[i] = placed(rules, one)
			if made[i].To == "" {
				return nil
			}
			digest, err := registries.Digest(ctx, made[i].To)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				made[i].State, made[i].Message = stateUnknown, text.Message(err.Error())
			case digest == "":
				made[i].State = stateMissing
			}
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return cli.Answer{}, err
	}
	return answerOf(made)
}

// referencesOf are the images of contents: those of containers and of add-ons, and charts in registries. Each is there once, by its digest
// if it is known.
func referencesOf(found *view.Contents) (references []images.Reference) {
	for _, one := range found.Contents {
		name, tag, digest := one.Reference, "", ""
		switch one.Kind {
		case v1.ContentImage:
			digest = one.Revision
		case v1.ContentChart:
			parts := strings.Fields(strings.TrimPrefix(one.Reference, "oci://"))
			if len(parts) != 3 || !strings.HasPrefix(one.Reference, "oci://") {
				continue
			}
			name, tag = parts[0]+"/"+parts[1], strings.ReplaceAll(parts[2], "+", "_")
		case view.ContentContainer:
			tag, digest = one.Revision, one.Digest
		default:
			continue
		}
		read, _ := images.Parse(name)
		if tag != "" {
			read.Tag = ":" + tag
		}
		if digest != "" {
			read.Tag, read.Digest = "", "@"+digest
		}
		if _, ok := images.Parse(read.String()); ok { // otherwise nothing can pull it
			references = append(references, read)
		}
	}
	slices.SortFunc(references, func(a, b images.Reference) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(references)
}

// placed is an image with its place in the mirror. One that is in the mirror already came from where a rule says.
func placed(rules images.Rules, of images.Reference) mirrored {
	if to, changes := rules.Image(of.String()); changes {
		return mirrored{From: of.String(), To: to, State: statePresent}
	}
	for _, rule := range rules.Mirrors {
		rest, isBelow := strings.CutPrefix(of.Name(), rule.To+"/")
		switch {
		case !isBelow:
		case slices.ContainsFunc(rules.Mirrors, func(other images.Rule) bool { return other.To == rule.To && other != rule }):
			return mirrored{To: of.String(), State: statePresent} // of several registries
		default:
			return mirrored{From: rule.From + "/" + rest + of.Tag + of.Digest, To: of.String(), State: statePresent}
		}
	}
	return mirrored{From: of.String(), State: stateNoRule}
}

// answerOf is what a check found, for people and programs, and as lists of copies. Only references that can be parsed are in it, so no
// character of a list has a meaning for a shell.
func answerOf(made []mirrored) (cli.Answer, error) {
	table, lacks := view.NewTable("STATE", "IMAGE", "MIRROR", "MESSAGE?>"), 0
	answer := cli.Answer{Lines: map[string][]string{}}
	for _, one := range made {
		cells := view.Of(one.State, cmp.Or(one.From, one.To), one.To, one.Message)
		if one.State != statePresent {
			lacks++
			cells[0].Colour = view.Red
		}
		table.Add(cells...)
		answer.Names = append(answer.Names, cmp.Or(one.From, one.To))
		if one.State != stateMissing {
			continue
		}
		for format, line := range map[string]string{
			formatCrane: "crane copy %[1]s %[2]s", formatSkopeo: "skopeo copy --all --preserve-digests docker://%[1]s docker://%[2]s",
		} {
			if line = fmt.Sprintf(line, one.From, one.To); one.From == "" {
				line = "# the source of this image is not known: " + one.To
			}
			answer.Lines[format] = append(answer.Lines[format], line)
		}
	}
	var err error
	answer.Tables, answer.IsNo = []view.Table{table}, lacks > 0
	answer.Notes = []string{fmt.Sprintf("%s, %d of them not found in the mirror", text.Count(len(made), "image"), lacks)}
	answer.Object, err = cli.Document("MirrorCheck", map[string]any{"images": made})
	return answer, err
}
