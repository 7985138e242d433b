/* All heads, small: a layer a row, each a button that opens its map. */
function overviewOf({ meta, T, labels, layers, state, weightOf, pixel, largestOfAll }, select) {
  const S = Math.min(T, 64), cells = [];
  let small = null;
  const overview = make("div", { class: "hs-overview" });
  const buildOverview = () => {
    const across = Math.max(...layers.map((heads) => heads.length));
    const table = make("div", { class: "hs-heads", role: "grid", "aria-label": "All heads, a layer a row: arrow keys move, Enter opens" });
    table.style.setProperty("--n", across);
    table.append(make("span", { class: "hs-corner", "aria-hidden": "true" }, "layer"));
    for (let head = 0; head < across; head++) table.append(make("span", { class: "hs-name", "aria-hidden": "true" }, (head ? "" : across < 10 ? "head " : "") + head));
    layers.forEach((heads, layer) => {
      const row = make("div", { class: "hs-row", role: "row" });
      row.append(make("span", { class: "hs-name", "aria-hidden": "true" }, String(layer)));
      cells.push(heads.map((one, head) => {
        const picture = make("canvas", { width: S, height: S });
        const made = make("button", { type: "button", role: "gridcell", tabIndex: -1, "aria-label": headSays(layer, head) }, picture);
        made.addEventListener("click", () => select(layer, head));
        row.append(made);
        return made;
      }));
      table.append(row);
    });
    table.addEventListener("keydown", (event) => {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -across], End: [0, across] };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      const layer = Math.min(layers.length - 1, Math.max(0, state.layer + move[0]));
      select(layer, Math.min(layers[layer].length - 1, Math.max(0, state.head + move[1])));
      cells[state.layer][state.head].focus({ preventScroll: true });
    });
    overview.append(table, make("p", { class: "hs-note" }, S < T
      ? `Each small picture is a head: queries down, keys across, the largest weight of some ${Math.ceil(T / S)} × ${Math.ceil(T / S)} cells. Choose one to open it.`
      : "Each small picture is a head: queries down, keys across. Choose one to open it."));
  };
  const headSays = (layer, head) => `layer ${layer}, head ${head}: ${headFacts(layer, head)}`;
  const signedMaps = meta.maps.some((kind) => kind.some((layer) => layer.some((one) => one[2])));
  const headFacts = (layer, head) => {
    const found = meta.heads[layer]?.[head];
    if (!found || found[5] < 0) return "one token alone";
    const [spread, first, previous, negative, largest, q, k] = found;
    return `spread over ${three(spread)} tokens; on the first ${three(first)}, on the one before ${three(previous)}` +
      (signedMaps ? `, negative ${three(negative)}` : "") + `; the largest ${three(largest)}, ${q} “${labels[q]}” to ${k} “${labels[k]}”`;
  };
  const drawOverview = () => {
    if (!small) return;
    const image = new ImageData(S, S), pixels = new Uint32Array(image.data.buffer), size = S * S, most = largestOfAll(state.kind);
    let at = meta.maps.slice(0, state.kind).reduce((sum, kind) => sum + kind.flat().length, 0) * size;
    layers.forEach((heads, layer) => heads.forEach((_, head) => {
      const one = meta.maps[state.kind][layer][head], table = weightOf(one, 1), upto = state.upto === "all" ? most : one[0];
      const shades = Uint32Array.from(table, (w) => pixel(w, upto));
      for (let i = 0; i < size; i++) {
        const q = Math.floor(i / S), k = i % S;
        pixels[i] = one[1] && k > q ? 0 : shades[small[at + i]];
      }
      at += size;
      cells[layer][head].firstChild.getContext("2d").putImageData(image, 0, 0);
    }));
  };
  const markOverview = () => cells.forEach((row, layer) => row.forEach((cell, head) => {
    const here = layer === state.layer, it = here && head === state.head;
    cell.setAttribute("aria-selected", String(it));
    cell.classList.toggle("hs-among", here && state.what !== "head");
    cell.tabIndex = it ? 0 : -1;
  }));
  const takeSmall = (bytes) => { small = bytes; drawOverview(); };
  buildOverview();
  markOverview();
  return { overview, drawOverview, markOverview, headFacts, takeSmall };
}
