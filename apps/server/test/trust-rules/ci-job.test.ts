import { describe, expect, it } from 'vitest'
import { readCiJob } from '../../src/trust-rules/ci-job.ts'

const gitHub = {
  iss: 'https://token.actions.githubusercontent.com',
  repository: 'acme/app',
  workflow_ref: 'acme/app/.github/workflows/release.yml@refs/heads/main',
  ref: 'refs/heads/main',
  run_id: '7',
}
const gitLab = {
  iss: 'https://gitlab.example.com',
  project_path: 'group/sub/app',
  ci_config_ref_uri: 'gitlab.example.com/group/sub/app//.gitlab-ci.yml@refs/heads/main',
  ref: 'main',
  ref_type: 'branch',
  pipeline_id: '9',
}

describe('the job behind a token', () => {
  it('is read from the names of GitHub', () => {
    expect(readCiJob({ ...gitHub, environment: 'production' })).toEqual({
      issuer: gitHub.iss,
      repository: 'acme/app',
      workflowRef: gitHub.workflow_ref,
      workflowPath: '.github/workflows/release.yml',
      workflowFolder: '.github/workflows/',
      environment: 'production',
      ref: 'refs/heads/main',
      runId: '7',
    })
  })

  it('is read from the names of GitLab', () => {
    expect(readCiJob(gitLab)).toEqual({
      issuer: gitLab.iss,
      repository: 'group/sub/app',
      workflowRef: gitLab.ci_config_ref_uri,
      workflowPath: '.gitlab-ci.yml',
      workflowFolder: '',
      environment: undefined,
      ref: 'refs/heads/main',
      runId: '9',
    })
    expect(readCiJob({ ...gitLab, ref: 'v1', ref_type: 'tag' })?.ref).toBe('refs/tags/v1')
    expect(readCiJob({ ...gitLab, ref_path: 'refs/merge-requests/1/head' })?.ref).toBe('refs/merge-requests/1/head')
    expect(readCiJob({ ...gitLab, ref_type: 'other' })?.ref).toBeUndefined()
  })

  it.each([
    ['of another repository', 'evil/app/.github/workflows/release.yml@refs/heads/main'],
    ['of a repository whose name goes on', 'acme/app2/.github/workflows/release.yml@refs/heads/main'],
    ['without a ref', 'acme/app/.github/workflows/release.yml'],
    ['without a path', 'acme/app/@refs/heads/main'],
  ])('is none with a workflow %s', (_name, workflow_ref) => {
    expect(readCiJob({ ...gitHub, workflow_ref })).toBeUndefined()
  })

  it.each([
    ['of another project', 'gitlab.example.com/evil/group/sub/app//.gitlab-ci.yml@refs/heads/main'],
    ['of another host', 'evil.example.com/group/sub/app//.gitlab-ci.yml@refs/heads/main'],
    ['that GitLab does not name', null],
  ])('is none with a pipeline definition %s', (_name, ci_config_ref_uri) => {
    expect(readCiJob({ ...gitLab, ci_config_ref_uri })).toBeUndefined()
  })

  it('keeps the whole file name, and the whole branch, when there are further @', () => {
    const path = (workflow_ref: string) => readCiJob({ ...gitHub, workflow_ref })?.workflowPath
    expect(path('acme/app/.github/workflows/release.yml@x.yml@refs/heads/main')).toBe(
      '.github/workflows/release.yml@x.yml',
    )
    expect(path('acme/app/.github/workflows/release.yml@refs/heads/a@refs/b')).toBe('.github/workflows/release.yml')
  })

  it.each([
    [{}],
    [null],
    [{ ...gitHub, repository: 7 }],
    [{ ...gitHub, repository: undefined }],
    [{ ...gitHub, ref: 7 }],
  ])('is none without its claims: %j', (claims) => {
    expect(readCiJob(claims)).toBeUndefined()
  })
})
