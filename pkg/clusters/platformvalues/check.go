package platformvalues

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Keys of an item's values, as templates see them.
const (
	keyNodeSelector = "nodeSelector"
	keyTolerations  = "tolerations"
	keyProxy        = "proxy"
	keyRegistries   = "registries"
)

// Limits of one item's values.
const (
	maxLabels      = 32
	maxTolerations = 32
	maxRegistries  = 64
	maxURL         = 1024
	maxNoProxy     = 8 << 10
	maxCABundle    = 128 << 10
)

// checkValues refuses values that templates could not rely on. Errors name the path, and never a value.
func checkValues(values map[string]any) error {
	if err := onlyKeys(values, keyNodeSelector, keyTolerations, keyProxy, keyRegistries); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	checks := map[string]func(any) error{
		keyNodeSelector: checkNodeSelector, keyTolerations: checkTolerations, keyProxy: checkProxy, keyRegistries: checkRegistries,
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := checks[key](values[key]); err != nil {
			return fmt.Errorf("values.%s: %w", key, err)
		}
	}
	return nil
}

// eachText checks keys and texts of a map; null removes the values of earlier items for a key.
func eachText(written any, most int, checkKey, checkText func(string) error) error {
	content, isMap := written.(map[string]any)
	if !isMap {
		return fmt.Errorf("it is not a map")
	}
	if len(content) > most {
		return fmt.Errorf("it has %d keys, at most %d are allowed", len(content), most)
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		err := checkKey(key)
		if text, isText := content[key].(string); err == nil && isText {
			err = checkText(text)
		} else if err == nil && content[key] != nil {
			err = fmt.Errorf("it is not a string")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", abridged(key), err)
		}
	}
	return nil
}

func checkNodeSelector(written any) error {
	return eachText(written, maxLabels, func(key string) error {
		if len(validation.IsQualifiedName(key)) > 0 {
			return fmt.Errorf("it is not a valid label key")
		}
		return nil
	}, checkLabelValue)
}

func checkLabelValue(text string) error {
	if len(validation.IsValidLabelValue(text)) > 0 {
		return fmt.Errorf("its value is not a valid label value")
	}
	return nil
}

func checkTolerations(written any) error {
	list, isList := written.([]any)
	if !isList {
		return fmt.Errorf("it is not a list")
	}
	if len(list) > maxTolerations {
		return fmt.Errorf("it has %d items, at most %d are allowed", len(list), maxTolerations)
	}
	for i, one := range list {
		if err := checkToleration(one); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

var effects = []string{
	"", string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute),
}

// checkToleration accepts a toleration that the API server accepts for a Pod.
func checkToleration(written any) error {
	content, isMap := written.(map[string]any)
	if !isMap {
		return fmt.Errorf("it is not a map")
	}
	if err := onlyKeys(content, "key", "operator", "value", "effect", "tolerationSeconds"); err != nil {
		return err
	}
	texts := map[string]string{}
	for _, field := range []string{"key", "operator", "value", "effect"} {
		text, isText := content[field].(string)
		if _, isThere := content[field]; isThere && !isText {
			return fmt.Errorf("%s: it is not a string", field)
		}
		texts[field] = text
	}
	if err := checkTolerated(texts["key"], texts["operator"], texts["value"]); err != nil {
		return err
	}
	seconds, hasSeconds := content["tolerationSeconds"]
	_, isNumber := seconds.(int64)
	switch {
	case !slices.Contains(effects, texts["effect"]):
		return fmt.Errorf("effect: use NoSchedule, PreferNoSchedule or NoExecute, or leave it out")
	case hasSeconds && (!isNumber || texts["effect"] != string(corev1.TaintEffectNoExecute)):
		return fmt.Errorf("tolerationSeconds: use a whole number, and only with effect NoExecute")
	}
	return nil
}

// checkTolerated checks the taint that a toleration is for.
func checkTolerated(key, operator, value string) error {
	exists := operator == string(corev1.TolerationOpExists)
	switch {
	case !exists && operator != "" && operator != string(corev1.TolerationOpEqual):
		return fmt.Errorf("operator: use Exists or Equal")
	case key == "" && !exists:
		return fmt.Errorf("key: set it, since only operator Exists allows a missing key")
	case key != "" && len(validation.IsQualifiedName(key)) > 0:
		return fmt.Errorf("key: it is not a valid taint key")
	case exists && value != "":
		return fmt.Errorf("value: remove it, since operator Exists allows no value")
	}
	if err := checkLabelValue(value); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return nil
}

// noProxy are names, addresses and ranges, with commas between them.
var noProxy = regexp.MustCompile(`^[A-Za-z0-9.*_/:\[\]-]+(, ?[A-Za-z0-9.*_/:\[\]-]+)*$`)

func checkProxy(written any) error {
	checks := map[string]func(string) error{"http": checkURL, "https": checkURL, "noProxy": checkNoProxy, "caBundle": checkBundle}
	content, isMap := written.(map[string]any)
	if !isMap {
		return fmt.Errorf("it is not a map")
	}
	if err := onlyKeys(content, slices.Sorted(maps.Keys(checks))...); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		text, isText := content[key].(string)
		if !isText && content[key] != nil {
			return fmt.Errorf("%s: it is not a string", key)
		}
		if text == "" {
			continue
		}
		if err := checks[key](text); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func checkNoProxy(text string) error {
	if len(text) > maxNoProxy || !noProxy.MatchString(text) {
		return fmt.Errorf("write names, addresses and ranges with commas between them, at most %d bytes", maxNoProxy)
	}
	return nil
}

// checkURL accepts a proxy without a user: templates write it into manifests, so it is no secret.
func checkURL(text string) error {
	found, err := url.Parse(text)
	switch {
	case len(text) > maxURL || err != nil || found.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, found.Scheme):
		return fmt.Errorf("write it like http://host:port, or with https or socks5")
	case found.User != nil || strings.Contains(text, "@"):
		return fmt.Errorf("it has a user part, which all readers of manifests would see: authenticate clusters to the proxy in another way")
	case found.Path != "" && found.Path != "/" || found.RawQuery != "" || found.Fragment != "" || !proxyText.MatchString(text):
		return fmt.Errorf("it has parts other than a scheme, a host and a port")
	}
	return nil
}

// proxyText has all characters that an address needs, and none with a meaning in templates or shells.
var proxyText = regexp.MustCompile(`^[A-Za-z0-9.:/\[\]_-]+$`)

// checkBundle accepts certificates in PEM, but no keys.
func checkBundle(text string) error {
	if len(text) > maxCABundle {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), maxCABundle)
	}
	if strings.Contains(text, "PRIVATE KEY") || strings.ContainsAny(text, "{}") {
		return fmt.Errorf("it contains data other than PEM certificates")
	}
	count, rest := 0, []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			return fmt.Errorf("it contains data other than PEM certificates")
		}
		count++
	}
	if count == 0 {
		return fmt.Errorf("it contains no PEM certificate")
	}
	return nil
}

// registry matches a registry with or without the first parts of a path, as in flag --image-mirror.
var registry = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

func checkRegistries(written any) error {
	return eachText(written, maxRegistries, checkRegistry, checkRegistry)
}

func checkRegistry(text string) error {
	if len(text) > maxURL || !registry.MatchString(text) {
		return fmt.Errorf("key and value must be a registry, such as quay.io, or a path in one, such as quay.io/team")
	}
	return nil
}
