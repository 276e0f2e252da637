//go:build browser

package web_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/trellis-addons/trellis/test/expect"
)

// tab is one of a headless Chromium. The test fails at its end if a script failed in it, or a page's policy refused something.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mutex sync.Mutex
	// problems are what the browser reported.
	problems []string
	// live are the stream of a page, and the parts that its scripts ask for once it is shown.
	live map[network.RequestID]bool
	// sent are the bytes of each ended request since measure was called.
	sent map[network.RequestID]int
}

// chromium is the path of the browser.
func chromium(t testing.TB) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "chrome-headless-shell", "headless_shell"}
	if own := os.Getenv("CHROMIUM"); own != "" {
		names = []string{own}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("found no browser %s: install Debian's package chromium, or set CHROMIUM to the path of a Chromium", strings.Join(names, ", "))
	return ""
}

// watched is in each page: it collects what the policy refused, and whether a hostile text ran, and knows what people see.
const watched = `window.violations = []
window.canary = () => violations.push('a hostile text ran')
document.addEventListener('securitypolicyviolation', event => violations.push(event.effectiveDirective + ' refused ' + event.blockedURI))
window.textOf = selector => {
  const found = [], top = document.querySelector(selector)
  if (!top) { return '' }
  for (let walk = document.createTreeWalker(top, NodeFilter.SHOW_TEXT); walk.nextNode();) { found.push(walk.currentNode.data) }
  return found.join(' ').replace(/\s+/g, ' ')
}
window.nameOf = one => {
  const copy = (one.labels?.[0] ?? one).cloneNode(true)
  copy.querySelectorAll('select, textarea').forEach(inside => inside.remove())
  return (one.getAttribute('aria-label') || copy.textContent).replace(/\s+/g, ' ').trim()
}
window.isNamed = (one, name) => nameOf(one) === name || nameOf(one).startsWith(name + ' ')
window.named = (name, kinds) => [...document.querySelectorAll(kinds)].find(one => one.checkVisibility() && isNamed(one, name))`

// openTab opens a tab on a site.
func openTab(t testing.TB, base string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(context.WithoutCancel(t.Context()), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
	))
	b := &tab{t: t, ctx: ctx, base: base, live: map[network.RequestID]bool{}, sent: map[network.RequestID]int{}}
	t.Cleanup(func() {
		b.sound()
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	})
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watched})
		return err
	}))
	expect.NoError(t, chromedp.Listen(ctx, b.note))
	return b
}

// note keeps what matters of an event of the browser.
func (b *tab) note(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "a script failed: "+event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError && event.Entry.Source != log.EntrySourceNetwork {
			b.problems = append(b.problems, event.Entry.Text)
		}
	case *network.EventResponseReceived:
		if event.Type == network.ResourceTypeEventSource || event.Type == network.ResourceTypeXHR {
			b.live[event.RequestID] = true
		}
	case *network.EventLoadingFinished:
		b.sent[event.RequestID] = int(event.EncodedDataLength)
	}
}

// measure leaves the page, forgets the requests so far, and lets the browser ask for everything again.
func (b *tab) measure() {
	b.t.Helper()
	b.sound()
	b.do(chromedp.Navigate("about:blank"), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.ClearBrowserCache, cdp.Empty{})
		return err
	}))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	clear(b.sent)
}

// measured gives the number of requests since measure and their bytes, without live ones.
func (b *tab) measured() (requests, bytes int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for request, size := range b.sent {
		if !b.live[request] {
			requests, bytes = requests+1, bytes+size
		}
	}
	return requests, bytes
}

// sound checks what the browser and the page have reported.
func (b *tab) sound() {
	b.t.Helper()
	violations, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`window.violations || []`))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if err != nil {
		b.t.Errorf("the tab does not answer: %v", err)
	}
	for _, one := range append(violations, b.problems...) {
		b.t.Errorf("the browser reports: %s", one)
	}
	b.problems = nil
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page.
func (b *tab) open(path string) {
	b.t.Helper()
	b.sound()
	b.do(chromedp.Navigate(b.base + path))
}

// look sets the width of the window and the colours that the user prefers.
func (b *tab) look(width int, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(int64(width), 900), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
}

// evaluate gives the value of an expression in the page, or of its promise.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return found
}

// until waits until an expression is true. While a page is being replaced it has no value.
func (b *tab) until(expression string) {
	b.t.Helper()
	expect.Eventually(b.t, patience, func() error {
		if is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); err != nil || !is {
			text, textErr := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
			return errors.Join(err, textErr, fmt.Errorf("%s is not true of this page: %.3000s", expression, text))
		}
		return nil
	})
}

// shows waits until an element shows all texts.
func (b *tab) shows(selector string, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf(`textOf(%q).includes(%q)`, selector, text))
	}
}
