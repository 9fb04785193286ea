import type { FirstAccount } from './bootstrap.ts'

/** What the terminal shows. An account is there once, on an empty database; a key from the settings is not repeated. */
export function describeStart(input: { publicUrl: string; account: FirstAccount | undefined }): string {
  const { publicUrl, account } = input
  if (account === undefined) return `\n  Godwit is ready at ${publicUrl}\n\n`
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
