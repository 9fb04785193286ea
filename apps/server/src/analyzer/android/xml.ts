import type { ResourceValue } from './values.ts'

/** An element, whichever of the three encodings of Android it was read from. Text between elements is left out. */
export type XmlElement = { name: string; attributes: XmlAttribute[]; children: XmlElement[] }

export type XmlAttribute = {
  /** 0 for one that is not of the system. */
  resourceId: number
  namespace: string
  name: string
  value: ResourceValue | undefined
}

export const androidNamespace = 'http://schemas.android.com/apk/res/android'

/** The attributes of the system that are read, with the ids that they have had since they were made public. */
const attributeIds = {
  label: 0x01010001,
  icon: 0x01010002,
  roundIcon: 0x0101052c,
  minSdkVersion: 0x0101020c,
  targetSdkVersion: 0x01010270,
  drawable: 0x01010199,
  src: 0x01010119,
  gravity: 0x010100af,
  color: 0x010101a5,
  inset: 0x010104b5,
  insetLeft: 0x010101b7,
  insetRight: 0x010101b8,
  insetTop: 0x010101b9,
  insetBottom: 0x010101ba,
  left: 0x010101ad,
  top: 0x010101ae,
  right: 0x010101af,
  bottom: 0x010101b0,
  width: 0x01010159,
  height: 0x01010155,
  viewportWidth: 0x01010402,
  viewportHeight: 0x01010403,
  tint: 0x01010121,
  alpha: 0x0101031f,
  pathData: 0x01010405,
  fillColor: 0x01010404,
  fillAlpha: 0x010104cc,
  fillType: 0x0101051e,
  strokeColor: 0x01010406,
  strokeAlpha: 0x010104cb,
  strokeWidth: 0x01010407,
  strokeLineCap: 0x0101040b,
  strokeLineJoin: 0x0101040c,
  strokeMiterLimit: 0x0101040d,
  rotation: 0x01010326,
  pivotX: 0x010101b5,
  pivotY: 0x010101b6,
  scaleX: 0x01010324,
  scaleY: 0x01010325,
  translateX: 0x0101045a,
  translateY: 0x0101045b,
  type: 0x010101a1,
  startX: 0x01010510,
  startY: 0x01010511,
  endX: 0x01010512,
  endY: 0x01010513,
  centerX: 0x010101a2,
  centerY: 0x010101a3,
  gradientRadius: 0x010101a4,
  startColor: 0x0101019d,
  centerColor: 0x0101020b,
  endColor: 0x0101019e,
  offset: 0x01010514,
  tileMode: 0x01010201,
  shape: 0x0101019a,
  angle: 0x010101a0,
  radius: 0x010101a8,
} as const

export type AttributeName = keyof typeof attributeIds

/** By the id first: tools that make apps smaller remove the names. */
export function findAttribute(element: XmlElement, name: AttributeName): ResourceValue | undefined {
  const id = attributeIds[name]
  const found =
    element.attributes.find(({ resourceId }) => resourceId === id) ??
    element.attributes.find((attribute) => attribute.name === name && attribute.namespace === androidNamespace)
  return found?.value
}

/** An attribute without a namespace. */
export function findPlainText(element: XmlElement, name: string): string | undefined {
  const found = element.attributes.find((attribute) => attribute.name === name && attribute.namespace === '')
  return found?.value?.kind === 'text' ? found.value.text : undefined
}
