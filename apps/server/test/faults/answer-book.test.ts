import { describe, expect, it } from 'vitest'
import { createAnswerBook, type PatchState, type Place } from '../../../../bench/faults/answer-book.ts'

const place: Place = { version: '1.0.0', channel: 'stable', platform: 'android', arch: 'aarch64' }

function patchOf(number: number, more: Partial<PatchState> = {}): PatchState {
  const artifacts = [{ platform: 'android' as const, arch: 'aarch64', hash: `hash${number}---` }]
  return { id: number, number, channel: 'stable', isRolledBack: false, artifacts, ...more }
}

const first = 'patch 1 (hash1---), rolled back: none'
const second = 'patch 2 (hash2---), rolled back: none'

describe('the book of right answers', () => {
  it('takes only the new answer when a second has passed since the change was acknowledged', () => {
    const book = createAnswerBook()
    book.begin('release', [patchOf(1)], 0).acknowledge(10)
    book.begin('release', [patchOf(1), patchOf(2)], 5000).acknowledge(5100)
    expect(book.listRight('release', place, 4000, 4010)).toEqual([first])
    expect(book.listRight('release', place, 5050, 5060)).toEqual([first, second])
    expect(book.listRight('release', place, 6090, 6095)).toEqual([first, second])
    expect(book.listRight('release', place, 6101, 6110)).toEqual([second])
  })

  it('takes the old answer of a check that was on its way when the change came', () => {
    const book = createAnswerBook()
    book.begin('release', [patchOf(1)], 0).acknowledge(10)
    book.begin('release', [patchOf(1), patchOf(2)], 5000).acknowledge(5100)
    expect(book.listRight('release', place, 6000, 9000)).toEqual([first, second])
  })

  it('takes both answers for as long as nobody knows whether a change happened, and one when it was refused', () => {
    const book = createAnswerBook()
    book.begin('release', [patchOf(1)], 0).acknowledge(10)
    const change = book.begin('release', [patchOf(1), patchOf(2)], 5000)
    expect(book.listRight('release', place, 60_000, 60_010)).toEqual([first, second])
    change.refuse(70_000)
    expect(book.listRight('release', place, 72_000, 72_010)).toEqual([first])
    expect(book.read('release').map(({ number }) => number)).toEqual([1])
  })

  it('knows the rules of offers: channel, place, rolled back patches', () => {
    const book = createAnswerBook()
    const patches = [patchOf(1), patchOf(2, { isRolledBack: true }), patchOf(3, { channel: 'beta' })]
    book.begin('release', patches, 0).acknowledge(0)
    expect(book.listRight('release', place, 2000, 2000)).toEqual(['patch 1 (hash1---), rolled back: 2'])
    expect(book.listRight('release', { ...place, channel: 'beta' }, 2000, 2000)).toEqual([
      'patch 3 (hash3---), rolled back: 2',
    ])
    expect(book.listRight('release', { ...place, arch: 'arm' }, 2000, 2000)).toEqual(['nothing, rolled back: 2'])
    expect(book.listRight('other', place, 2000, 2000)).toEqual(['nothing, rolled back: none'])
  })
})
