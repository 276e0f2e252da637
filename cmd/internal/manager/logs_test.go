package manager

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// lines is a log that may be written from several goroutines.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(data []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(data)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// TestLogsHaveNoSecrets: at the highest verbosity that can be asked for, calls of client-go with
// Secrets in the request and in the answer, in both encodings, put nothing of them, nor the token,
// into the log. Red at verbosity 8.
func TestLogsHaveNoSecrets(t *testing.T) {
	const sent, answered, token = "CANARY-sent", "CANARY-answered", "CANARY-token"
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(secretOf(answered))
	}))
	defer server.Close()

	flags, log := &Flags{}, &lines{}
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.Register(set)
	if err := set.Parse([]string{"--v=100"}); err != nil {
		t.Fatal(err)
	}
	logger := flags.loggerTo(log)
	ctx := ctrl.LoggerInto(t.Context(), logger) // as every pass has it
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := &rest.Config{Host: server.URL, BearerToken: token, ContentConfig: rest.ContentConfig{ContentType: encoding}}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Secrets("a").Create(ctx, secretOf(sent), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Secrets("a").Get(ctx, "canary", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	logr.FromContextOrDiscard(ctx).V(mostVerbose).Info("the last level is told")
	// The values are base64 in JSON, and cut into columns in a dump of bytes.
	for _, part := range []string{"CANARY", "Q0FOQVJZ", "Body", "43 41 4e 41", "|CANA"} {
		if strings.Contains(log.String(), part) {
			t.Errorf("the log has %q:\n%s", part, log)
		}
	}
	if !strings.Contains(log.String(), "the last level is told") {
		t.Errorf("the log has nothing at all:\n%s", log)
	}
}

func secretOf(text string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "canary"},
		Data: map[string][]byte{"value": []byte(text)},
	}
}
