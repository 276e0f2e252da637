// What pages do beside htmx: they close their stream while they are hidden, copy texts, and keep what was typed.
(function () {
  'use strict'
  var sources = []
  // The extension for events asks for a source here, so that it can be closed and opened with the page.
  htmx.createEventSource = function (url) {
    var source = new EventSource(url)
    sources.push(source)
    source.addEventListener('ended', function () { source.close() })
    return source
  }

  // A hidden page has no stream. Once it is visible, its stream begins with the event that reads the window again.
  var kept = ''
  document.addEventListener('visibilitychange', function () {
    var holder = document.getElementById('stream')
    if (!holder) { return }
    if (document.hidden) {
      kept = holder.innerHTML
      sources.splice(0).forEach(function (source) { source.close() })
      htmx.swap(holder, '', { swapStyle: 'innerHTML' })
    } else if (kept) {
      htmx.swap(holder, kept, { swapStyle: 'innerHTML' })
      kept = ''
    }
  })

  document.addEventListener('click', function (event) {
    var button = event.target.closest('[data-copy]')
    if (!button || !navigator.clipboard) { return }
    var text = document.getElementById(button.dataset.copy)
    navigator.clipboard.writeText(text.textContent).then(function () {
      button.textContent = 'Copied'
      setTimeout(function () { button.textContent = 'Copy' }, 2000)
    })
  })

  // A part that is replaced keeps its open details.
  document.addEventListener('htmx:beforeSwap', function (event) {
    var open = Array.from(event.detail.target.querySelectorAll('details[open][id]')).map(function (one) { return one.id })
    event.detail.target.addEventListener('htmx:afterSettle', function () {
      open.forEach(function (id) {
        var one = document.getElementById(id)
        if (one) { one.open = true }
      })
    }, { once: true })
    // Refusals are pages too, and say what to do.
    if (event.detail.xhr.status >= 400 && event.detail.xhr.status !== 401) { event.detail.shouldSwap = true }
  })

  document.addEventListener('change', function (event) {
    if (event.target.matches('[data-all]')) {
      document.querySelectorAll('input[name="' + event.target.dataset.all + '"]').forEach(function (box) {
        box.checked = event.target.checked
      })
    }
    if (event.target.matches('[data-submit]')) { event.target.form.requestSubmit() }
  })
  document.documentElement.classList.add('js')
})()
