/**
 * Inner join of `left` with `right`, whose keys are unique.
 *
 * @returns {{joined: {left: object, right: object}[], unmatched: object[]}}
 */
export function joinBy(left, leftKey, right, rightKey) {
  const index = new Map(right.map((record) => [record[rightKey], record]));
  const joined = [];
  const unmatched = [];
  for (const record of left) {
    const match = index.get(record[leftKey]);
    if (match === undefined) {
      unmatched.push(record);
    } else {
      joined.push({ left: record, right: match });
    }
  }
  return { joined, unmatched };
}
