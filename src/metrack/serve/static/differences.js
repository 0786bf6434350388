// What two texts have and the other has not, word by word.

const MOST = 400; // words of a text that are compared; the time grows with the square

const words = (text) => text.match(/\s+|[^\s\p{P}]+|\p{P}/gu) ?? [];

// Parts of both texts: what they share, in order (the longest common subsequence), and what not.
export function differences(a, b) {
  const [x, z] = [words(a), words(b)];
  if (x.length > MOST || z.length > MOST) return [[{ text: a, same: true }], [{ text: b, same: true }]];
  const table = Array.from({ length: x.length + 1 }, () => new Uint16Array(z.length + 1));
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = z.length - 1; j >= 0; j -= 1) {
      const same = x[i].toLowerCase() === z[j].toLowerCase();
      table[i][j] = same ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const parts = [[], []];
  let i = 0, j = 0;
  while (i < x.length || j < z.length) {
    if (i < x.length && j < z.length && x[i].toLowerCase() === z[j].toLowerCase()) {
      parts[0].push({ text: x[i], same: true });
      parts[1].push({ text: z[j], same: true });
      i += 1; j += 1;
    } else if (j === z.length || (i < x.length && table[i + 1][j] >= table[i][j + 1])) {
      parts[0].push({ text: x[i], same: false });
      i += 1;
    } else {
      parts[1].push({ text: z[j], same: false });
      j += 1;
    }
  }
  return parts;
}
