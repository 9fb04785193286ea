import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export type ReceivedMail = { from: string; to: string[] /** Head and text as they came. */; raw: string }

export type MailServer = { smtpUrl: string; mails: ReceivedMail[]; stop: () => Promise<void> }

/** A mail server on a port of its own that keeps what it gets. */
export async function startMailServer(options: { refuses?: boolean } = {}): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo(_address, _session, callback) {
      callback(options.refuses === true ? new Error('no such mailbox') : null)
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        mails.push({ from, to: rcptTo.map(({ address }) => address), raw: Buffer.concat(chunks).toString() })
        callback()
      })
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    smtpUrl: `smtp://127.0.0.1:${port}`,
    mails,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** The text of a mail, without its head and its encoding. */
export function readText(mail: ReceivedMail): string {
  const [head = '', ...text] = mail.raw.split('\r\n\r\n')
  const body = text.join('\n\n')
  if (!/^content-transfer-encoding: quoted-printable$/im.test(head)) return body
  return body
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_code, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
