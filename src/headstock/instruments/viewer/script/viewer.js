/* Serves the elements of class hs-maps that none has served yet, keeps to them, and asks nothing of any network. The
   parts are put together here: what is chosen, pointed at and kept. q is a query, k a key. */
for (const root of document.querySelectorAll(".hs-maps:not([data-open])")) {
  root.dataset.open = "";
  try { open(root); } catch (error) { root.dataset.failed = String(error); throw error; }
}

function open(root) {
  const meta = JSON.parse(root.querySelector(".hs-meta").textContent), stage = root.querySelector(".hs-stage");
  const T = meta.labels.length, labels = meta.labels.map(spelt), layers = meta.maps[0];
  const state = { layer: 0, head: 0, kind: 0, what: "head", shade: "sqrt", upto: "map", q: T - 1, k: 0, locked: false, zoom: 0 };
  const weights = weightsOf(root, meta), shades = shadesOf(root, state);
  const view = { root, meta, T, labels, layers, state, now: null, ...weights, ...shades };  // now: the grid that is drawn
  view.reference = (q) => state.upto === "row" ? view.now.rows[q] : state.upto === "all" ? weights.largestOfAll(state.kind) : view.now.largest;
  const hasMaps = layers.length > 0 && layers[0].length > 0, canUnpack = typeof DecompressionStream === "function";
  const whole = hasMaps && meta.whole && canUnpack;
  const readout = make("p", { class: "hs-readout", role: "status" }), expects = make("div", { class: "hs-expects" });
  const name = make("h4"), facts = make("p", { class: "hs-note hs-head-facts" });

  /* ---- pointing and keeping ---- */
  const say = () => {
    const { q, k } = state, now = view.now;
    if (!now) { readout.textContent = ""; return; }
    const at = `query ${q} “${labels[q]}” → key ${k} “${labels[k]}”`;
    if (now.triangle && k > q) { readout.textContent = `${at}: later than the query, so hidden`; return; }
    const w = now.grid[q * T + k];
    let of = "";
    if (now.pair) {
      const row = meta.shares[state.layer]?.[state.head] ?? [], by = row.length > 1 ? row[q] : row[0];
      const [one, two] = now.pair.map((grid, i) => written(grid[q * T + k], weights.errorAt(grid[q * T + k], meta.maps[i + 1][state.layer][state.head])));
      of = ` = ${one} − ${by === undefined || by === null ? "λ" : minus(String(+by.toPrecision(3)))} × ${two}`;
    }
    readout.textContent = `${at}: ${written(w, now.error(w))}${of}`;
  };
  const showExpected = () => {
    if (!meta.predictions.length) return;
    const { q } = state, [top, p, rank] = meta.predictions[q], next = q + 1 < T ? labels[q + 1] : null;
    expects.replaceChildren(
      make("h4", {}, `After ${q} “${labels[q]}” it predicts →`),
      bars(top, next),
      make("p", { class: `hs-note ${rank === 1 ? "hs-good" : rank ? "hs-bad" : ""}` }, next === null ? "The text ends here." : `Then comes “${next}”, probability ${share(p)}: ${mark(rank)}.`));
  };
  let waiting = 0, lastQ = -1;
  const point = (q, k) => {
    state.q = Math.max(0, Math.min(T - 1, q));
    state.k = Math.max(0, Math.min(T - 1, k));
    if (waiting) return;
    waiting = setTimeout(() => {  // once for all that happens meanwhile; not by frames, of which a hidden page has none
      waiting = 0;
      say();
      if (whole) map.drawOver();
      if (state.q !== lastQ) { lastQ = state.q; text.shadeText(); showExpected(); }
    }, 0);
  };
  const again = () => { lastQ = -1; point(state.q, state.k); };
  const strongest = (q) => {  // the key that a query looks at most
    let k = 0;
    if (view.now) for (let other = 1; other < T; other++) if (Math.abs(view.now.grid[q * T + other]) > Math.abs(view.now.grid[q * T + k])) k = other;
    return k;
  };
  const goTo = (q, k) => {
    point(q, k);
    if (whole) map.bringIntoSight();
    text.followText();
  };
  const unlock = () => { state.locked = false; again(); };
  const lock = (q, k = strongest(q)) => {
    if (state.locked && state.q === q) { unlock(); return; }
    state.locked = true;
    goTo(q, k);
    again();
  };
  const move = (down, across) => {  // by keys: up along the diagonal, for beyond it there is nothing to see
    const q = Math.max(0, Math.min(T - 1, state.q + down)), k = state.k + across;
    goTo(q, down && view.now?.triangle ? Math.min(q, k) : k);
  };

  /* ---- what is shown ---- */
  let asked = 0;
  const show = async () => {
    const turn = ++asked, { layer, head, what, kind } = state, of = kind ? `, ${meta.kinds[kind]}` : "";
    name.textContent = what === "head" ? `Layer ${layer}, head ${head}${of}` : `Layer ${layer}, ${what === "mean" ? "mean" : "largest"} of its ${layers[layer].length} heads${of}`;
    facts.textContent = what === "head" ? `Mean over queries: ${overview.headFacts(layer, head)}.` : what === "mean" ? "The mean weight of each cell." : "Of each cell the weight largest by size.";
    if (!whole) return;
    map.frame.setAttribute("aria-label", `${name.textContent}: queries down, keys across. Arrow keys move, Enter keeps the row, plus and minus zoom.`);
    map.frame.setAttribute("aria-busy", "true");
    const found = await weights.chosen(state), first = !view.now;
    if (turn !== asked) return;  // another was asked for meanwhile
    view.now = found;
    if (first) state.k = strongest(state.q);
    map.draw();
    again();
    map.frame.removeAttribute("aria-busy");
    root.dataset.shown = `${kind}.${layer}.${what === "head" ? head : what}`;
  };
  const redrawn = () => { overview.drawOverview(); if (whole) map.draw(); again(); };
  const select = (layer, head) => {
    state.layer = layer;
    state.head = head;
    overview.markOverview();
    show();
  };
  const tools = () => {
    const bar = make("div", { class: "hs-tools", role: "toolbar", "aria-label": "How the map is drawn" });
    if (whole && layers.some((heads) => heads.length > 1)) bar.append(choice("Show", state.what,
      [["head", "one head"], ["mean", "mean of the layer"], ["max", "largest of the layer"]],
      (value) => { state.what = value; overview.markOverview(); show(); }));
    if (whole && meta.kinds.length > 1) bar.append(choice("of", "0", meta.kinds.map((text, i) => [String(i), text]),
      (value) => { state.kind = +value; overview.drawOverview(); show(); }));
    bar.append(
      choice("Shade", state.shade, [["sqrt", "by the root"], ["linear", "by the weight"], ["log", `by the logarithm, ${DECADES} decades`]],
        (value) => { state.shade = value; redrawn(); }),
      choice("strongest at", state.upto, [["map", "the map's largest"], ["all", "the largest of all"], ...(whole ? [["row", "each row's largest"]] : [])],
        (value) => { state.upto = value; redrawn(); }));
    if (whole) bar.append(make("span", { class: "hs-zoom", role: "group", "aria-label": "Zoom" }, ...map.zoomButtons));
    return bar;
  };
  const listen = (frame) => {
    frame.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      const [q, k] = map.cellAt(event);
      point(state.locked ? state.q : q, k);
    });
    frame.addEventListener("click", (event) => lock(...map.cellAt(event)));
    frame.addEventListener("keydown", (event) => {
      const far = event.shiftKey ? 16 : 1;
      const moves = { ArrowUp: [-far, 0], ArrowDown: [far, 0], ArrowLeft: [0, -far], ArrowRight: [0, far], Home: [0, -T], End: [0, T], PageUp: [-16, 0], PageDown: [16, 0] };
      if (moves[event.key]) move(...moves[event.key]);
      else if (event.key === "Enter" || event.key === " ") lock(state.q, state.k);
      else if (event.key === "Escape") unlock();
      else if (event.key === "+" || event.key === "=") map.zoom(1);
      else if (event.key === "-") map.zoom(-1);
      else if (event.key === "0") map.zoom(0);
      else return;
      event.preventDefault();
    });
  };

  /* ---- put together ---- */
  root.querySelector(".hs-waiting").remove();
  shades.readColours();
  const map = whole ? mapOf(view, again) : null, overview = hasMaps ? overviewOf(view, select) : null;
  const text = textOf(view, { point, lock, unlock, goTo, strongest });
  const reading = make("div", { class: "hs-reading" }, make("div", {}, text.textBox, text.textSays), ...(meta.predictions.length ? [expects] : []));
  if (hasMaps) {
    const detail = make("div", { class: "hs-detail" }, name, facts, tools());
    if (whole) {
      const says = `Queries down: the token that looks. Keys across: the token looked at.${meta.predictions.length ? " A row's query predicts the token after it." : ""}`;
      detail.append(make("p", { class: "hs-note hs-axes" }, says), map.frame, readout, map.scaleBar);
      listen(map.frame);
    } else if (!canUnpack) detail.append(make("p", { class: "hs-note hs-warn" }, "This browser cannot unpack the maps: it needs DecompressionStream (Chrome 80, Firefox 113, Safari 16.4, or later)."));
    stage.append(make("div", { class: "hs-views" }, overview.overview, detail, reading));
    if (canUnpack) unpacked(meta.small).then((bytes) => { overview.takeSmall(bytes); root.dataset.drawn = ""; });
    show();
  } else stage.append(reading);
  if (meta.predictions.length) stage.append(allExpected(meta, labels, lock));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { shades.readColours(); if (hasMaps) redrawn(); });
  let last = stage.clientWidth;
  if (whole) new ResizeObserver(() => { if (stage.clientWidth !== last) { last = stage.clientWidth; map.draw(); } }).observe(stage);
  again();
  setTimeout(text.followText, 0);
  if (!whole) root.dataset.shown = hasMaps ? "small" : "none";
}
