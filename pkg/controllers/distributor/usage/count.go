package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

const countedAtOnce = 500

// countTotals bound a count, above the number of any seed.
var countTotals = remote.Totals{Calls: 400, Items: 200_000, Bytes: 128 << 20, Time: 2 * time.Minute}

// tables requests only the printed columns of objects.
const tables = "application/json;as=Table;v=v1;g=meta.k8s.io"

// NewClient returns a client for a seed that reads tables.
func NewClient(foreign *remote.Client) (rest.Interface, error) {
	config := rest.CopyConfig(foreign.Config)
	version := v1.GroupVersion
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, foreign.HTTP)
	if err != nil {
		return nil, fmt.Errorf("creating a client for tables: %w", err)
	}
	return client, nil
}

// Count counts a seed's installations by version. Unknown versions are one number.
type Count struct {
	Installations map[catalogue.UsedVersion]int
	Others        int
	// Unfetched are problems with sources that installations of offered add-ons report.
	Unfetched Unfetched

	offered map[string]map[string]bool
}

func newCount(addons map[string]*catalogue.MergedAddon, leave catalogue.Leave) *Count {
	c := &Count{offered: map[string]map[string]bool{}, Installations: map[catalogue.UsedVersion]int{}, Unfetched: Unfetched{}}
	for name, addon := range addons {
		c.offer(name, "")
		for i := range addon.Spec.Addons {
			for _, version := range addon.Spec.Addons[i].Versions {
				c.offer(name, catalogue.Key(version.Version))
			}
		}
	}
	for name, versions := range leave {
		for _, version := range versions {
			c.offer(name, catalogue.Key(version))
		}
	}
	return c
}

func (c *Count) offer(addon, version string) {
	if c.offered[addon] == nil {
		c.offered[addon] = map[string]bool{}
	}
	c.offered[addon][version] = true
}

// Read counts a seed's installations. A seed without the kind has none.
func Read(
	ctx context.Context, client rest.Interface, addons map[string]*catalogue.MergedAddon, leave catalogue.Leave,
) (counted *Count, err error) {
	ctx = remote.Within(ctx, "the count of installations", countTotals)
	counted = newCount(addons, leave)
	for next, more := "", true; more; more = next != "" {
		next, err = readPage(ctx, client, next, counted)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("counting installations: %w", err)
		}
	}
	return counted, nil
}

type table struct {
	Metadata          struct{ Continue string }
	ColumnDefinitions []struct{ Name string }
	Rows              []tableRow
}

type tableRow struct{ Cells []any }

func readPage(ctx context.Context, client rest.Interface, token string, counted *Count) (next string, err error) {
	ctx, release := remote.Hold(ctx)
	defer release()
	raw, err := client.Get().Resource("addoninstallations").SetHeader("Accept", tables).
		Param("includeObject", string(metav1.IncludeNone)).Param("limit", strconv.Itoa(countedAtOnce)).
		Param("continue", token).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var page table
	if err := json.Unmarshal(raw, &page); err != nil {
		return "", &remote.MisbehavesError{Did: "its table of installations has an unexpected form"}
	}
	counted.add(&page)
	return page.Metadata.Continue, nil
}

// add counts the rows of a page by the columns that the CRD prints.
func (c *Count) add(page *table) {
	addon, version, reason := -1, -1, -1
	for i, column := range page.ColumnDefinitions {
		switch column.Name {
		case "Addon":
			addon = i
		case "Version":
			version = i
		case "Reason":
			reason = i
		}
	}
	for _, row := range page.Rows {
		have := catalogue.UsedVersion{Addon: cell(row, addon)}
		if text := cell(row, version); text != "" {
			have.Version = catalogue.Key(text)
		}
		if c.offered[have.Addon] != nil {
			c.Unfetched.add(have.Addon, cell(row, reason))
		}
		switch {
		case c.offered[have.Addon][have.Version]:
			c.Installations[have]++
		case have.Addon != "":
			c.Others++
		}
	}
}

func cell(row tableRow, at int) string {
	if at < 0 || at >= len(row.Cells) {
		return ""
	}
	text, _ := row.Cells[at].(string)
	if len(text) > 256 {
		return ""
	}
	return text
}

const addonsNamed = 3

// Unfetched has the add-ons whose content installations can't get, with the worst reason of each.
type Unfetched map[string]string

func (u Unfetched) add(addon, reason string) {
	if slices.Contains(catalogue.FetchReasons, reason) {
		u[addon] = Worse(u[addon], reason)
	}
}

// Of is the text about problems with some add-ons' sources, with the worst reason; empty if there are none.
func (u Unfetched) Of(addons map[string]string) (reason, text string) {
	var named []string
	for _, addon := range slices.Sorted(maps.Keys(addons)) {
		said := u[addon]
		if said == "" {
			continue
		}
		reason = Worse(reason, said)
		if len(named) < addonsNamed {
			named = append(named, fmt.Sprintf("%q: %s", addon, said))
		}
	}
	if reason == "" {
		return "", ""
	}
	return reason, "installations can't get the content of " + strings.Join(named, ", ")
}

// Worse is the worse of two of catalogue.SourceReasons; empty is none.
func Worse(a, b string) string {
	if a == "" || b != "" && slices.Index(catalogue.SourceReasons, b) < slices.Index(catalogue.SourceReasons, a) {
		return b
	}
	return a
}
