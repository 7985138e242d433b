/* The weights of a view, unpacked when they are asked for: what each code stands for, and grids of them, q * T + k. */
const unpacked = async (letters) => {
  const raw = atob(letters), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

function weightsOf(root, meta) {
  const T = meta.labels.length;
  const weightOf = (one, width) => {  // the weight that each code stands for
    const n = meta.levels[width - 1][+one[2]], zero = one[2] ? n : 0, made = new Float32Array(width === 1 ? 256 : 65536);
    for (let code = 0; code < made.length - 1; code++) { const x = (code - zero) / n; made[code] = one[0] * x * Math.abs(x); }
    made[made.length - 1] = NaN;
    return made;
  };
  const errorAt = (w, one) => {  // how far the true weight may lie from the one shown
    if (!one[0]) return 0;
    const step = 0.5 / meta.levels[meta.width - 1][+one[2]];
    return one[0] * (2 * Math.sqrt(Math.min(1, Math.abs(w) / one[0])) * step + step * step);
  };
  const cache = new Map();
  const ready = new Promise((done) => {
    if (document.readyState !== "loading") done(); else document.addEventListener("DOMContentLoaded", done, { once: true });
  });
  const codesOf = (kind, layer, head) => {
    const name = `${kind}.${layer}.${head}`;
    if (!cache.has(name)) {
      const read = async () => {
        let holder = root.querySelector(`script[data-map="${name}"]`);
        if (!holder?.nextElementSibling) { await ready; holder = root.querySelector(`script[data-map="${name}"]`); }  // still being read
        const bytes = await unpacked(holder.textContent);
        if (meta.width === 1) return bytes;
        const half = bytes.length / 2, codes = new Uint16Array(half);
        for (let i = 0; i < half; i++) codes[i] = bytes[i] << 8 | bytes[half + i];
        return codes;
      };
      cache.set(name, read());
      if (cache.size > KEPT) cache.delete(cache.keys().next().value);
    }
    return cache.get(name);
  };
  const gridOf = async (kind, layer, head) => {
    const one = meta.maps[kind][layer][head], codes = await codesOf(kind, layer, head), table = weightOf(one, meta.width);
    const grid = new Float32Array(T * T);
    let at = 0;
    for (let q = 0; q < T; q++) for (let k = 0, end = one[1] ? q + 1 : T; k < end; k++) grid[q * T + k] = table[codes[at++]];
    return grid;
  };
  /* what is drawn now: its grid, whether only a triangle of it means anything, its largest weights */
  const chosen = async ({ kind, layer, head, what }) => {
    const maps = meta.maps[kind][layer];
    if (what === "head") {
      const grid = await gridOf(kind, layer, head), one = maps[head];
      const pair = meta.kinds.length > 1 && kind === 0 ? await Promise.all([1, 2].map((other) => gridOf(other, layer, head))) : null;
      return measured({ grid, triangle: one[1], error: (w) => errorAt(w, one), pair });
    }
    const grid = new Float32Array(T * T), bound = (w) => Math.max(...maps.map((one) => errorAt(what === "mean" ? one[0] : w, one)));
    for (let other = 0; other < maps.length; other++) {
      const next = await gridOf(kind, layer, other);
      if (what === "mean") for (let i = 0; i < grid.length; i++) grid[i] += next[i] / maps.length;
      else for (let i = 0; i < grid.length; i++) if (!(Math.abs(next[i]) <= Math.abs(grid[i]))) grid[i] = next[i];
    }
    return measured({ grid, triangle: maps.every((one) => one[1]), error: bound, pair: null });
  };
  const measured = (now) => {
    now.rows = new Float32Array(T);
    now.signed = false;
    for (let q = 0; q < T; q++) for (let k = 0; k < T; k++) {
      const w = now.grid[q * T + k];
      if (w < 0) now.signed = true;
      if (Math.abs(w) > now.rows[q]) now.rows[q] = Math.abs(w);
    }
    now.largest = now.rows.reduce((a, b) => Math.max(a, b), 0);
    return now;
  };
  const largestOfAll = (kind) => Math.max(...meta.maps[kind].flat().map((one) => one[0]));
  return { weightOf, errorAt, chosen, largestOfAll };
}
