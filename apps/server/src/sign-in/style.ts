/** One stylesheet for all pages. Text has a contrast of at least 4.5 and borders of inputs 3 to their background, in both schemes. */
export const style = `:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #fff; --text: #1b1f24; --soft: #56606b; --line: #7d8894; --rule: #dfe3e8;
  --accent: #0b5cad; --on-accent: #fff; --error: #a3161f; --error-page: #fdf0f0; --good: #12613a; --good-page: #edf8f1;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #111417; --card: #1a1e23; --text: #eceff2; --soft: #a9b3bd; --line: #7d8894; --rule: #333a42;
    --accent: #7db7f5; --on-accent: #0b1a2a; --error: #ffb1b1; --error-page: #3a1a1c; --good: #9be0b7; --good-page: #16301f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 27rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; overflow-wrap: anywhere; }
@media (min-width: 32rem) {
  main { margin: 4rem auto; padding: 2.25rem; background: var(--card); border: 1px solid var(--rule); border-radius: .75rem; }
}
.brand { margin: 0; color: var(--soft); font-weight: 600; }
h1 { margin: .25rem 0 1.25rem; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2.25rem 0 .75rem; padding-top: 1.5rem; border-top: 1px solid var(--rule); font-size: 1.15rem; }
p { margin: 0 0 1rem; }
a { color: var(--accent); }
.error, .notice { padding: .75rem 1rem; border-left: .25rem solid; border-radius: .25rem; }
.error { color: var(--error); background: var(--error-page); }
.notice { color: var(--good); background: var(--good-page); }
.field { margin: 0 0 1rem; }
label { display: block; margin: 0 0 .25rem; font-weight: 600; }
.hint { margin: 0 0 .35rem; color: var(--soft); font-size: .9rem; }
input {
  width: 100%; min-height: 2.75rem; padding: .5rem .75rem; color: inherit; background: var(--card); font: inherit;
  border: 1px solid var(--line); border-radius: .375rem;
}
input[aria-invalid] { border-color: var(--error); border-width: 2px; }
button, .button {
  display: block; width: 100%; min-height: 2.75rem; padding: .55rem 1rem; font: inherit; font-weight: 600; text-align: center;
  text-decoration: none; cursor: pointer; color: var(--on-accent); background: var(--accent);
  border: 1px solid var(--accent); border-radius: .375rem;
}
button.quiet, button.secondary, .button.quiet { color: var(--text); background: transparent; border-color: var(--line); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
form + form, button + button, .button + .button, form + .button { margin-top: .75rem; }
.or { margin: 1.25rem 0; color: var(--soft); text-align: center; }
.small { margin: 1.25rem 0 0; font-size: .95rem; }
ul.list { margin: 0; padding: 0; list-style: none; }
ul.list li { padding: .9rem 0; border-top: 1px solid var(--rule); }
ul.list li:first-child { border-top: 0; padding-top: 0; }
ul.list button { width: auto; min-height: 2.5rem; }
.soft { color: var(--soft); font-size: .9rem; }
.qr { display: block; width: 12rem; max-width: 100%; margin: 0 0 1rem; padding: .5rem; background: #fff; border-radius: .375rem; }
.qr svg { display: block; width: 100%; height: auto; }
code { font: .95rem/1.5 ui-monospace, monospace; }
p.code { font: 600 1.4rem/1.5 ui-monospace, monospace; letter-spacing: .08em; }
dl { margin: 0 0 1rem; }
dt { color: var(--soft); font-size: .9rem; }
dd { margin: 0 0 .5rem; }
`
