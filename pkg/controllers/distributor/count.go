package distributor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// countedAtOnce is the size of a page of installations.
const countedAtOnce = 500

// tables asks for the columns of objects and nothing else: values and statuses of installations stay where they are.
const tables = "application/json;as=Table;v=v1;g=meta.k8s.io"

// newCounter makes the client that reads tables.
func newCounter(config *rest.Config, transport *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	version := v1.GroupVersion
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	counter, err := rest.RESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("making a client for tables: %w", err)
	}
	return counter, nil
}

// count asks the seed which versions its installations have. A seed without the kind has none.
func (s *session) count(ctx context.Context) (map[catalogue.UsedVersion]int, error) {
	found := map[catalogue.UsedVersion]int{}
	for next := ""; ; {
		raw, err := s.counter.Get().Resource("addoninstallations").SetHeader("Accept", tables).
			Param("includeObject", string(metav1.IncludeNone)).Param("limit", strconv.Itoa(countedAtOnce)).
			Param("continue", next).DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("counting installations: %w", err)
		}
		var page metav1.Table
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("counting installations: %w", err)
		}
		addUsed(found, &page)
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

// addUsed counts the rows of a page by the columns that the CRD prints.
func addUsed(found map[catalogue.UsedVersion]int, page *metav1.Table) {
	addon, version := -1, -1
	for i, column := range page.ColumnDefinitions {
		switch column.Name {
		case "Addon":
			addon = i
		case "Version":
			version = i
		}
	}
	for _, row := range page.Rows {
		used := catalogue.UsedVersion{Addon: cell(row, addon)}
		if text := cell(row, version); text != "" {
			used.Version = catalogue.Key(text)
		}
		if used.Addon != "" {
			found[used]++
		}
	}
}

// cell is empty where a row has none.
func cell(row metav1.TableRow, at int) string {
	if at < 0 || at >= len(row.Cells) {
		return ""
	}
	text, _ := row.Cells[at].(string)
	return text
}
