// Package backoff says how long to wait before the next try. Callers count the tries; no other package makes waits
// grow. Around spreads waits that many callers have in common, so that callers that began together drift apart;
// apimachinery's wait.Jitter spreads waits that must not end early.
package backoff

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// After is the wait after that many tries in a row: first, doubling up to most.
func After[Count int | int32](tries Count, first, most time.Duration) time.Duration {
	return grown(tries, first, most, 1)
}

// Slowly is After that grows by a half each time, for events that are likely soon.
func Slowly[Count int | int32](tries Count, first, most time.Duration) time.Duration {
	return grown(tries, first, most, 2)
}

// grown adds a share of the wait to it for each try after the first.
func grown[Count int | int32](tries Count, pause, most time.Duration, share time.Duration) time.Duration {
	for ; tries > 1 && pause < most; tries-- {
		pause += pause / share
	}
	return min(pause, most)
}

// Around is a time up to a share of the pause before or after it.
func Around(pause time.Duration, share float64) time.Duration {
	return wait.Jitter(time.Duration(float64(pause)*(1-share)), 2*share/(1-share))
}

// Sooner is the shorter of two waits, where 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
