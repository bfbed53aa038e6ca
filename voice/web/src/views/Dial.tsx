import {useEffect, useRef} from 'preact/hooks';
import {useApp} from './parts.tsx';
import {cellsOf} from './sigil.tsx';

/** Dial is a picture of who is around, north up. It is an image: the list is its text. */
export function Dial() {
  const app = useApp();
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const c = ref.current, d = c?.getContext('2d');
    if (!c || !d) return;
    let frame = 0, last = '';
    const draw = (): void => {
      frame = 0;
      paint(c, d);
    };
    // Twice a second, and when the player turns: what moves is asked for, not drawn all the time.
    const look = (): void => {
      const state = `${app.pose.value ? Math.round(app.pose.value.yaw / 3) : ''} ${app.near.value?.people.length} ${[...app.speaking.value].join()} ${c.clientWidth} ${document.documentElement.dataset['theme']} ${Math.floor(performance.now() / 500)}`;
      if (state === last || document.hidden || frame) return;
      last = state;
      frame = requestAnimationFrame(draw);
    };
    const t = setInterval(look, 100);
    look();
    return () => {
      clearInterval(t);
      cancelAnimationFrame(frame);
    };
    function paint(canvas: HTMLCanvasElement, g: CanvasRenderingContext2D): void {
      const w = canvas.clientWidth, h = canvas.clientHeight, scale = devicePixelRatio || 1;
      if (w === 0) return;
      if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) {
        canvas.width = Math.round(w * scale);
        canvas.height = Math.round(h * scale);
      }
      g.setTransform(scale, 0, 0, scale, 0, 0);
      const style = getComputedStyle(canvas), token = (name: string): string => style.getPropertyValue(name).trim();
      const range = app.session.value?.range ?? 48, pose = app.pose.value;
      const cx = w / 2, cy = h / 2, radius = Math.min(w, h) / 2 - 24, unit = radius / Math.max(1, range);
      // Ground in squares of sixteen blocks that move under the player.
      const cell = 16 * unit, ox = pose ? -(((pose.x % 32) + 32) % 32) * unit : 0, oz = pose ? -(((pose.z % 32) + 32) % 32) * unit : 0;
      g.fillStyle = token('--land');
      g.fillRect(0, 0, w, h);
      g.fillStyle = token('--land2');
      const from = -Math.ceil(Math.max(w, h) / cell / 2 + 3);
      for (let x = from; x < -from; x++) for (let y = from; y < -from; y++) {
        if ((x + y) % 2 === 0) g.fillRect(cx + ox + x * cell, cy + oz + y * cell, cell, cell);
      }
      g.beginPath();
      g.arc(cx, cy, radius, 0, 2 * Math.PI);
      g.globalAlpha = 0.35;
      g.fillStyle = token('--voice-bg');
      g.fill();
      g.globalAlpha = 1;
      g.strokeStyle = token('--edge');
      g.lineWidth = 2;
      g.stroke();
      if (app.ranges.value.whisper) {
        g.setLineDash([3, 5]);
        g.beginPath();
        g.arc(cx, cy, radius / 2, 0, 2 * Math.PI);
        g.stroke();
        g.setLineDash([]);
      }
      const taken: [number, number, number, number][] = [[cx - 14, cy - 14, cx + 14, cy + 14]];
      const people = (app.near.value?.people ?? [])
        .map((p) => ({...p, x: cx + p.dx * unit, y: cy + p.dz * unit, speaks: app.speaking.value.has(p.id), name: app.nameOf(p.id)}))
        .filter((p) => p.x > 12 && p.x < w - 12 && p.y > 12 && p.y < h - 12)
        .sort((a, b) => Number(b.speaks) - Number(a.speaks));
      for (const p of people) {
        const size = p.speaks ? 24 : 18, {path, back, front} = cellsOf(p.id);
        taken.push([p.x - size / 2, p.y - size / 2, p.x + size / 2, p.y + size / 2]);
        if (p.speaks) {
          g.fillStyle = token('--voice');
          g.fillRect(p.x - size / 2 - 4, p.y - size / 2 - 4, size + 8, size + 8);
          g.fillStyle = token('--surface');
          g.fillRect(p.x - size / 2 - 2, p.y - size / 2 - 2, size + 4, size + 4);
        }
        g.save();
        g.translate(p.x - size / 2, p.y - size / 2);
        g.scale(size / 7, size / 7);
        g.fillStyle = back;
        g.fillRect(0, 0, 7, 7);
        g.fillStyle = front;
        g.fill(new Path2D(path));
        g.restore();
      }
      // Labels try below, above, right and left; one that fits nowhere is dropped: the list has it.
      g.font = '700 13px system-ui, sans-serif';
      for (const p of people) {
        const half = g.measureText(p.name).width / 2 + 3, size = p.speaks ? 18 : 11;
        const places: [number, number][] = [[p.x, p.y + size + 14], [p.x, p.y - size - 6], [p.x + size + half, p.y + 5], [p.x - size - half, p.y + 5]];
        const at = places.find(([x, y]) => {
          const box: [number, number, number, number] = [x - half, y - 13, x + half, y + 4];
          return box[0] > 2 && box[2] < w - 2 && box[1] > 2 && box[3] < h - 2 && !taken.some((t) => box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1]);
        });
        if (!at) continue;
        taken.push([at[0] - half, at[1] - 13, at[0] + half, at[1] + 4]);
        g.textAlign = 'center';
        g.lineWidth = 3;
        g.strokeStyle = token('--bg');
        g.strokeText(p.name, at[0], at[1]);
        g.fillStyle = token('--text');
        g.fillText(p.name, at[0], at[1]);
      }
      g.font = '12px system-ui, sans-serif';
      g.fillStyle = token('--dim');
      g.textAlign = 'end';
      g.fillText(app.t('main.dial.range', {n: range}), w - 10, h - 10);
      if (app.ranges.value.whisper) g.fillText(app.t('main.dial.whisper', {n: Math.round(range / 2)}), w - 10, h - 26);
      g.save();
      g.translate(cx, cy);
      g.rotate((((pose?.yaw ?? 180) + 180) * Math.PI) / 180);
      const arrow = new Path2D('M0,-14L11,11L0,5L-11,11z');
      g.fillStyle = token('--accent');
      g.strokeStyle = token('--ink');
      g.lineWidth = 2;
      g.fill(arrow);
      g.stroke(arrow);
      g.restore();
    }
  }, []);
  return <canvas ref={ref} class="dial" role="img" aria-label={app.t('main.dial')} dir="ltr" />;
}
