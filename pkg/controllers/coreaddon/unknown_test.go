package coreaddon_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestAListedAddonThatNoCatalogueHasIsNotReady fails when AddonsReady is True while an add-on of the list is in no
// catalogue, when that is not reported on the list, and when an add-on that a rule does not find counts as well.
func TestAListedAddonThatNoCatalogueHasIsNotReady(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("slip")
	w.merged(v1.CatalogueCustom, "firewall")
	w.listed(`[{name: firewall, addonRef: {name: firewal}, targetNamespace: net}]`)
	w.start()
	w.expectList(of, "False "+v1.ReasonAddonUnknown, "good", "0 of 5 desired", "1 is in no catalogue: firewal", "4 are in no Core catalogue: ")
	w.event(v1.EventAddonUnknown, `item "firewall": no catalogue has add-on "firewal": did you mean "firewall"?`)
	w.listed(`[{name: firewall, addonRef: {name: firewall}, targetNamespace: net}]`)
	made := w.exists(of, "firewall")
	w.said(made, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.expectList(of, "True "+v1.ReasonCoreAddonsReady, "good", "1 of 5 desired", "4 are in no Core catalogue: ")
}

// TestAnItemOfTheListIsInstalledWhereTheCatalogueSays fails when an item of the list that names no namespace is
// refused, gets another one than the catalogue's, is written repeatedly, or moves to another namespace when the
// catalogue names one.
func TestAnItemOfTheListIsInstalledWhereTheCatalogueSays(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("spaceless")
	merged := w.merged(v1.CatalogueCustom, "firewall")
	to := func(namespace string) {
		t.Helper()
		w.rewrite(merged, func() { merged.Spec.Addons[0].TargetNamespace, merged.Spec.Addons[0].CreateNamespace = namespace, true })
	}
	to("net")
	w.listed(`[{name: firewall, addonRef: {name: firewall}}]`)
	w.start()
	made := w.exists(of, "firewall")
	if made.Spec.TargetNamespace != "net" || !made.Spec.CreateNamespace {
		t.Errorf("it is %+v", made.Spec)
	}
	to("other")
	w.listed(`[{name: firewall, addonRef: {name: firewall}, values: {a: 1}}]`)
	expect.Object(t, w.seed, installationOf(of, "firewall"), func(found *v1.AddonInstallation) error {
		if found.Spec.Values == nil || found.Spec.TargetNamespace != "net" {
			return fmt.Errorf("it is %+v", found.Spec)
		}
		return nil
	})
	before := w.exists(of, "firewall").ResourceVersion
	w.steady(func() error {
		if after := w.exists(of, "firewall").ResourceVersion; after != before {
			return fmt.Errorf("written: %s, %s", before, after)
		}
		return nil
	})
}
