// A made-up evening: six people near, a group, an invitation, speakers, and two who speak.
const id = (n) => `a1b2c3d4-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
const b64 = (s) => Buffer.from(s).toString('base64');

export const me = id(1);
const names = {1: 'Ash_Weaver', 2: 'Mira_Stone', 3: 'oakwright', 4: 'Bo', 5: 'TheLongestName16', 6: 'Kestrel_9', 7: '.PocketPenny', 8: 'Juniper', 9: 'FarAway_01', 10: 'Nether_Nora'};
const near = [[2, -4, 0, 4], [3, -14, 1, -1], [4, 2, 0, -21], [5, 12, 3, 30], [6, 25, -2, -33], [7, 45, 0, 9], [9, 60, 8, 70]];
const turn = -10;

/** frames are 20 ms of Opus, made by the page's own browser beforehand; see check.mjs. */
export function scene({mute = false, speak = true, frames = [], admin = true, invite = true} = {}) {
  const made = {
    me,
    connected(ws) {
      made.ws = ws;
      const roster = Object.entries(names).map(([n, name]) => `${id(Number(n))} ${name}\n`).join('') +
        `SSVC_DEAFENED_V1 ${id(7)}\nSSVC_WHISPERING_V1 ${id(3)}\nSSVC_SHOUTING_V1 \n`;
      ws.send(roster);
      ws.send(`SSVC_NEAR_V1\n${near.map(([n, x, y, z]) => `${id(n)} ${x} ${y} ${z}\n`).join('')}`);
      ws.send(`SSVC_POSE_V1 ${turn}.00 100.00 64.00 -20.00 ${b64('overworld')}`);
      ws.send(`SSVC_GROUPS_V1\nC 1 1 ${admin ? 1 : 0} 1\n${invite ? `I ${id(101)} ${id(4)} 58\n` : ''}G ${id(100)} NORMAL 0 0 ${id(1)} ${b64('Miners')}\nG ${id(101)} OPEN 1 0 ${id(4)} ${b64('Night shift')}\nM ${id(100)} ${id(1)}\nM ${id(100)} ${id(8)}\nM ${id(101)} ${id(4)}\n`);
      ws.send(`SSVC_SPEAKERS_V1\n${id(200)} ${b64('Town square')}\n${id(201)} ${b64('Jukebox')}\n`);
      ws.send('SSVC_RANGES_V1 1 1');
      ws.send(`SSVC_RIGHTS_V1 ${speak ? 1 : 0} 1 1`);
      ws.send(mute ? `SSVC_MUTE_V1 1 272 ${b64('music')}` : 'SSVC_MUTE_V1 0 - -');
      let n = 0;
      const talk = setInterval(() => {
        for (const [who, stream] of [[2, 11n], [3, 12n]]) {
          const opus = frames[n % frames.length];
          if (!opus) continue;
          const at = near.find(([k]) => k === who);
          const b = Buffer.alloc(42 + opus.length);
          Buffer.from(id(who).replaceAll('-', ''), 'hex').copy(b, 1);
          b[17] = 200;
          b.writeFloatBE(at[1], 18);
          b.writeFloatBE(at[3], 22);
          b.writeBigInt64BE(stream, 26);
          b.writeBigInt64BE(BigInt(n), 34);
          b.set(opus, 42);
          ws.send(b);
        }
        n++;
      }, 20);
      ws.on('message', (data, binary) => {
        if (binary) return void made.received++;
        const text = String(data);
        made.lines.push(text);
        const beat = /^SSVC_BEAT_V1:(\d+)$/.exec(text);
        if (beat && !made.deafToBeats) setTimeout(() => ws.send(`SSVC_BEAT_V1 ${beat[1]} ${made.received}`), 38);
        const group = /^SSVC_GROUP_V1:(\w+)/.exec(text);
        if (group) ws.send(`SSVC_GROUP_RESULT_V1 ${group[1]} ${group[1] === 'JOIN' ? 'WRONG_PASSWORD' : 'OK'}`);
      });
      ws.on('close', (code) => {
        clearInterval(talk);
        made.closes.push(code);
      });
    },
    received: 0, lines: [], closes: [], deafToBeats: false, ws: null,
  };
  return made;
}
