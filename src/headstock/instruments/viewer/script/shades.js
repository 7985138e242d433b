/* From weights to colours, which are read off the page so that they follow light and dark. */
function shadesOf(root, state) {
  const colours = {};
  const channels = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const readColours = () => {
    for (const name of ["ground", "ink", "muted", "rule", "cell", "claim", "warn"]) colours[name] = channels(`--${name}`);
    const cell = hex(colours.cell), table = new Uint32Array(511);
    for (const [name, sign] of [["--more", 1], ["--less", -1]]) {
      const full = channels(name).split(/\s+/).map(Number);
      for (let step = 0; step <= 255; step++) {
        const [r, g, b] = cell.map((from, i) => Math.round(from + (full[i] - from) * step / 255));
        table[255 + sign * step] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
      }
    }
    const [r, g, b] = hex(NO_NUMBER);
    colours.table = table;
    colours.none = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  };
  const shadeOf = (w, most) => {  // −1 to 1
    const x = most > 0 ? Math.min(1, Math.abs(w) / most) : 0;
    const size = state.shade === "linear" ? x : state.shade === "sqrt" ? Math.sqrt(x) : x > 0 ? Math.max(0, 1 + Math.log10(x) / DECADES) : 0;
    return w < 0 ? -size : size;
  };
  const weightAt = (shade, most) => {  // the other way round
    const x = Math.abs(shade), size = state.shade === "linear" ? x : state.shade === "sqrt" ? x * x : x > 0 ? 10 ** (DECADES * (x - 1)) : 0;
    return Math.sign(shade) * size * most;
  };
  const pixel = (w, most) => Number.isNaN(w) ? colours.none : colours.table[255 + Math.round(255 * shadeOf(w, most))];
  return { colours, readColours, shadeOf, weightAt, pixel };
}
