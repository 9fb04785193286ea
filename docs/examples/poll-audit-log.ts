import { appendFile, readFile, rename, truncate, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

/**
 * Copies an organization's audit log into a file, one event a line, and goes on doing so: what a SIEM's collector does. It
 * needs Node 24 and nothing else.
 *
 *   GODWIT_API_KEY=sb_api_… node poll-audit-log.ts --url https://godwit.example.com --organization 7 --to audit.jsonl
 *
 * The cursor is kept beside the file and written after the events: a crash between the two repeats a page, never skips one,
 * and the ids of the events that are there already tell which ones are repeated.
 */
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    organization: { type: 'string' },
    to: { type: 'string' },
    /** Seconds between two looks at the end of the log. */
    every: { type: 'string', default: '60' },
  },
})
const { url, organization, to, every } = values
const key = process.env.GODWIT_API_KEY
if (url === undefined || organization === undefined || to === undefined || key === undefined) {
  console.error('needs GODWIT_API_KEY, --url, --organization and --to')
  process.exit(1)
}
const cursorFile = `${to}.cursor`
const read = async (file: string) => readFile(file, 'utf8').catch(() => '')

type Event = { metadata: { uid: string } }
type Page = { data: Event[]; next_cursor?: string }

async function fetchPage(cursor: string): Promise<Page | undefined> {
  const address = new URL(`/api/v1/organizations/${organization}/audit-logs?order=asc&per_page=100`, url)
  if (cursor !== '') address.searchParams.set('cursor', cursor)
  const answer = await fetch(address, { headers: { authorization: `Bearer ${key}` } }).catch((error: Error) => {
    console.error(`${address.host} does not answer (${error.cause ?? error.message}); trying again`)
    return undefined
  })
  if (answer?.ok) return (await answer.json()) as Page
  // Refused for good: the key was revoked, or the plan or the organization is no longer there.
  if (answer !== undefined && answer.status < 500 && answer.status !== 429) {
    console.error(`${answer.status}: ${await answer.text()}`)
    process.exit(1)
  }
  if (answer !== undefined) console.error(`${address.host} answers ${answer.status}; trying again`)
  return undefined
}

const seen = new Set<string>()
const kept = await read(to)
// A crash may have cut the last line.
const whole = kept.slice(0, kept.lastIndexOf('\n') + 1)
if (whole !== kept) await truncate(to, Buffer.byteLength(whole))
for (const line of whole.split('\n').slice(0, -1)) seen.add((JSON.parse(line) as Event).metadata.uid)

let cursor = (await read(cursorFile)).trim()
for (;;) {
  const page = await fetchPage(cursor)
  const news = page?.data.filter(({ metadata }) => !seen.has(metadata.uid)) ?? []
  if (news.length > 0) await appendFile(to, news.map((event) => `${JSON.stringify(event)}\n`).join(''), { flush: true })
  for (const { metadata } of news) seen.add(metadata.uid)
  if (page?.next_cursor !== undefined && page.next_cursor !== cursor) {
    cursor = page.next_cursor
    await writeFile(`${cursorFile}.new`, cursor)
    await rename(`${cursorFile}.new`, cursorFile)
  }
  // A full page has more behind it.
  if (page === undefined || page.data.length < 100) await sleep(Number(every) * 1000)
}
