package platformvalues

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/trellis-addons/trellis/pkg/values/strictlist"
)

// ListName and ListKey locate the list in the platform namespace.
const (
	ListName = "addon-platform-values"
	ListKey  = "platform.yaml"
)

// List is the definition of the list: at most 64 items, 256 KiB with aliases written out.
var List = strictlist.List{ConfigMap: ListName, Key: ListKey, Of: "values for clusters", Items: 64, Bytes: 256 << 10, Depth: 12}

// Item has the settings of one item, and the clusters that it is for.
type Item struct {
	// cluster is the cluster that it is for: its name, with Cluster API below its namespace. Empty: see selector.
	cluster  string
	selector labels.Selector
	// values by key, as written and checked; null removes the values of earlier items.
	values map[string]any
}

// Read reads the whole list, or nothing. The error is a *strictlist.Error.
func Read(text string) ([]Item, error) {
	return strictlist.Read(List, text, func(written any) (Item, string, error) {
		read, err := readItem(written)
		return read, "", err // tenants read the error too: it names no cluster
	})
}

func readItem(written any) (read Item, err error) {
	content, isMap := written.(map[string]any)
	if !isMap {
		return read, fmt.Errorf("it is not a map")
	}
	if err := onlyKeys(content, "cluster", "clusterSelector", "values"); err != nil {
		return read, err
	}
	byName, isNamed := content["cluster"]
	bySelector, isSelected := content["clusterSelector"]
	switch {
	case isNamed == isSelected:
		return read, fmt.Errorf("set one of cluster and clusterSelector; clusterSelector: {} is for all clusters")
	case isNamed:
		read.cluster, err = readCluster(byName)
	default:
		read.selector, err = readSelector(bySelector)
	}
	if err != nil {
		return read, err
	}
	read.values, isMap = content["values"].(map[string]any)
	if !isMap {
		return read, fmt.Errorf("values: they are missing, or are not a map")
	}
	return read, checkValues(read.values)
}

// onlyKeys refuses unknown keys.
func onlyKeys(content map[string]any, known ...string) error {
	for key := range content {
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown field %q: use %s", abridged(key), strings.Join(known, ", "))
		}
	}
	return nil
}

const longestKey = 63

func abridged(key string) string {
	if len(key) > longestKey {
		return key[:longestKey] + "…"
	}
	return key
}

// readCluster reads the name of a Cluster; one of Cluster API's is below its namespace.
func readCluster(written any) (string, error) {
	text, _ := written.(string)
	namespace, name, isBelow := strings.Cut(text, "/")
	if !isBelow {
		namespace, name = "any", text
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", fmt.Errorf("cluster: write the name of a Cluster, or <namespace>/<name> for a Cluster of Cluster API")
	}
	return text, nil
}

func readSelector(written any) (labels.Selector, error) {
	encoded, err := json.Marshal(written)
	if err != nil {
		return nil, fmt.Errorf("clusterSelector: it can't be encoded")
	}
	if _, isMap := written.(map[string]any); !isMap {
		return nil, fmt.Errorf("clusterSelector: it is not a map; {} is for all clusters")
	}
	var selector metav1.LabelSelector
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&selector); err != nil {
		return nil, fmt.Errorf("clusterSelector: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	made, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("clusterSelector: it is not a selector of labels")
	}
	return made, nil
}
