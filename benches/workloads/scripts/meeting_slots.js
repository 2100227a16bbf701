// Finds free meeting slots in working hours, in UTC.
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

function workday(day, { opens, closes }) {
  const weekday = new Date(day).getUTCDay();
  return weekday === 0 || weekday === 6 ? null : { start: day + opens * 60 * MINUTE, end: day + closes * 60 * MINUTE };
}

export default {
  async run({ from, days, minutes, hours, busy }) {
    const taken = busy
      .map(([start, end]) => ({ start: Date.parse(start), end: Date.parse(end) }))
      .sort((a, b) => a.start - b.start);
    const first = new Date(from);
    const midnight = Date.UTC(first.getUTCFullYear(), first.getUTCMonth(), first.getUTCDate());
    const slots = [];
    for (let day = 0; day < days; day++) {
      const open = workday(midnight + day * DAY, hours);
      if (open === null) continue;
      let free = open.start;
      for (const { start, end } of [...taken, { start: open.end, end: open.end }]) {
        if (end <= free || start > open.end) continue;
        if (start - free >= minutes * MINUTE) {
          slots.push({ start: new Date(free).toISOString(), minutes: (start - free) / MINUTE });
        }
        free = Math.max(free, end);
      }
    }
    return slots;
  },
};
