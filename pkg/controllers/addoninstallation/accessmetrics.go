package addoninstallation

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// stateOfAccess are the values of label state of trellis_agent_credentials.
var stateOfAccess = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue: "usable", metav1.ConditionFalse: "missing", metav1.ConditionUnknown: "unknown",
}

// NewAccessCensus counts the credentials of agents by condition AccessReady of their installation.
func NewAccessCensus(installations client.Reader, leads <-chan struct{}) *loop.Census {
	description := prometheus.NewDesc("trellis_agent_credentials",
		"Credentials for the hub that versions request, by whether all of their installation can be used, and the reason of its condition "+
			"AccessReady.",
		loop.CensusLabels, nil)
	return loop.NewLabelledCensus(description, leads, func(ctx context.Context, count func(first, second string)) error {
		return eachOf(ctx, installations, func(one *kubermaticv1.AddonInstallation) {
			condition := meta.FindStatusCondition(one.Status.Conditions, kubermaticv1.ConditionAccessReady)
			if condition == nil {
				return
			}
			reason := "other"
			if isReasonOfAccess[condition.Reason] {
				reason = condition.Reason
			}
			for range one.Status.Access {
				count(stateOfAccess[condition.Status], reason)
			}
		})
	})
}

// isReasonOfAccess has the reasons of condition AccessReady that are counted separately.
var isReasonOfAccess = map[string]bool{
	kubermaticv1.ReasonAccessGranted: true, kubermaticv1.ReasonRenewalPending: true, kubermaticv1.ReasonExpired: true,
	kubermaticv1.ReasonRightsRefused: true, kubermaticv1.ReasonHubUnknown: true, kubermaticv1.ReasonSharedNamespace: true,
	kubermaticv1.ReasonNameTaken: true, kubermaticv1.ReasonApprovalRequired: true, kubermaticv1.ReasonRequestDenied: true,
	kubermaticv1.ReasonCertificateRefused: true, kubermaticv1.ReasonProgressing: true, kubermaticv1.ReasonFailed: true,
}

// FirstEnd reports when the first credential expires, each time metrics are read. It implements prometheus.Collector.
type FirstEnd struct {
	installations client.Reader
	leads         <-chan struct{}
	description   *prometheus.Desc
}

// NewFirstEnd reads installations from a cache, once leads is closed.
func NewFirstEnd(installations client.Reader, leads <-chan struct{}) *FirstEnd {
	return &FirstEnd{installations, leads, prometheus.NewDesc("trellis_agent_credentials_first_end_timestamp_seconds",
		"When the first of the agents' credentials expires, or expired, in seconds since 1970; absent without any.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (e *FirstEnd) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- e.description }

// Collect implements prometheus.Collector.
func (e *FirstEnd) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-e.leads:
	default:
		return
	}
	var first time.Time
	err := eachOf(context.Background(), e.installations, func(one *kubermaticv1.AddonInstallation) {
		for _, state := range one.Status.Access {
			if state.Expires != nil && (first.IsZero() || state.Expires.Time.Before(first)) {
				first = state.Expires.Time
			}
		}
	})
	switch {
	case err != nil:
		metrics <- prometheus.NewInvalidMetric(e.description, err)
	case !first.IsZero():
		metrics <- prometheus.MustNewConstMetric(e.description, prometheus.GaugeValue, float64(first.Unix()))
	}
}

// accessShown is the previous status of credentials: when each expires, and the reason of AccessReady.
type accessShown struct {
	ends   map[string]time.Time
	reason string
}

func accessOf(installation *kubermaticv1.AddonInstallation) (shown accessShown) {
	condition := meta.FindStatusCondition(installation.Status.Conditions, kubermaticv1.ConditionAccessReady)
	if condition == nil {
		return shown
	}
	shown = accessShown{ends: map[string]time.Time{}, reason: condition.Reason}
	for _, state := range installation.Status.Access {
		if state.Expires != nil {
			shown.ends[state.Name] = state.Expires.Time
		}
	}
	return shown
}

// credentials counts changes of credentials in a reconciliation, as the difference between the previous and the new
// status. A failure is counted once, when the condition first reports it.
func (m *Metrics) credentials(f *facts, had accessShown) {
	for _, one := range f.statuses {
		if one.Usable && one.Expires.After(had.ends[one.Name].Add(time.Second)) {
			m.issued.WithLabelValues(string(one.Type), "issued").Inc()
		}
	}
	worst := f.worstAccess()
	if worst == nil || worst.Problem.Reason == had.reason || !isFailure[worst.Problem.Reason] {
		return
	}
	m.issued.WithLabelValues(string(worst.Type), "failed").Inc()
}

// isFailure has the reasons for which a requested credential could not be issued.
var isFailure = map[string]bool{
	kubermaticv1.ReasonRenewalPending: true, kubermaticv1.ReasonExpired: true, kubermaticv1.ReasonRequestDenied: true,
	kubermaticv1.ReasonCertificateRefused: true, kubermaticv1.ReasonFailed: true,
}
