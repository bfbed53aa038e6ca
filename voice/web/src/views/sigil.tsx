// Everybody has a sign made from their UUID: five by five cells, mirrored, in one of eight pairs of colours.

const pairs: readonly [string, string][] = [
  ['#2f6c93', '#bfe3f7'], ['#3f7d3d', '#cdeec4'], ['#77702a', '#f1ebac'], ['#93562f', '#fbd9bd'], ['#7a4fa3', '#e6d3fb'], ['#9b3d55', '#fbd3dc'],
  ['#2b7a75', '#bff0ea'], ['#5a6470', '#e1e7ee'],
];

/** cellsOf gives the path of a sigil and its colours. */
export function cellsOf(id: string): {path: string; back: string; front: string} {
  let a = 2166136261;
  for (const c of id) a = Math.imul(a ^ c.charCodeAt(0), 16777619) >>> 0;
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) >>> 0; // UUIDs of one server are much alike: stir
  a = Math.imul(a ^ (a >>> 13), 0xc2b2ae35) >>> 0;
  a = (a ^ (a >>> 16)) >>> 0;
  let bits = 0;
  for (let n = a; ; n = Math.imul(n ^ (n >>> 13), 1274126177) >>> 0) {
    bits = (n ^ (n >>> 15)) & 0x7fff;
    const many = bits.toString(2).replaceAll('0', '').length;
    if (many >= 6 && many <= 10) break; // neither empty nor full
  }
  let path = '';
  for (let y = 0; y < 5; y++) for (let x = 0; x < 3; x++) {
    if (!((bits >> (y * 3 + x)) & 1)) continue;
    path += `M${x + 1},${y + 1}h1v1h-1z`;
    if (x < 2) path += `M${5 - x},${y + 1}h1v1h-1z`;
  }
  const [back, front] = pairs[(a >>> 20) % pairs.length]!;
  return {path, back, front};
}

export function Sigil({id, size}: {id: string; size: number}) {
  const {path, back, front} = cellsOf(id);
  return (
    <svg class="sigil" viewBox="0 0 7 7" width={size} height={size} shape-rendering="crispEdges" aria-hidden="true" focusable="false">
      <path fill={back} d="M0,0h7v7h-7z" />
      <path fill={front} d={path} />
    </svg>
  );
}
