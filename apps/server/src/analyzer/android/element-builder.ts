import { limits } from '../limits.ts'
import { beyondLimit, malformed } from './refusals.ts'
import type { XmlElement } from './xml.ts'

/** Makes a tree of what a reader meets, within the limits. */
export type ElementBuilder = {
  start: (element: XmlElement) => void
  end: () => void
  /** The root. */
  finish: () => XmlElement
}

export function createElementBuilder(): ElementBuilder {
  const open: XmlElement[] = []
  let root: XmlElement | undefined
  let count = 0
  return {
    start: (element) => {
      count += 1
      if (count > limits.xmlNodes) throw beyondLimit('too many XML elements')
      if (open.length >= limits.depth) throw beyondLimit('XML elements are nested too deep')
      const parent = open.at(-1)
      if (parent !== undefined) parent.children.push(element)
      else if (root === undefined) root = element
      else throw malformed('XML with two roots')
      open.push(element)
    },
    end: () => {
      if (open.pop() === undefined) throw malformed('an XML element ends that was not begun')
    },
    finish: () => {
      if (root === undefined || open.length > 0) throw malformed('XML without an end')
      return root
    },
  }
}

export function checkAttributeCount(count: number): void {
  if (count > limits.attributesPerElement) throw beyondLimit('too many attributes of an XML element')
}
