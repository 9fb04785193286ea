import { createTransport } from 'nodemailer'
import type { Config } from '../config.ts'
import { describe, type Finding } from './finding.ts'

const check = 'mail'
const timeoutMs = 5000

/** Signs in at the mail server, and sends nothing. */
export async function checkMail({ mail }: Pick<Config, 'mail'>): Promise<Finding[]> {
  if (mail === undefined) return [{ check, result: 'ok', found: 'GODWIT_SMTP_URL is not set: no mail is sent' }]
  const transport = createTransport({
    url: mail.smtpUrl,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  })
  try {
    await transport.verify()
    return [{ check, result: 'ok', found: 'the mail server lets us in' }]
  } catch (error) {
    const mend = 'See that host, port, user and password of GODWIT_SMTP_URL are right.'
    return [{ check, result: 'failure', found: `the mail server does not take mail from us: ${describe(error)}`, mend }]
  } finally {
    transport.close()
  }
}
