import { inspect } from 'node:util'
import type { FirstAccount } from './bootstrap.ts'

/** What the terminal shows. An account is there once, on an empty database; a key from the settings is not repeated. */
export function describeStart(input: { publicUrl: string; account: FirstAccount | undefined }): string {
  const { publicUrl, account } = input
  if (account === undefined) return `\n  Godwit is ready at ${publicUrl}\n\n`
  const key = account.isKeyGenerated ? account.apiKey : '$GODWIT_ADMIN_API_KEY'
  return `
  Godwit is ready at ${publicUrl}

  First account   ${account.email}
  Password        ${describePassword(account)}
  Sign in at      ${publicUrl}/account
  API key         ${account.isKeyGenerated ? `${key}   (shown only now)` : 'the one in GODWIT_ADMIN_API_KEY'}

  Next, in the shell where you run the command line client:

    export SHOREBIRD_HOSTED_URL=${publicUrl}
    export SHOREBIRD_TOKEN=${key}

  or, to sign in with the password instead of the key (shorebird login):

    export SHOREBIRD_HOSTED_URL=${publicUrl}
    export AUTH_SERVICE_URL=${publicUrl}
    export SHOREBIRD_JWT_ISSUER=${publicUrl}

  and in the shorebird.yaml of your app:

    base_url: ${publicUrl}

`
}

function describePassword({ email, generatedPassword, hasPassword }: FirstAccount): string {
  if (generatedPassword !== undefined) return `${generatedPassword}   (shown only now)`
  return hasPassword ? 'the one in GODWIT_ADMIN_PASSWORD' : `none; npm run admin -- reset-password ${email} makes one`
}

/** What went wrong, for a person: the messages down to the first cause. The stack only of what must be a mistake of ours. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof ReferenceError) return inspect(error)
  const cause = error.cause instanceof Error ? `\n  ${describeFailure(error.cause)}` : ''
  return `${error.message}${cause}`
}
