package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
)

const (
	// previewTime limits how long a preview may be pending, or no replica leads.
	previewTime = 90 * time.Second
	// objectsShown is how many objects the lines before a question name.
	objectsShown = 40
)

// Preview is what an installation with this name, annotations and spec would become. A preview that is pending is asked for again for a
// minute and a half. With isLive, the user cluster checks the objects. Errors: ExitUnreachable, ExitForbidden, ExitRefused.
func (e *Endpoint) Preview(ctx context.Context, one *v1.AddonInstallation, isLive bool) (made preview.Preview, err error) {
	asked := &v1.AddonInstallation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "AddonInstallation"},
		ObjectMeta: metav1.ObjectMeta{Name: one.Name, Annotations: one.Annotations}, Spec: one.Spec,
	}
	question := Question{
		Path: "api/v1/namespaces/" + one.Namespace + "/preview", Body: asked,
		Right: fmt.Sprintf("create or update addoninstallations.kubermatic.k8c.io in namespace %q", one.Namespace),
	}
	if isLive {
		question.Query = url.Values{"live": {"true"}}
	}
	limited, stop := context.WithTimeout(ctx, previewTime)
	defer stop()
	for {
		found, err := e.call(limited, question)
		if err != nil && ctx.Err() == nil && limited.Err() != nil && made.State != "" {
			return made, nil // pending still
		} else if err != nil {
			return made, err
		}
		switch found.status {
		case http.StatusOK, http.StatusAccepted:
			made = preview.Preview{}
			if err := decode(found.body, &made); err != nil {
				return made, err
			}
			if made.State != preview.StatePending {
				return made, nil
			}
		case http.StatusServiceUnavailable:
			err = e.refusal(found, question.Right)
		default:
			return made, e.refusal(found, question.Right)
		}
		select {
		case <-limited.Done():
			return made, err
		case <-time.After(time.Duration(found.retryAfter) * time.Second):
		}
	}
}

// LiveFlag adds flag --live to a command that shows a preview.
func LiveFlag(command *cobra.Command, isLive *bool) {
	command.Flags().BoolVar(isLive, "live", false, "let the cluster check the objects too, in a dry run that writes nothing")
}

// decode reads an answer. Its numbers stay as they are.
func decode(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return cli.Fail(cli.ExitFailed, "update kubectl-addons", "the answer of the query endpoint can't be read")
	}
	return nil
}

// Foresee are lines about what an installation would become, for callers who are about to confirm it. If there is no preview, a line says
// why.
func Foresee(ctx context.Context, t *cli.Tool, seed *cli.Platform, one *v1.AddonInstallation, isLive bool) []string {
	at, err := Find(ctx, seed)
	var made preview.Preview
	if err == nil {
		made, err = at.Preview(ctx, one, isLive)
	}
	if err != nil {
		return []string{"no preview: " + err.Error()}
	}
	lines := []string{"preview: " + made.Summary()}
	if table := made.Differing(objectsShown); len(table.Rows) > 0 {
		drawn := strings.TrimSuffix(table.Text(view.Style{Width: max(0, t.Width-2)}), "\n")
		lines = append(lines, "  "+strings.ReplaceAll(drawn, "\n", "\n  "))
		lines = strings.Split(strings.Join(lines, "\n"), "\n")
	}
	for _, note := range made.Notes() {
		lines = append(lines, "  "+note)
	}
	return lines
}
