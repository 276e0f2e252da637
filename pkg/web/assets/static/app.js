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
  var hidden = ''
  document.addEventListener('visibilitychange', function () {
    var holder = document.getElementById('stream')
    if (!holder) { return }
    if (document.hidden) {
      hidden = holder.innerHTML
      sources.splice(0).forEach(function (source) { source.close() })
      htmx.swap(holder, '', { swapStyle: 'innerHTML' })
    } else if (hidden) {
      htmx.swap(holder, hidden, { swapStyle: 'innerHTML' })
      hidden = ''
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

  // What a user did in a part of a page: open details, typed texts, chosen boxes, and the focus. Elements are known by the details around
  // them, their name, and what they show.
  function addressOf(one) {
    var inside = one.parentElement.closest('details[id]')
    var shown = one.type === 'checkbox' ? one.value : one.matches('input, textarea, select') ? '' : one.getAttribute('href') || one.textContent
    return [one.tagName, inside ? inside.id : '', one.name || '', shown].join('\n')
  }
  function find(part, address) {
    return Array.from(part.querySelectorAll(address.split('\n')[0])).find(function (one) { return addressOf(one) === address })
  }
  function keep(part) {
    var at = document.activeElement
    return {
      open: Array.from(part.querySelectorAll('details[open][id]')).map(function (one) { return one.id }),
      typed: Array.from(part.querySelectorAll('input:not([type=hidden]), textarea, select')).map(function (one) {
        return { address: addressOf(one), value: one.value, checked: one.checked }
      }),
      focus: part.contains(at) ? addressOf(at) : '',
      from: at.selectionStart, to: at.selectionEnd
    }
  }
  function restore(part, was) {
    was.open.forEach(function (id) {
      var one = document.getElementById(id)
      if (one) { one.open = true }
    })
    was.typed.forEach(function (typed) {
      var one = find(part, typed.address)
      if (one && one.type === 'checkbox') { one.checked = typed.checked } else if (one) { one.value = typed.value }
    })
    var focused = was.focus && find(part, was.focus)
    if (was.focus && !focused) { focused = document.getElementById('main') }
    if (focused && document.activeElement !== focused) {
      focused.focus({ preventScroll: true })
      if (was.from !== null && focused.setSelectionRange) { focused.setSelectionRange(was.from, was.to) }
    }
  }
  var kept = {}
  function before(event) {
    if (event.detail.target && event.detail.target.id) { kept[event.detail.target.id] = keep(event.detail.target) }
  }
  function after() {
    Object.keys(kept).forEach(function (id) {
      var part = document.getElementById(id)
      if (part) { restore(part, kept[id]) }
      delete kept[id]
    })
  }
  document.addEventListener('htmx:beforeSwap', function (event) {
    before(event)
    // Refusals are pages too, and say what to do.
    if (event.detail.xhr.status >= 400) { event.detail.shouldSwap = true }
  })
  document.addEventListener('htmx:oobBeforeSwap', before)
  document.addEventListener('htmx:oobAfterSwap', after)
  document.addEventListener('htmx:afterSettle', after)

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
