// A diagram from the engine, as the section that the report's modules draw.
import { from_base64, typed_numbers } from '../../report/page/web/data.js';

/**
 * @param {{ data: any, blobs: { name: string, type: string, base64: string }[] }} diagram
 * @returns {import('../../report/page/web/data.js').Section}
 */
export function packed_section(diagram) {
  const blobs = new Map(diagram.blobs.map(({ name, type, base64 }) =>
    [name, typed_numbers(type, from_base64(base64).buffer)]));
  return { kind: 'diagram', title: '', data: diagram.data, blobs };
}
