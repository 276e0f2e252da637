// A search over all pages: every word has to be in a page; words in its title count most. The pages' texts are fetched with the first key.
"use strict";
(() => {
  const top = document.body.dataset.top, field = document.getElementById("search"), list = document.getElementById("found");
  let pages = null;

  window.trellisPages = (all) => {
    pages = all.map((page) => ({ ...page, title: page.t.toLowerCase(), text: page.x.toLowerCase() }));
    show();
  };

  function load() {
    if (document.getElementById("pages")) return;
    const script = document.createElement("script");
    script.id = "pages";
    script.src = top + "/pages.js";
    document.head.append(script);
  }

  function score(page, words) {
    let sum = 0;
    for (const word of words) {
      const inTitle = page.title.includes(word), times = page.text.split(word).length - 1;
      if (!inTitle && times === 0) return 0;
      sum += (inTitle ? 50 : 0) + Math.min(times, 20);
    }
    return sum;
  }

  function line(page, words) {
    const at = Math.max(0, page.text.indexOf(words[0]) - 50);
    return (at > 0 ? "… " : "") + page.x.slice(at, at + 150) + " …";
  }

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.replaceChildren();
    list.hidden = words.length === 0 || !pages;
    if (list.hidden) return;
    const hits = pages.map((page) => [score(page, words), page]).filter(([points]) => points > 0).sort(([a], [b]) => b - a).slice(0, 12);
    for (const [, page] of hits) {
      const item = document.createElement("li"), link = document.createElement("a"), about = document.createElement("small");
      link.href = top + "/" + page.u;
      link.textContent = page.t;
      about.textContent = line(page, words);
      link.append(about);
      item.append(link);
      list.append(item);
    }
    if (hits.length === 0) list.textContent = "No page has all of these words.";
  }

  field.addEventListener("input", () => { load(); show(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape") { field.value = ""; show(); }
  });
})();
