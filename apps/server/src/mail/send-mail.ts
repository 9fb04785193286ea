import { createTransport } from 'nodemailer'
import type { Deps } from '../deps.ts'
import type { Mail } from '../jobs/jobs.ts'

const timeoutMs = 20_000

/** Hands a mail in plain text to the operator's mail server. Throws when that does not take it: the job tries again. */
export async function sendMail(deps: Pick<Deps, 'config'>, mail: Mail): Promise<void> {
  const { mail: settings } = deps.config
  if (settings === undefined) throw new Error('GODWIT_SMTP_URL is not set: no mail can be sent')
  const transport = createTransport({
    url: settings.smtpUrl,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // What a mail says is ours; nothing of it may name a file or an address to fetch.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    await transport.sendMail({
      from: settings.from,
      to: { name: '', address: mail.to },
      subject: mail.subject,
      text: mail.text,
    })
  } finally {
    transport.close()
  }
}
