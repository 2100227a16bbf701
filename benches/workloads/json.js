// JSON over documents of about 1 kB, as a tool's answers are: 1,000 operations a call, over 50 different documents.
const OPERATIONS = 1_000;
const DOCUMENTS = Array.from({ length: 50 }, (_, i) => ({
  id: 100_000 + i * 7,
  url: `https://tracker.example/projects/${i % 5}/issues/${i}`,
  title: `Crash when "settings" are saved, number ${i}`,
  // One in five have text outside Latin-1, which engines store in another way.
  body: `Steps:\n1. open the page\n2. press ${i % 5 === 0 ? "“save”" : "[save]"} ${i} times\n\nIt should save; it shows a blank page instead. `.repeat(3),
  assignees: [{ login: `user-${i % 6}`, id: 4_000 + (i % 6) }],
  state: i % 3 === 0 ? "closed" : "open",
  locked: i % 7 === 0,
  author: { login: `user-${i % 11}`, id: 4_000 + (i % 11), admin: false, avatar: null },
  labels: ["bug", "page", "needs-triage"].map((name, n) => ({ name, color: `0${n}f${i % 10}a2`, default: n === 0 })),
  scores: [i / 8, -i, 1.5 + i, i * 1e-3, 3.25e6, 0],
  created_at: `2026-10-${String(1 + (i % 28)).padStart(2, "0")}T08:15:30Z`,
  comments: [
    { by: `user-${i % 3}`, text: "I see this too, with version 4.2", likes: i % 4 },
    { by: `user-${i % 4}`, text: "A fix is on its way: see the branch fix/blank-page.", likes: 12 },
  ],
}));
const TEXTS = DOCUMENTS.map((document) => JSON.stringify(document));

const PROGRAMS = {
  parse() {
    let sum = 0;
    for (let i = 0; i < OPERATIONS; i++) sum += JSON.parse(TEXTS[i % TEXTS.length]).scores[1];
    return sum;
  },
  stringify() {
    let length = 0;
    for (let i = 0; i < OPERATIONS; i++) length += JSON.stringify(DOCUMENTS[i % DOCUMENTS.length]).length;
    return length;
  },
  // What a call costs without work; the others' times are taken over it.
  nothing: () => 0,
};

export default {
  async run(name) {
    if (!Object.hasOwn(PROGRAMS, name)) throw new RangeError(`no program named ${name}`);
    return PROGRAMS[name]();
  },
};
