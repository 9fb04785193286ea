import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Config, readConfig } from '../../src/config.ts'
import { sendMail } from '../../src/mail/send-mail.ts'
import { type MailServer, readText, startMailServer } from '../support/mail-server.ts'

let server: MailServer

beforeAll(async () => {
  server = await startMailServer()
})
afterAll(() => server.stop())

const mail = { to: 'ada@example.com', subject: 'Grüße', text: 'One line.\n\nhttps://godwit.example/a?b=c\n' }

function configure(smtpUrl: string | undefined): { config: Config } {
  const from = 'Godwit <godwit@example.com>'
  return { config: { ...readConfig({}), mail: smtpUrl === undefined ? undefined : { smtpUrl, from } } }
}

describe('sendMail', () => {
  it('hands plain text to the mail server of the settings', async () => {
    await sendMail(configure(server.smtpUrl), mail)
    const [received] = server.mails
    expect(received).toMatchObject({ from: 'godwit@example.com', to: ['ada@example.com'] })
    expect(received?.raw).toMatch(/^From: Godwit <godwit@example\.com>$/m)
    expect(received?.raw).toMatch(/^Content-Type: text\/plain; charset=utf-8$/m)
    expect(received && readText(received)).toContain('https://godwit.example/a?b=c')
  })

  it('sends to one address, whatever is in it', async () => {
    server.mails.length = 0
    const to = 'ada@example.com, eve@example.com'
    await sendMail(configure(server.smtpUrl), { ...mail, to }).catch(() => undefined)
    expect(server.mails.flatMap((received) => received.to)).not.toContain('eve@example.com')
    await sendMail(configure(server.smtpUrl), { ...mail, subject: 'One\r\nBcc: eve@example.com' })
    expect(server.mails.flatMap((received) => received.to)).toEqual(['ada@example.com'])
  })

  it('throws when the server refuses or is not there, so that the job tries again', async () => {
    const refusing = await startMailServer({ refuses: true })
    await expect(sendMail(configure(refusing.smtpUrl), mail)).rejects.toThrow('no such mailbox')
    await refusing.stop()
    await expect(sendMail(configure(refusing.smtpUrl), mail)).rejects.toThrow('ECONNREFUSED')
  })

  it('throws when no mail server is set, rather than to lose the mail', async () => {
    await expect(sendMail(configure(undefined), mail)).rejects.toThrow('GODWIT_SMTP_URL is not set')
  })
})
