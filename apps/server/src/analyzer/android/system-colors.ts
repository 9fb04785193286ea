import type { ResourceTable } from './values.ts'

/** Colors of the system that icons refer to, by the ids that they have had since they were made public. */
const systemColors = [
  { id: 0x01060000, name: 'darker_gray', argb: 0xffaaaaaa },
  { id: 0x0106000b, name: 'white', argb: 0xffffffff },
  { id: 0x0106000c, name: 'black', argb: 0xff000000 },
  { id: 0x0106000d, name: 'transparent', argb: 0x00000000 },
  { id: 0x0106000e, name: 'background_dark', argb: 0xff000000 },
  { id: 0x0106000f, name: 'background_light', argb: 0xffffffff },
  { id: 0x01060012, name: 'holo_blue_light', argb: 0xff33b5e5 },
  { id: 0x01060013, name: 'holo_blue_dark', argb: 0xff0099cc },
  { id: 0x01060014, name: 'holo_green_light', argb: 0xff99cc00 },
  { id: 0x01060015, name: 'holo_green_dark', argb: 0xff669900 },
  { id: 0x01060016, name: 'holo_red_light', argb: 0xffff4444 },
  { id: 0x01060017, name: 'holo_red_dark', argb: 0xffcc0000 },
  { id: 0x01060018, name: 'holo_orange_light', argb: 0xffffbb33 },
  { id: 0x01060019, name: 'holo_orange_dark', argb: 0xffff8800 },
  { id: 0x0106001a, name: 'holo_purple', argb: 0xffaa66cc },
  { id: 0x0106001b, name: 'holo_blue_bright', argb: 0xff00ddff },
]

const configuration = { locale: '', density: 0, sdk: 0, isPlain: true }

/** What an app's table does not have, and its icon may refer to. */
export function withSystemColors(table: ResourceTable): ResourceTable {
  return (reference) => {
    const color = systemColors.find(({ id, name }) => id === reference.id || reference.name === `android:color/${name}`)
    return color === undefined ? table(reference) : [{ configuration, value: { kind: 'color', argb: color.argb } }]
  }
}
