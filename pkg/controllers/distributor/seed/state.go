package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// State is the result of a worker for its seed.
type State struct {
	Name string
	// Reached says that the seed answered; otherwise Problem says why not.
	Reached bool
	Problem string
	// away says that nothing answered, or a server without its data.
	away bool
	// Unfetched are problems with sources that the seed's installations report, by the last count.
	Unfetched usage.Unfetched
	// Checks are the seed's findings about sources; nil if it is not known to check any.
	Checks *catalogue.SourceChecks
	At     time.Time
	// Digests of the seed's merged add-ons, when it was last reached.
	Digests map[string]string
	// Held maps each merged add-on that is not changed to the catalogue that is the reason.
	Held map[string]string
	// KeyFailed says why the seed has no key of marks; empty if it has.
	KeyFailed string
	// FailedCatalogues and FailedSecrets say by name which objects could not be written or deleted, and why.
	FailedCatalogues, FailedSecrets map[string]string
	// FailedSets says by name which copies are not as they should be; setsProblem why they can't be listed or watched.
	FailedSets  map[string]string
	setsProblem string
}

// Behind says why a seed does not have these merged add-ons and Secrets; empty if it has them.
func (s *State) Behind(digests map[string]string, secrets []string) string {
	if !s.Reached {
		return s.Problem
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		if by := s.Held[name]; by != "" {
			return fmt.Sprintf("AddonCatalogue %q stays as it is: catalogue %q can't be read", name, by)
		}
		if failed := s.FailedCatalogues[name]; failed != "" {
			return failed
		}
		if s.Digests[name] != digests[name] {
			return fmt.Sprintf("AddonCatalogue %q is not on the seed yet", name)
		}
	}
	for _, name := range secrets {
		if failed := s.FailedSecrets[name]; failed != "" {
			return failed
		}
	}
	return s.KeyFailed
}

func (s *State) isWhole() bool {
	return s.Reached && len(s.FailedCatalogues)+len(s.FailedSecrets)+len(s.KeyFailed)+len(s.FailedSets)+len(s.setsProblem) == 0
}

// Describe turns an error of a call into a text for status: without address or answer, and equal for equal errors, so
// that status is not written repeatedly.
func Describe(err error) string {
	for _, answer := range answers {
		if answer.is(err) {
			return answer.text
		}
	}
	if ended, isEnded := errors.AsType[*copies.EndedError](err); isEnded {
		return ended.Error()
	}
	return cluster.DescribeFailure(err)
}

// isAway says whether an error is that of a seed which may return at any moment: nothing answers in time, connections
// are refused or end, or the server answers that it can't yet.
func isAway(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
	}
	if remote.IsMisbehaviour(err) {
		return false
	}
	network, isNetwork := errors.AsType[net.Error](err)
	for _, ended := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, ended) {
			return true
		}
	}
	return isNetwork && network.Timeout()
}

var answers = []struct {
	is   func(error) bool
	text string
}{
	{isFull, "the seed's etcd has no space left, so that its API server writes nothing: free some, and disarm alarm NOSPACE"},
	{apierrors.IsBadRequest, "SeedOutdated: the seed's CRD does not know a field: upgrade chart trellis-seed there"},
	{apierrors.IsInvalid, "SeedOutdated: the seed's CRD refuses it: upgrade chart trellis-seed there"},
	{apierrors.IsAlreadyExists, "it exists on the seed and the master did not write it: delete or rename it there"},
	{apierrors.IsNotFound, "the seed does not have the kind or the namespace: is chart trellis-seed installed?"},
	{apierrors.IsUnauthorized, "the seed refuses the credentials: renew its kubeconfig Secret"},
	{apierrors.IsConflict, "another client changed it at the same time; trying again"},
	{apierrors.IsForbidden, "the seed forbids it: check the rights of its kubeconfig's user, and the seed's policies"},
	{apierrors.IsRequestEntityTooLargeError, "it is too large for the seed's API server"},
}

// isFull says whether an API server answers that its etcd has no space. There is no reason of its own for that.
func isFull(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "database space exceeded")
}
