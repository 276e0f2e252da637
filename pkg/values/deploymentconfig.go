package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DeploymentConfigKind is the kind of Open Cluster Management that configures how its add-ons are deployed.
var DeploymentConfigKind = schema.GroupKind{Group: "addon.open-cluster-management.io", Kind: "AddOnDeploymentConfig"}

// deploymentConfig has the fields of its spec that become values (open-cluster-management.io/api, addon/v1alpha1 and v1beta1).
type deploymentConfig struct {
	CustomizedVariables []struct{ Name, Value string }
	NodePlacement       *struct {
		NodeSelector map[string]string
		Tolerations  []toleration
	}
	ProxyConfig struct {
		HTTPProxy, HTTPSProxy, NoProxy string
		CABundle                       []byte
	}
	Registries           []struct{ Source, Mirror string }
	ResourceRequirements []struct {
		ContainerID string
		Resources   struct{ Requests, Limits map[string]any }
	}
}

type toleration struct {
	Key               string `json:"key,omitempty"`
	Operator          string `json:"operator,omitempty"`
	Value             string `json:"value,omitempty"`
	Effect            string `json:"effect,omitempty"`
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// DeploymentConfig returns the values of an AddOnDeploymentConfig with the names that templates of Open Cluster Management
// use, of its charts or of its manifests (addon-framework, pkg/addonfactory/addondeploymentconfig.go), and the mirrors of its
// registries. Fields that are not set give no values. The error is a *DecodeError without a value.
func DeploymentConfig(object map[string]any, isChart bool) (made map[string]any, mirrors map[string]string, err error) {
	encoded, err := json.Marshal(object["spec"])
	if err != nil || len(encoded) > MaxBytes {
		return nil, nil, &DecodeError{Problem: fmt.Sprintf("spec is not valid, or has more than %d bytes", MaxBytes)}
	}
	var config deploymentConfig
	if err := json.Unmarshal(encoded, &config); err != nil {
		return nil, nil, &DecodeError{Problem: "spec has a field of another type than in Open Cluster Management"}
	}
	mirrors = map[string]string{}
	for at, registry := range config.Registries {
		if registry.Source == "" || registry.Mirror == "" {
			return nil, nil, &DecodeError{Problem: fmt.Sprintf("spec.registries[%d] needs source and mirror", at)}
		}
		mirrors[registry.Source] = registry.Mirror
	}
	named := map[string]any{}
	for _, variable := range config.CustomizedVariables {
		named[variable.Name] = variable.Value
	}
	requirements, err := config.requirements(isChart)
	if err != nil {
		return nil, nil, err
	}
	if isChart {
		maps.Copy(named, config.forCharts(requirements))
	} else {
		maps.Copy(named, config.forManifests(requirements))
	}
	if made, err = bounded(named); err != nil {
		return nil, nil, err
	}
	return made, mirrors, nil
}

func (c *deploymentConfig) forCharts(requirements []any) map[string]any {
	made, global, proxy := map[string]any{}, map[string]any{}, map[string]any{}
	if placement := c.NodePlacement; placement != nil {
		set(made, "tolerations", placement.Tolerations, len(placement.Tolerations) > 0)
		set(global, "nodeSelector", placement.NodeSelector, len(placement.NodeSelector) > 0)
	}
	set(proxy, "HTTP_PROXY", c.ProxyConfig.HTTPProxy, c.ProxyConfig.HTTPProxy != "")
	set(proxy, "HTTPS_PROXY", c.ProxyConfig.HTTPSProxy, c.ProxyConfig.HTTPSProxy != "")
	set(proxy, "NO_PROXY", c.ProxyConfig.NoProxy, c.ProxyConfig.NoProxy != "")
	set(proxy, "PROXY_CA_BUNDLE", string(c.ProxyConfig.CABundle), len(c.ProxyConfig.CABundle) > 0)
	set(global, "proxyConfig", proxy, len(proxy) > 0)
	set(global, "resourceRequirements", requirements, len(requirements) > 0)
	set(made, "global", global, len(global) > 0)
	return made
}

func (c *deploymentConfig) forManifests(requirements []any) map[string]any {
	made := map[string]any{}
	if placement := c.NodePlacement; placement != nil {
		var tolerations []any
		for _, one := range placement.Tolerations { // templates read the fields of Go
			tolerations = append(tolerations, map[string]any{
				"Key": one.Key, "Operator": one.Operator, "Value": one.Value, "Effect": one.Effect, "TolerationSeconds": one.TolerationSeconds,
			})
		}
		set(made, "NodeSelector", placement.NodeSelector, len(placement.NodeSelector) > 0)
		set(made, "Tolerations", tolerations, len(tolerations) > 0)
	}
	set(made, "HTTPProxy", c.ProxyConfig.HTTPProxy, c.ProxyConfig.HTTPProxy != "")
	set(made, "HTTPSProxy", c.ProxyConfig.HTTPSProxy, c.ProxyConfig.HTTPSProxy != "")
	set(made, "NoProxy", c.ProxyConfig.NoProxy, c.ProxyConfig.NoProxy != "")
	set(made, "ProxyCABundle", string(c.ProxyConfig.CABundle), len(c.ProxyConfig.CABundle) > 0)
	set(made, "ResourceRequirements", requirements, len(requirements) > 0)
	return made
}

// requirements are the resources of containers, whose IDs are TYPE:NAME:CONTAINER, with * for any.
func (c *deploymentConfig) requirements(isChart bool) (made []any, err error) {
	names := [4]string{"ContainerIDRegex", "Resources", "Requests", "Limits"}
	if isChart {
		names = [4]string{"containerIDRegex", "resources", "requests", "limits"}
	}
	for at, one := range c.ResourceRequirements {
		parts := strings.Split(one.ContainerID, ":")
		if len(parts) != 3 {
			return nil, &DecodeError{Problem: fmt.Sprintf("spec.resourceRequirements[%d].containerID is not TYPE:NAME:CONTAINER", at)}
		}
		for i, part := range parts {
			if parts[i] = regexp.QuoteMeta(part); part == "*" {
				parts[i] = ".+"
			}
		}
		resources := map[string]any{}
		set(resources, names[2], one.Resources.Requests, len(one.Resources.Requests) > 0)
		set(resources, names[3], one.Resources.Limits, len(one.Resources.Limits) > 0)
		made = append(made, map[string]any{names[0]: "^" + strings.Join(parts, ":") + "$", names[1]: resources})
	}
	return made, nil
}

func set(in map[string]any, key string, value any, isSet bool) {
	if isSet {
		in[key] = value
	}
}
