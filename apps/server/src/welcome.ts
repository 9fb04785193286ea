import type { FirstAccount } from './bootstrap.ts'

/** What the terminal shows once, on an empty database. A key that came from the settings is not repeated. */
export function describeFirstStart(input: { publicUrl: string; account: FirstAccount }): string {
  const { publicUrl, account } = input
  const key = account.isKeyGenerated ? account.apiKey : '$GODWIT_ADMIN_API_KEY'
  return `
  Godwit is ready at ${publicUrl}

  First account   ${account.email}
  API key         ${account.isKeyGenerated ? `${key}   (shown only now)` : 'the one in GODWIT_ADMIN_API_KEY'}

  Next, in the shell where you run the command line client:

    export SHOREBIRD_HOSTED_URL=${publicUrl}
    export SHOREBIRD_TOKEN=${key}

  and in the shorebird.yaml of your app:

    base_url: ${publicUrl}

`
}

export function describeLaterStart(input: { publicUrl: string }): string {
  return `\n  Godwit is ready at ${input.publicUrl}\n\n`
}
