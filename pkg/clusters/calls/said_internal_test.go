package calls

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestWhatIsLoggedOfAnAnswerQuotesNothing turns red when the words of a user cluster's answer reach the log, or when what an error of the
// way there says does not.
func TestWhatIsLoggedOfAnAnswerQuotesNothing(t *testing.T) {
	const secret = "pa55word"
	answer := fmt.Errorf("patching Secret %q: %w", "a", apierrors.NewInternalError(errors.New("a webhook saw "+secret)))
	if said := Said(answer); strings.Contains(said, secret) || !strings.Contains(said, "500") {
		t.Errorf("of an answer it says %q", said)
	}
	if said := Said(errors.New("dial tcp: no route to host")); said != "dial tcp: no route to host" {
		t.Errorf("of the way it says %q", said)
	}
}
