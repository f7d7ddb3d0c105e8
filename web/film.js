// The records of a run, prepared for drawing at any time.

const PACKET_WORDS = 5;
const UNENDED = 0xffffffff;
/** Fates of packets: the code is the index. */
export const FATES = ["on its way", "delivered", "lost", "dropped by the full queue", "dropped by the queue", "lost in an outage", "longer than the MTU", "damaged"];
/** Causes that block a sender: the code is the index. */
export const CAUSES = ["", "peer’s window full", "send buffer full", "scheduler waits", "every cwnd full", "no subflow alive"];
const SCHEDULER_WAITS = 3;

/** Returns the index of the last record that begins at or before `at`; -1 if there is none. */
function lastBefore(words, size, at) {
  let low = 0;
  let high = words.length / size;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle * size] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A run of one row. Times are in microseconds from the start of the measured part. */
export class Film {
  constructor(row, { about, packets, receiver, samples, blocked }) {
    Object.assign(this, { row, about, packets, receiver, samples, blocked });
    this.begin = Math.floor(about.begin_ms * 1000);
    this.length = Math.max(1, Math.ceil(about.end_ms * 1000) - this.begin);
    this.count = packets.length / PACKET_WORDS;
    this.longest = 0;
    for (let at = 0; at < packets.length; at += PACKET_WORDS) {
      if (packets[at + 1] !== UNENDED) this.longest = Math.max(this.longest, packets[at + 1] - packets[at]);
    }
    this.readable = receiver.length > 0 ? receiver[receiver.length - 2] : 0;
    this.mostHeld = 0;
    this.finished = this.length;
    for (let at = 0; at < receiver.length; at += 3) this.mostHeld = Math.max(this.mostHeld, receiver[at + 2]);
    for (let at = receiver.length - 3; at >= 0 && receiver[at + 1] === this.readable; at -= 3) {
      this.finished = receiver[at] - this.begin;
    }
  }

  /** Returns readable and held bytes. */
  received(time) {
    const at = lastBefore(this.receiver, 3, time + this.begin) * 3;
    return at < 0 ? [0, 0] : [this.receiver[at + 1], this.receiver[at + 2]];
  }

  /** Returns queue, congestion window and data in flight of a path. */
  sample(time, path) {
    const size = 1 + 3 * this.about.paths.length;
    const at = lastBefore(this.samples, size, time + this.begin) * size;
    return at < 0 ? [0, 0, 0] : this.samples.subarray(at + 1 + 3 * path, at + 4 + 3 * path);
  }

  /** Returns the code of the cause that blocks the sender. */
  cause(time) {
    const at = lastBefore(this.blocked, 2, time + this.begin) * 2;
    return at < 0 ? 0 : this.blocked[at + 1];
  }

  waits(time) {
    return this.cause(time) === SCHEDULER_WAITS;
  }

  /** Calls `see` for each packet on its way at `time` or ended at most `after` before. */
  each(time, after, see) {
    const now = time + this.begin;
    const { packets } = this;
    const from = lastBefore(packets, PACKET_WORDS, now - this.longest - after - 1);
    const packet = { sent: 0, end: 0, start: 0, len: 0, path: 0, data: false, carry: 0, fate: 0 };
    for (let at = Math.max(0, from) * PACKET_WORDS; at < packets.length && packets[at] <= now; at += PACKET_WORDS) {
      const end = packets[at + 1];
      if (end !== UNENDED && end + after < now) continue;
      const flags = packets[at + 4];
      packet.sent = packets[at] - this.begin;
      packet.end = end === UNENDED ? Infinity : end - this.begin;
      packet.start = packets[at + 2];
      packet.len = packets[at + 3];
      packet.path = flags & 15;
      packet.data = (flags & 16) !== 0;
      packet.carry = (flags >> 5) & 7;
      packet.fate = (flags >> 8) & 15;
      see(packet);
    }
  }

  /** Returns the shortest time on each path: of data in the first half, of acknowledgements in the second. */
  shortest() {
    const paths = this.about.paths.length;
    const least = new Array(2 * paths).fill(Infinity);
    for (let at = 0; at < this.packets.length; at += PACKET_WORDS) {
      const flags = this.packets[at + 4];
      if (((flags >> 8) & 15) !== 1) continue;
      const slot = (flags & 15) + (flags & 16 ? 0 : paths);
      least[slot] = Math.min(least[slot], this.packets[at + 1] - this.packets[at]);
    }
    return least;
  }
}

/** All runs of a comparison, with the scales that they share. */
export class Reel {
  /** `shown` are the runs with lanes. The race lasts until they have ended. */
  constructor(films, shown) {
    this.films = films;
    this.paths = films[0].about.paths;
    const fastest = Math.min(...films.map((film) => film.length));
    this.length = Math.max(fastest, ...shown.map((film) => film.length));
    this.readable = Math.max(1, ...films.map((film) => film.readable));
    this.mostHeld = Math.max(1, ...shown.map((film) => film.mostHeld));
    const least = films.map((film) => film.shortest());
    this.wire = least[0].map((_, slot) => {
      const time = Math.min(...least.map((list) => list[slot]));
      return Number.isFinite(time) ? Math.max(1, time) : 1;
    });
    const done = shown.filter((film) => film.about.complete);
    const times = done.map((film) => film.finished).sort((a, b) => a - b);
    this.places = new Map(done.map((film) => [film, times.indexOf(film.finished) + 1]));
  }
}
