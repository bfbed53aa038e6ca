// Icons of 12 by 12 cells, drawn crisp at 12, 24 and 36 pixels only.

export const paths = {
  mic: 'M4,0h4v6h-4zM1,4h1v4h-1zM10,4h1v4h-1zM5,6h2v1h-2zM2,7h1v2h-1zM9,7h1v2h-1zM3,8h6v1h-6zM5,9h2v3h-2zM3,11h2v1h-2zM7,11h2v1h-2z',
  micOff: 'M0,0h1v2h-1zM4,0h4v2h-4zM1,1h1v2h-1zM2,2h1v2h-1zM5,2h3v1h-3zM3,3h1v2h-1zM6,3h2v1h-2zM1,4h1v4h-1zM4,4h1v2h-1zM7,4h1v1h-1zM10,4h1v4h-1zM5,5h1v2h-1zM6,6h1v6h-1zM2,7h1v2h-1zM7,7h1v1h-1zM9,7h1v3h-1zM3,8h3v1h-3zM8,8h1v1h-1zM5,9h1v3h-1zM10,9h1v2h-1zM11,10h1v2h-1zM3,11h2v1h-2zM7,11h2v1h-2z',
  hear: 'M3,0h6v2h-6zM2,1h1v2h-1zM9,1h1v2h-1zM1,2h1v9h-1zM10,2h1v9h-1zM0,4h1v6h-1zM11,4h1v6h-1zM2,6h1v5h-1zM9,6h1v5h-1zM3,7h1v3h-1zM8,7h1v3h-1z',
  deaf: 'M0,0h1v2h-1zM3,0h6v2h-6zM1,1h1v10h-1zM9,1h1v2h-1zM2,2h1v2h-1zM10,2h1v6h-1zM3,3h1v2h-1zM0,4h1v6h-1zM4,4h1v2h-1zM11,4h1v5h-1zM5,5h1v2h-1zM2,6h1v5h-1zM6,6h1v2h-1zM9,6h1v1h-1zM3,7h1v3h-1zM7,7h1v2h-1zM8,8h1v2h-1zM9,9h1v2h-1zM10,10h1v2h-1zM11,11h1v1h-1z',
  whisper: 'M5,3h1v1h-1zM1,4h2v4h-2zM6,4h1v4h-1zM5,8h1v1h-1z',
  normal: 'M7,1h1v1h-1zM8,2h1v1h-1zM5,3h1v1h-1zM9,3h1v6h-1zM1,4h2v4h-2zM6,4h1v4h-1zM5,8h1v1h-1zM8,9h1v1h-1zM7,10h1v1h-1z',
  shout: 'M7,0h2v1h-2zM6,1h1v1h-1zM9,1h1v1h-1zM7,2h1v1h-1zM10,2h1v1h-1zM4,3h1v1h-1zM8,3h1v6h-1zM11,3h1v6h-1zM0,4h2v4h-2zM5,4h1v4h-1zM4,8h1v1h-1zM7,9h1v1h-1zM10,9h1v1h-1zM6,10h1v1h-1zM9,10h1v1h-1zM7,11h2v1h-2z',
  vol: 'M5,0h1v12h-1zM4,1h1v10h-1zM8,1h1v1h-1zM3,2h1v8h-1zM9,2h1v1h-1zM0,3h3v6h-3zM7,3h1v1h-1zM10,3h1v6h-1zM8,4h1v4h-1zM7,8h1v1h-1zM9,9h1v1h-1zM8,10h1v1h-1z',
  volOff: 'M5,0h1v12h-1zM4,1h1v10h-1zM3,2h1v8h-1zM0,3h3v6h-3zM7,3h1v1h-1zM11,3h1v1h-1zM8,4h1v1h-1zM10,4h1v1h-1zM9,5h1v2h-1zM8,7h1v1h-1zM10,7h1v1h-1zM7,8h1v1h-1zM11,8h1v1h-1z',
  group: 'M2,1h2v4h-2zM8,1h2v4h-2zM1,2h1v2h-1zM4,2h1v2h-1zM7,2h1v2h-1zM10,2h1v2h-1zM1,6h4v5h-4zM7,6h4v5h-4zM0,7h1v4h-1zM5,7h1v4h-1zM11,7h1v4h-1z',
  lock: 'M4,0h4v1h-4zM3,1h2v1h-2zM7,1h2v1h-2zM3,2h1v9h-1zM8,2h1v9h-1zM1,4h2v7h-2zM4,4h4v2h-4zM9,4h2v7h-2zM4,6h1v5h-1zM7,6h1v5h-1zM5,8h2v3h-2z',
  gear: 'M5,0h2v3h-2zM1,1h2v2h-2zM4,1h1v3h-1zM7,1h1v3h-1zM9,1h2v2h-2zM3,2h1v3h-1zM8,2h1v3h-1zM2,3h1v8h-1zM9,3h1v8h-1zM1,4h1v4h-1zM10,4h1v4h-1zM0,5h1v2h-1zM11,5h1v2h-1zM3,7h1v3h-1zM8,7h1v3h-1zM4,8h1v3h-1zM7,8h1v3h-1zM1,9h1v2h-1zM5,9h2v3h-2zM10,9h1v2h-1z',
  map: 'M3,0h6v2h-6zM2,1h1v6h-1zM9,1h1v6h-1zM1,2h1v4h-1zM3,2h1v1h-1zM8,2h1v1h-1zM10,2h1v4h-1zM3,5h1v3h-1zM8,5h1v3h-1zM4,6h4v3h-4zM5,9h2v2h-2z',
  list: 'M1,1h2v2h-2zM4,1h7v2h-7zM1,5h2v2h-2zM4,5h7v2h-7zM1,9h2v2h-2zM4,9h7v2h-7z',
  board: 'M1,0h4v4h-4zM7,0h4v4h-4zM1,6h4v4h-4zM7,6h4v4h-4z',
  close: 'M1,1h2v2h-2zM9,1h2v2h-2zM3,2h1v3h-1zM8,2h1v3h-1zM2,3h1v1h-1zM4,3h1v6h-1zM7,3h1v6h-1zM9,3h1v1h-1zM5,4h2v4h-2zM3,7h1v3h-1zM8,7h1v3h-1zM2,8h1v3h-1zM9,8h1v3h-1zM1,9h1v2h-1zM10,9h1v2h-1z',
  check: 'M10,1h2v2h-2zM9,2h1v3h-1zM8,3h1v3h-1zM10,3h1v1h-1zM7,4h1v3h-1zM0,5h2v2h-2zM6,5h1v3h-1zM2,6h1v3h-1zM5,6h1v3h-1zM1,7h1v1h-1zM3,7h2v3h-2z',
  warn: 'M5,0h2v3h-2zM4,2h1v10h-1zM7,2h1v10h-1zM3,4h1v8h-1zM8,4h1v8h-1zM2,6h1v6h-1zM9,6h1v6h-1zM5,7h2v1h-2zM1,8h1v4h-1zM10,8h1v4h-1zM0,10h1v2h-1zM5,10h2v2h-2zM11,10h1v2h-1z',
  help: 'M3,0h6v1h-6zM2,1h2v1h-2zM8,1h2v1h-2zM1,2h2v1h-2zM9,2h2v2h-2zM8,4h2v1h-2zM6,5h3v1h-3zM5,6h2v2h-2zM5,9h2v2h-2z',
  bars: 'M10,0h2v11h-2zM7,3h2v8h-2zM4,5h2v6h-2zM1,8h2v3h-2z',
  popout: 'M1,1h9v1h-9zM1,2h1v7h-1zM9,2h1v9h-1zM5,5h4v3h-4zM10,5h2v6h-2zM2,8h4v1h-4zM7,8h2v3h-2zM5,9h2v2h-2z',
  leave: 'M1,0h6v1h-6zM1,1h1v11h-1zM6,1h1v11h-1zM9,2h1v8h-1zM10,3h1v6h-1zM8,4h1v4h-1zM11,4h1v4h-1zM3,5h3v2h-3zM7,5h1v2h-1zM2,11h4v1h-4z',
  walk: 'M5,0h2v8h-2zM4,2h1v2h-1zM7,2h1v2h-1zM3,3h1v2h-1zM2,4h1v2h-1zM8,4h1v1h-1zM9,5h1v1h-1zM4,7h1v3h-1zM7,7h1v2h-1zM8,8h1v3h-1zM3,9h1v3h-1zM9,10h1v1h-1zM2,11h1v1h-1z',
  ping: 'M5,0h2v3h-2zM4,2h1v2h-1zM7,2h1v2h-1zM3,3h1v6h-1zM8,3h1v6h-1zM1,5h2v2h-2zM5,5h2v2h-2zM9,5h2v2h-2zM4,8h1v2h-1zM7,8h1v2h-1zM5,9h2v3h-2z',
} as const;

export type IconName = keyof typeof paths;

export function Icon({name, size = 24}: {name: IconName; size?: 12 | 24 | 36}) {
  return (
    <svg class="icon" viewBox="0 0 12 12" width={size} height={size} shape-rendering="crispEdges" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 12 12" width="36" height="36" shape-rendering="crispEdges" aria-hidden="true" focusable="false">
      <path class="lamp" d="M0,8h4v4h-4z" />
      <path d="M0,5h3v1h-3zM3,6h2v1h-2zM5,7h1v2h-1zM6,9h1v3h-1z" />
      <path d="M0,2h4v1h-4zM4,3h2v1h-2zM6,4h1v1h-1zM7,5h1v1h-1zM8,6h1v2h-1zM9,8h1v4h-1z" />
    </svg>
  );
}

/** Arrow points up when turn is 0, and right at 90. */
export function Arrow({turn}: {turn: number}) {
  return (
    <svg class="arrow" viewBox="-14 -14 28 28" width="28" height="28" aria-hidden="true" focusable="false">
      <path d="M0,-12L9,9L0,4L-9,9z" transform={`rotate(${turn})`} />
    </svg>
  );
}
