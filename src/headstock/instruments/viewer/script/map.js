/* One map, large: cells, axes that stay while it scrolls, what is pointed at, and the scale of its shades. */
function mapOf(view, zoomed) {
  const { meta, T, labels, state, colours, shadeOf, weightAt, pixel } = view;
  const frame = make("div", { class: "hs-window", tabindex: "0", role: "application" });
  const sheet = make("div", { class: "hs-sheet" }), base = make("canvas"), over = make("canvas");
  const scaleBar = make("div", { class: "hs-scale-bar", role: "img" });
  const ratio = () => window.devicePixelRatio || 1;
  let cell = 1, left = 40, top_ = 26, right = 0, width = 0, height = 0;
  const steps = [2, 3, 4, 6, 8, 12, 16, 24];
  const font = "11px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif";
  const upright = labels.every((label) => [...label].length < 2);  // single letters need not be laid on their side
  const longest = (texts) => { const pen = base.getContext("2d"); pen.font = font; return Math.max(...texts.map((text) => pen.measureText(text).width)); };
  const arranged = () => {
    width = frame.clientWidth;
    if (!width) return false;
    const tall = Math.max(260, Math.min(640, window.innerHeight ? window.innerHeight * 0.85 : 640));
    const fit = (lettered) => {
      const widest = lettered ? Math.ceil(longest(labels.map(short))) + 8 : 0;
      const margins = lettered ? { left: Math.max(34, widest), top: upright ? 22 : Math.max(22, widest), right: expectsRight(lettered) } : { left: 40, top: 22, right: 0 };
      const room = Math.min(width - margins.left - margins.right - 2, tall - margins.top);
      const raw = Math.min(MOST_CELL, room / T) * ratio();
      return { ...margins, cell: (raw >= 1 ? Math.floor(raw) : raw) / ratio() };
    };
    const expectsRight = (lettered) => lettered && meta.predictions.length && width > 480 ? 118 : 0;
    let plan = fit(true);
    if (plan.cell < LETTERS_FROM) plan = fit(false);
    const larger = steps.filter((step) => step > plan.cell * 1.2);
    state.zoom = Math.min(state.zoom, larger.length);
    if (state.zoom > 0) {
      plan.cell = larger[state.zoom - 1];
      if (plan.cell >= LETTERS_FROM) plan = { ...fit(true), cell: plan.cell };
    }
    ({ cell, left, right } = plan);
    top_ = plan.top;
    height = Math.min(tall, top_ + T * cell + 1);
    frame.style.height = `${height}px`;
    sheet.style.width = `${Math.min(left + T * cell + right + 1, Math.max(width, left + T * cell + right + 1))}px`;
    sheet.style.height = `${top_ + T * cell + 1}px`;
    const wide = Math.min(frame.clientWidth, left + T * cell + right + 1), high = Math.min(frame.clientHeight, height);
    for (const canvas of [base, over]) {
      canvas.width = Math.round(wide * ratio());
      canvas.height = Math.round(high * ratio());
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    out.disabled = state.zoom === 0;
    fitted.disabled = state.zoom === 0;
    into.disabled = state.zoom >= larger.length;
    return true;
  };
  const seen = () => {  // the cells in sight
    const wide = base.width / ratio() - left - right, high = base.height / ratio() - top_;
    const q0 = Math.floor(frame.scrollTop / cell), k0 = Math.floor(frame.scrollLeft / cell);
    return { q0, k0, q1: Math.min(T, Math.ceil((frame.scrollTop + high) / cell)), k1: Math.min(T, Math.ceil((frame.scrollLeft + wide) / cell)), wide, high };
  };
  const draw = () => {
    if (!view.now || !arranged()) return;
    redraw();
    drawScale();
  };
  const redraw = () => {
    const pen = base.getContext("2d"), dpr = ratio(), { q0, k0, q1, k1, wide, high } = seen();
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    pen.clearRect(0, 0, base.width, base.height);
    pen.save();
    pen.beginPath();
    pen.rect(left, top_, wide, high);
    pen.clip();
    const scratch = document.createElement("canvas"), put = scratch.getContext("2d");
    if (cell * dpr >= 1) {
      scratch.width = k1 - k0;
      scratch.height = q1 - q0;
      const image = put.createImageData(k1 - k0, q1 - q0), pixels = new Uint32Array(image.data.buffer);
      for (let q = q0, at = 0; q < q1; q++) {
        const most = view.reference(q);
        for (let k = k0; k < k1; k++, at++) pixels[at] = view.now.triangle && k > q ? 0 : pixel(view.now.grid[q * T + k], most);
      }
      put.putImageData(image, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(scratch, left + k0 * cell - frame.scrollLeft, top_ + q0 * cell - frame.scrollTop, (k1 - k0) * cell, (q1 - q0) * cell);
    } else {  // less than a pixel a cell: the largest weight that falls on a pixel is the one that is seen
      const side = Math.max(1, Math.floor(T * cell * dpr)), image = put.createImageData(side, side), pixels = new Uint32Array(image.data.buffer);
      const place = Uint32Array.from({ length: T }, (_, i) => Math.min(side - 1, Math.floor(i * side / T)));
      const best = new Float32Array(side * side).fill(-1);
      for (let q = 0; q < T; q++) {
        const most = view.reference(q), row = place[q] * side;
        for (let k = 0, end = view.now.triangle ? q + 1 : T; k < end; k++) {
          const w = view.now.grid[q * T + k], size = Number.isNaN(w) ? Infinity : Math.abs(shadeOf(w, most)), at = row + place[k];
          if (size > best[at]) { best[at] = size; pixels[at] = pixel(w, most); }
        }
      }
      scratch.width = scratch.height = side;
      put.putImageData(image, 0, 0);
      pen.drawImage(scratch, left, top_, side / dpr, side / dpr);
    }
    pen.restore();
    drawAxes(pen, q0, q1, k0, k1);
    drawOver();
  };
  const drawAxes = (pen, q0, q1, k0, k1) => {
    const lettered = cell >= LETTERS_FROM, every = lettered ? 1 : [1, 2, 5, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096].find((step) => step * cell >= 34) ?? 8192;
    const atX = (k) => left + (k + 0.5) * cell - frame.scrollLeft, atY = (q) => top_ + (q + 0.5) * cell - frame.scrollTop;
    pen.font = font;
    pen.fillStyle = colours.muted;
    pen.textBaseline = "middle";
    for (let q = Math.ceil(q0 / every) * every; q < q1; q += every) {
      if (atY(q) < top_ + 3) continue;
      pen.textAlign = "right";
      pen.fillText(lettered ? short(labels[q]) : String(q), left - 5, atY(q));
      if (!right) continue;
      const [likeliest, , rank] = meta.predictions[q], x = base.width / ratio() - right + 10;
      pen.textAlign = "left";
      pen.fillStyle = rank === null ? colours.muted : rank === 1 ? colours.claim : colours.warn;
      pen.fillText(`${rank === null ? "?" : rank === 1 ? "✓" : "✗"} ${short(spelt(likeliest[0][0]))} ${share(likeliest[0][1])}`, x, atY(q), right - 10);
      pen.fillStyle = colours.muted;
    }
    for (let k = Math.ceil(k0 / every) * every; k < k1; k += every) {
      if (atX(k) < left + 3) continue;
      if (!lettered || upright) { pen.textAlign = "center"; pen.fillText(lettered ? labels[k] : String(k), lettered ? atX(k) : Math.max(left + 8, atX(k)), top_ - 9); continue; }
      pen.save();
      pen.translate(atX(k), top_ - 5);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "left";
      pen.fillText(short(labels[k]), 0, 0);
      pen.restore();
    }
    if (right) {
      pen.textAlign = "left";
      pen.fillStyle = colours.ink;
      pen.fillText("predicts → next", base.width / ratio() - right + 10, top_ - 8);
    }
  };
  const drawOver = () => {
    const pen = over.getContext("2d"), dpr = ratio(), { q, k } = state, wide = base.width / dpr, high = base.height / dpr;
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    pen.clearRect(0, 0, over.width, over.height);
    if (!view.now) return;
    const x = left + k * cell - frame.scrollLeft, y = top_ + q * cell - frame.scrollTop, size = Math.max(cell, 1);
    pen.save();
    pen.beginPath();
    pen.rect(left, top_, wide - left - right, high - top_);
    pen.clip();
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1;
    pen.globalAlpha = state.locked ? 0.9 : 0.45;
    const end = left + T * cell - frame.scrollLeft;
    pen.strokeRect(left - 1, Math.round(y) - 0.5, end - left + 1, Math.max(3, size + 1));
    pen.globalAlpha = 0.45;
    pen.strokeRect(Math.round(x) - 0.5, top_ - 1, Math.max(3, size + 1), T * cell + 2);
    pen.restore();
    pen.font = font;
    pen.textBaseline = "middle";
    const pill = (text, px, py, align) => {
      const w = pen.measureText(text).width + 8, x0 = align === "right" ? px - w : Math.max(0, Math.min(wide - w, px - w / 2));
      pen.fillStyle = colours.ink;
      pen.fillRect(x0, py - 8, w, 16);
      pen.fillStyle = colours.ground;
      pen.textAlign = "left";
      pen.fillText(text, x0 + 4, py);
    };
    if (cell < LETTERS_FROM) {
      if (y + size > top_ && y < high) pill(`${q} ${short(labels[q])}`, Math.max(left - 2, pen.measureText(`${q} ${short(labels[q])}`).width + 8), Math.min(high - 8, y + size / 2), "right");
      if (x + size > left && x < wide) pill(`${k} ${short(labels[k])}`, x + size / 2, top_ - 9, "center");
    }
  };
  const drawScale = () => {
    const most = state.upto === "row" ? null : view.reference(0), from = view.now.signed ? -1 : 0, ends = view.now.signed ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
    const at = (shade) => most === null ? `${three(weightAt(shade, 1))}×` : minus(Math.abs(weightAt(shade, most)) >= 0.001 || !weightAt(shade, most) ? String(+weightAt(shade, most).toPrecision(2)) : weightAt(shade, most).toExponential(0));
    const bar = make("span", { class: view.now.signed ? "hs-ramp hs-both" : "hs-ramp" });
    const marks = make("span", { class: "hs-marks" }, ...ends.map((shade) => make("span", {}, at(shade))));
    scaleBar.replaceChildren(bar, marks);
    scaleBar.setAttribute("aria-label", `Shades from ${at(from)} to ${at(1)}${view.now.signed ? ", blue above 0 and orange below" : ""}${most === null ? " of each row's largest" : ""}`);
  };
  const cellAt = (event) => {
    const box = frame.getBoundingClientRect();
    const k = Math.floor((event.clientX - box.left + frame.scrollLeft - left) / cell), q = Math.floor((event.clientY - box.top + frame.scrollTop - top_) / cell);
    return [Math.max(0, Math.min(T - 1, q)), Math.max(0, Math.min(T - 1, k))];
  };
  const bringIntoSight = () => {
    const wide = base.width / ratio() - left - right, high = base.height / ratio() - top_;
    const into = (at, from, room) => at * cell < from ? at * cell : (at + 1) * cell > from + room ? (at + 1) * cell - room : from;
    frame.scrollTo(into(state.k, frame.scrollLeft, wide), into(state.q, frame.scrollTop, high));
  };
  const zoom = (by) => {
    const across = state.k * cell - frame.scrollLeft, down = state.q * cell - frame.scrollTop;
    state.zoom = by === 0 ? 0 : Math.max(0, state.zoom + by);
    draw();
    frame.scrollTo(state.k * cell - Math.max(0, across), state.q * cell - Math.max(0, down));
    bringIntoSight();
    redraw();
    zoomed();
  };
  const out = button("−", "smaller", () => zoom(-1)), fitted = button("fit", "the whole map", () => zoom(0)), into = button("+", "larger", () => zoom(1));
  sheet.append(make("div", { class: "hs-pinned" }, base, over));
  frame.append(sheet);
  frame.addEventListener("scroll", () => { if (view.now) redraw(); });
  return { frame, scaleBar, zoomButtons: [out, fitted, into], draw, drawOver, cellAt, bringIntoSight, zoom };
}
