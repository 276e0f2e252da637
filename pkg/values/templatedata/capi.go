package templatedata

import (
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
)

// MaxCAPIBytes is the maximal size of the Cluster API data for a valuesTemplate, as JSON: all objects together.
const MaxCAPIBytes = 256 << 10

// maxCAPIDepth is the maximal depth of an object of Cluster API; those of providers have about a dozen levels.
const maxCAPIDepth = 64

// CAPITooLargeError says that an object is too large for a valuesTemplate.
type CAPITooLargeError struct{}

func (e *CAPITooLargeError) Error() string {
	return fmt.Sprintf("has more than the %d KiB or %d levels that a valuesTemplate sees", MaxCAPIBytes>>10, maxCAPIDepth)
}

// PackCAPI is the part of a Cluster API object that a valuesTemplate sees, as JSON that is equal for equal contents:
// names, labels, annotations, spec, and status without fields that change all the time. The error is a
// CAPITooLargeError; no more than the limit is written before it is found.
func PackCAPI(object map[string]any) ([]byte, error) {
	budget := &budget{bytes: MaxCAPIBytes}
	part := func(of map[string]any, field string, keep func(string, any) bool) map[string]any {
		value, _ := of[field].(map[string]any) // an absent part is empty, so that a template may access its fields
		return budget.copiedMap(value, keep, maxCAPIDepth)
	}
	metadata, _ := object["metadata"].(map[string]any)
	packed := map[string]any{
		"apiVersion": object["apiVersion"], "kind": object["kind"],
		"metadata": map[string]any{
			"name": metadata["name"], "namespace": metadata["namespace"],
			"labels": part(metadata, "labels", keepAll), "annotations": part(metadata, "annotations", isGiven),
		},
		"spec": part(object, "spec", keepAll), "status": part(object, "status", lasts),
	}
	if budget.bytes < 0 {
		return nil, &CAPITooLargeError{}
	}
	encoded, err := json.Marshal(packed)
	if err != nil {
		return nil, fmt.Errorf("encoding an object of Cluster API: %w", err)
	}
	if len(encoded) > MaxCAPIBytes {
		return nil, &CAPITooLargeError{}
	}
	return encoded, nil
}

// budget bounds the bytes that are copied of an object; below 0 it is exceeded.
type budget struct{ bytes int }

// copied is a value without the keys, at any depth, that keep excludes, and without maps that have only such keys.
// Without budget or depth it copies nothing.
func (b *budget) copied(value any, keep func(key string, value any) bool, depth int) any {
	if depth == 0 {
		b.bytes = -1
	}
	if b.bytes--; b.bytes < 0 {
		return nil
	}
	switch value := value.(type) {
	case string:
		b.bytes -= len(value)
	case []any:
		list := make([]any, 0, min(len(value), b.bytes+1))
		for _, one := range value {
			if b.bytes < 0 {
				return nil
			}
			list = append(list, b.copied(one, keep, depth-1))
		}
		return list
	case map[string]any:
		return b.copiedMap(value, keep, depth)
	}
	return value
}

func (b *budget) copiedMap(value map[string]any, keep func(string, any) bool, depth int) map[string]any {
	kept := map[string]any{}
	for key, one := range value {
		if b.bytes < 0 {
			return nil
		}
		if !keep(key, one) {
			continue
		}
		b.bytes -= len(key)
		copied := b.copied(one, keep, depth-1)
		before, _ := one.(map[string]any)
		if after, isMap := copied.(map[string]any); !isMap || len(after) > 0 || len(before) == 0 {
			kept[key] = copied
		}
	}
	return kept
}

func keepAll(string, any) bool { return true }

// lasts says whether a field of a status is stable: conditions, numbers of replicas and observed generations change
// all the time.
func lasts(key string, value any) bool {
	switch value.(type) {
	case int64, float64:
		return key != "observedGeneration" && key != "replicas" && !strings.HasSuffix(key, "Replicas")
	}
	return key != "conditions"
}

// isGiven says whether templates see an annotation.
func isGiven(key string, _ any) bool { return !isOfCAPI(key) && !holdsObjects(key) }

// UnpackCAPI is the object of PackCAPI in the form for templates.
func UnpackCAPI(packed []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(packed, &object); err != nil {
		return nil, fmt.Errorf("decoding an object of Cluster API: %w", err)
	}
	return object, nil
}

// ClusterOfCAPI is the Cluster of PackCAPI, so that the data in KKP's form are from the same moment as .CAPI. It has
// no status.
func ClusterOfCAPI(packed []byte) (*capiv1.Cluster, error) {
	var found struct {
		Metadata struct {
			Name, Namespace     string
			Labels, Annotations map[string]string
		}
		Spec capiv1.ClusterSpec
	}
	if err := json.Unmarshal(packed, &found); err != nil {
		return nil, fmt.Errorf("decoding a Cluster of Cluster API: %w", err)
	}
	cluster := &capiv1.Cluster{Spec: found.Spec}
	cluster.Name, cluster.Namespace = found.Metadata.Name, found.Metadata.Namespace
	cluster.Labels, cluster.Annotations = found.Metadata.Labels, found.Metadata.Annotations
	return cluster, nil
}

// VariablesOfCAPI are the variables of a Cluster's topology, by their names.
func VariablesOfCAPI(cluster map[string]any) map[string]any {
	found := map[string]any{}
	spec, _ := cluster["spec"].(map[string]any)
	topology, _ := spec["topology"].(map[string]any)
	listed, _ := topology["variables"].([]any)
	for _, one := range listed {
		variable, _ := one.(map[string]any)
		if name, _ := variable["name"].(string); name != "" {
			found[name] = variable["value"]
		}
	}
	return found
}
