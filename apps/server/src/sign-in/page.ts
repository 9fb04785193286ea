import { html } from 'ghtml'

/** Markup in which everything that is not ours has been escaped. */
export type Html = string

export type Page = {
  title: string
  /** Escaped already: made with `html` of ghtml. */
  body: Html
  /** What went wrong: read out first, and shown above the form. */
  error?: string | undefined
  /** What went well. */
  notice?: string | undefined
}

export const stylePath = '/sign-in/style.css'

export function renderPage(page: Page): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${page.error === undefined ? '' : 'Error: '}${page.title} · Godwit</title>
<link rel="stylesheet" href="${stylePath}">
<link rel="icon" href="data:,">
</head>
<body>
<main>
<p class="brand">Godwit</p>
<h1>${page.title}</h1>
!${page.error === undefined ? '' : html`<p class="error" id="error" role="alert">${page.error}</p>`}
!${page.notice === undefined ? '' : html`<p class="notice" role="status">${page.notice}</p>`}
!${page.body}
</main>
</body>
</html>
`
}

export type Field = {
  name: string
  label: string
  type?: 'text' | 'email' | 'password'
  /** For password managers and keyboards. */
  autocomplete: string
  value?: string
  hint?: string
  isOptional?: boolean
  /** Said of this field by the page's error. */
  isWrong?: boolean
  inputMode?: 'numeric'
  isFocused?: boolean
  maxLength?: number
}

export function renderField(field: Field): Html {
  const hintId = `${field.name}-hint`
  const describedBy = [field.hint === undefined ? '' : hintId, field.isWrong === true ? 'error' : '']
    .filter((id) => id !== '')
    .join(' ')
  const attributes = [
    field.isOptional === true ? '' : ' required',
    field.isWrong === true ? ' aria-invalid="true"' : '',
    describedBy === '' ? '' : html` aria-describedby="${describedBy}"`,
    field.inputMode === undefined ? '' : html` inputmode="${field.inputMode}"`,
    field.maxLength === undefined ? '' : html` maxlength="${field.maxLength}"`,
    field.isFocused === true ? ' autofocus' : '',
    field.type === 'email' || field.inputMode === 'numeric' ? ' autocapitalize="none" spellcheck="false"' : '',
  ].join('')
  return html`<div class="field">
<label for="${field.name}">${field.label}</label>
!${field.hint === undefined ? '' : html`<p class="hint" id="${hintId}">${field.hint}</p>`}
<input id="${field.name}" name="${field.name}" type="${field.type ?? 'text'}" autocomplete="${field.autocomplete}" value="${field.value ?? ''}"!${attributes}>
</div>`
}

export const formTokenField = 'form_token'

/** The hidden field that `requireFormToken` looks for. */
export function renderFormToken(token: string): Html {
  return html`<input type="hidden" name="${formTokenField}" value="${token}">`
}

/** A form that posts to a path of this server. `token` comes from `createFormToken`. */
export function renderForm(form: {
  action: string
  token: string
  body: Html
  button: string
  isQuiet?: boolean
}): Html {
  return html`<form method="post" action="${form.action}">
!${renderFormToken(form.token)}
!${form.body}
<button type="submit"!${form.isQuiet === true ? ' class="quiet"' : ''}>${form.button}</button>
</form>`
}
