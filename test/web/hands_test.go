//go:build browser

package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// What has a name, by kinds of elements.
const (
	pressable = "a, button, summary"
	fillable  = "input, select, textarea"
)

// hands are a way to use a page.
type hands interface {
	// press activates a link, a button or the head of details.
	press(name string)
	// fill replaces the text of a field, choose an option of a list, and tick a box.
	fill(name, text string)
	choose(name, option string)
	tick(name string)
}

// mouse clicks where the element is, if nothing covers it.
type mouse struct{ *tab }

func (m mouse) click(name, kinds string) {
	m.t.Helper()
	m.until(fmt.Sprintf(`!!named(%q, %q)`, name, kinds))
	place := evaluate[struct {
		X, Y    float64
		Covered string
	}](m.tab, fmt.Sprintf(`(() => {
  const one = named(%q, %q)
  one.scrollIntoView({block: 'center', behavior: 'instant'})
  const all = one.getClientRects(), box = all[0], x = box.x + box.width / 2, y = box.y + box.height / 2, top = document.elementFromPoint(x, y)
  return {X: x, Y: y, Covered: one.contains(top) || top?.contains(one) && top.tagName === 'LABEL' ? '' : top?.outerHTML ?? 'nothing'}
})()`, name, kinds))
	if place.Covered != "" {
		m.t.Fatalf("%q is covered by %.200s", name, place.Covered)
	}
	m.do(chromedp.MouseClickXY(place.X, place.Y))
}

func (m mouse) press(name string) { m.t.Helper(); m.click(name, pressable) }

func (m mouse) fill(name, text string) {
	m.t.Helper()
	m.click(name, fillable)
	evaluate[bool](m.tab, `document.activeElement.select(), true`)
	m.do(chromedp.KeyEvent(text))
}

// choose sets the value as a list does after a click: the list itself is drawn by the browser, outside of the page.
func (m mouse) choose(name, option string) {
	m.t.Helper()
	m.until(fmt.Sprintf(`!!named(%q, 'select')`, name))
	if !evaluate[bool](m.tab, fmt.Sprintf(`(() => {
  const list = named(%q, 'select'), option = [...list.options].find(one => one.text.startsWith(%q))
  if (!option) { return false }
  list.value = option.value
  list.dispatchEvent(new Event('input', {bubbles: true}))
  list.dispatchEvent(new Event('change', {bubbles: true}))
  return true
})()`, name, option)) {
		m.t.Fatalf("list %q has no option %q", name, option)
	}
}

func (m mouse) tick(name string) { m.t.Helper(); m.click(name, fillable) }

// keyboard uses keys only.
type keyboard struct{ *tab }

// goTo presses Tab until the element has the focus.
func (k keyboard) goTo(name, kinds string) {
	k.t.Helper()
	k.until(fmt.Sprintf(`!!named(%q, %q)`, name, kinds))
	for range 300 {
		if evaluate[bool](k.tab, fmt.Sprintf(`document.activeElement.matches(%q) && isNamed(document.activeElement, %q)`, kinds, name)) {
			if !evaluate[bool](k.tab, `(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle !== 'none' && style.outlineWidth !== '0px' })()`) {
				k.t.Errorf("nothing shows that %q has the focus", name)
			}
			return
		}
		k.do(chromedp.KeyEvent(kb.Tab))
	}
	k.t.Fatalf("Tab does not reach %q", name)
}

func (k keyboard) press(name string) {
	k.t.Helper()
	k.goTo(name, pressable)
	k.do(chromedp.KeyEvent(kb.Enter))
}

func (k keyboard) fill(name, text string) {
	k.t.Helper()
	k.goTo(name, fillable)
	k.do(chromedp.KeyEvent(text))
}

func (k keyboard) choose(name, option string) {
	k.t.Helper()
	k.goTo(name, "select")
	k.do(chromedp.KeyEvent(option))
	k.until(fmt.Sprintf(`document.activeElement.selectedOptions[0].text.startsWith(%q)`, option))
}

func (k keyboard) tick(name string) {
	k.t.Helper()
	k.goTo(name, fillable)
	k.do(chromedp.KeyEvent(" "))
}

// Red when a user can't find, preview, install, follow, change, upgrade, return or uninstall an add-on with the mouse alone or with keys
// alone, when a state appears only after the page is loaded again, or when a script fails or is refused.
func TestBrowserDoesTheMainJob(t *testing.T) {
	for name, use := range map[string]func(*tab) hands{
		"mouse": func(b *tab) hands { return mouse{b} }, "keyboard": func(b *tab) hands { return keyboard{b} },
	} {
		t.Run(name, func(t *testing.T) { mainJob(t, name, use) })
	}
}

func mainJob(t *testing.T, name string, use func(*tab) hands) {
	w := newSeed(t, name)
	w.publish("web")
	b := openTab(t, fronted(t, w, ""))
	h := use(b)
	b.open("/")
	h.fill("Token", w.user(w.namespace, "user"))
	h.press("Log in")
	h.press("Catalogue")
	h.fill("Search", "pages")
	b.shows("#list", "Web server")
	h.press("Web server")
	h.press("Install in " + name)
	h.choose("Version", "1.0.0")
	h.fill("Replicas", "3")
	h.choose("Mode", "fast")
	b.shows("#preview", "What it would do", "ConfigMap "+w.space+"/settings", "Create")
	h.press("Install")
	stay := func() {
		t.Helper()
		b.until(`location.pathname.endsWith('/installations/web') && document.readyState === 'complete' && (window.stayed = true)`)
	}
	stayed := func(texts ...string) {
		t.Helper()
		b.shows("#live", texts...)
		b.until(`window.stayed === true`)
	}
	stay()
	stayed("● Ready", "Installed 1.0.0")
	w.settingsAre(map[string]string{"version": "1.0.0", "replicas": "3", "mode": "fast"})

	h.press("Change values or version")
	h.fill("Replicas", "5")
	b.shows("#preview", "What it would do", "Change ConfigMap "+w.space+"/settings")
	h.press("Save")
	w.settingsAre(map[string]string{"replicas": "5", "version": "1.0.0"})
	for _, version := range []string{"2.0.0", "1.0.0"} {
		h.press("Change values or version")
		h.choose("Version", version)
		if version == "1.0.0" {
			h.tick("Allow a lower version")
		}
		h.press("Save")
		stay()
		stayed("● Ready", "Installed "+version)
		w.settingsAre(map[string]string{"version": version, "replicas": "5"})
	}

	h.press("Uninstall")
	h.fill("Enter web to confirm", "web\r")
	b.shows("main", "not found")
}

// Red when a change that comes while a user works on a page closes details, takes typed text or a chosen row away, or moves the focus.
func TestBrowserKeepsThePlace(t *testing.T) {
	w := newSeed(t, "place")
	w.publish("web")
	made := w.named("web")
	made.Spec.AddonRef, made.Spec.Paused = v1.AddonReference{Name: "web"}, true
	given.Values(`{"mode":"fast"}`)(made)
	expect.Create(t, w, made)
	b := openTab(t, fronted(t, w, admin()))
	k := keyboard{b}

	b.open("/clusters/one/" + w.namespace + "/installations/web")
	b.shows("#live", "Paused")
	k.press("Uninstall")
	k.fill("Enter web to confirm", "we")
	expect.Change(t, w, made, func(now *v1.AddonInstallation) { now.Spec.Paused = false })
	b.shows("#live", "Installed 2.0.0")
	b.until(`document.activeElement.name === 'confirm' && document.activeElement.value === 'we' && document.activeElement.selectionStart === 2`)
	b.do(chromedp.KeyEvent("b"))
	b.until(`document.activeElement.value === 'web' && document.activeElement.closest('details').open`)

	b.open("/installations")
	b.shows("#live", "● Ready")
	k.tick("Select web of cluster place")
	expect.Change(t, w, made, func(now *v1.AddonInstallation) { now.Spec.Paused = true })
	b.shows("#live", "Paused")
	b.until(`document.activeElement.name === 'one' && document.activeElement.checked`)
	k.press("Pause")
	b.shows("main", "1 of 1 installation done")
}
