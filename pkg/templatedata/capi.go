package templatedata

import (
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
)

// MaxCAPIBytes is the most that a valuesTemplate sees of Cluster API, as JSON: all objects together.
const MaxCAPIBytes = 256 << 10

// maxCAPIDepth is how deep an object of Cluster API may be; those of providers are about a dozen.
const maxCAPIDepth = 64

// CAPITooLargeError says that an object has too much for a valuesTemplate.
type CAPITooLargeError struct{}

func (e *CAPITooLargeError) Error() string {
	return fmt.Sprintf("has more than the %d KiB or %d levels that a valuesTemplate sees", MaxCAPIBytes>>10, maxCAPIDepth)
}

// PackCAPI is what a valuesTemplate sees of an object of Cluster API, as JSON that is equal for equal
// contents: names, labels, annotations, spec, and status without what comes and goes there all the
// time. The error is a CAPITooLargeError; no more than is allowed is written before it is known.
func PackCAPI(object map[string]any) ([]byte, error) {
	budget := &budget{bytes: MaxCAPIBytes}
	part := func(of map[string]any, field string, keep func(string, any) bool) map[string]any {
		value, _ := of[field].(map[string]any) // what is absent is empty, so that a template may look below it
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

// budget bounds what is copied of an object; below 0 it has too much.
type budget struct{ bytes int }

// copied is a value without the keys, at any depth, that are not to be kept, nor maps that have
// nothing else. Without budget or depth it copies nothing.
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

// lasts says whether a field of a status is more than how it goes at the moment: conditions, how many
// replicas there are, and which generation was looked at last change without end.
func lasts(key string, value any) bool {
	switch value.(type) {
	case int64, float64:
		return key != "observedGeneration" && key != "replicas" && !strings.HasSuffix(key, "Replicas")
	}
	return key != "conditions"
}

// isGiven says whether an annotation is one that templates see.
func isGiven(key string, _ any) bool { return !isOfCAPI(key) && !holdsObjects(key) }

// UnpackCAPI is an object as templates see it, of PackCAPI.
func UnpackCAPI(packed []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(packed, &object); err != nil {
		return nil, fmt.Errorf("decoding an object of Cluster API: %w", err)
	}
	return object, nil
}

// ClusterOfCAPI is the Cluster of PackCAPI, so that KKP's words are of the moment that .CAPI is of.
// Of its status it has nothing.
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
