import type {Changes, Roster, State} from './line.ts';

/** Roll is the roster of roster 2, of which a server sends what changes. */
export class Roll {
  private at: string | null = null;
  private readonly people = new Map<string, State>();

  /** apply gives the roster that the changes lead to; null where they are to another one, and a whole one has to come. */
  apply(c: Changes): Roster | null {
    if (c.from === null) this.people.clear();
    else if (c.from !== this.at) return null;
    this.at = c.to;
    for (const id of c.gone) this.people.delete(id);
    for (const p of c.put) this.people.set(p.id, p);
    const people = [...this.people.values()];
    const ids = (of: (p: State) => boolean): string[] => people.filter(of).map((p) => p.id);
    return {
      line: 'roster', status: true, people: people.map(({id, name}) => ({id, name})), deafened: ids((p) => p.deafened),
      whispering: ids((p) => p.tier === 'whisper'), shouting: ids((p) => p.tier === 'shout'),
    };
  }
}
