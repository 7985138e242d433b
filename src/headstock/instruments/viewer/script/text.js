/* The text, shaded by what a query looks at; a token is chosen there as the query. */
function textOf(view, act) {
  const { meta, T, labels, state, shadeOf } = view;
  const textBox = make("div", { class: "hs-text", tabindex: "0", role: "group" });
  const textSays = make("p", { class: "hs-note" });
  const spans = labels.map((label, i) => {
    const made = make("span", { class: "hs-token", "data-i": String(i) }, label);
    const rank = i ? meta.predictions[i - 1]?.[2] : null;
    if (rank) made.classList.add(rank === 1 ? "hs-right" : "hs-wrong");
    return made;
  });
  const words = labels.some((label) => label.length > 1) && !meta.labels.some((label) => /[␣ \n↵]/.test(label));
  const buildText = () => {
    if (words) textBox.classList.add("hs-words");
    for (const [i, span] of spans.entries()) {
      textBox.append(span);
      if (/↵$/.test(labels[i])) textBox.append(make("br"));
      else if (words) textBox.append(" ");
    }
    textBox.setAttribute("aria-label", "The text: arrow keys choose the query, Enter keeps it, Escape lets it go");
    textBox.addEventListener("pointerdown", (event) => {
      const at = event.target.dataset?.i;
      if (at !== undefined) act.lock(+at);
    });
    textBox.addEventListener("pointerover", (event) => {
      const at = event.target.dataset?.i;
      if (at === undefined || event.pointerType === "touch") return;
      if (state.locked) act.point(state.q, +at); else act.point(+at, act.strongest(+at));
    });
    textBox.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (move) { event.preventDefault(); const q = Math.max(0, Math.min(T - 1, state.q + move)); act.goTo(q, act.strongest(q)); }
      else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act.lock(state.q); }
      else if (event.key === "Escape") act.unlock();
    });
  };
  const shadeText = () => {
    const { q } = state;
    for (let k = 0; k < T; k++) {
      const span = spans[k];
      const w = view.now ? view.now.grid[q * T + k] : 0, hidden = view.now && view.now.triangle && k > q;
      const s = view.now && !hidden && !Number.isNaN(w) ? shadeOf(w, view.reference(q)) : 0;
      span.style.background = s ? `rgb(var(--${s < 0 ? "less" : "more"})/${(0.45 * Math.abs(s)).toFixed(3)})` : "";
      span.classList.toggle("hs-hidden", Boolean(hidden));
      span.classList.toggle("hs-query", k === q);
    }
    const says = view.now ? `Shaded: how much ${q} “${labels[q]}” looks at each token${state.locked ? ", kept: Escape or another click lets go." : "; a click on a token keeps it as the query."}` : "A click on a token shows what is expected after it.";
    textSays.textContent = says + (meta.predictions.length ? " Underlined: predicted as the likeliest; dotted: not." : "");
  };
  const followText = () => {
    const span = spans[state.q], above = span.offsetTop;  // in the box, which is placed
    if (above < textBox.scrollTop || above + span.offsetHeight > textBox.scrollTop + textBox.clientHeight) textBox.scrollTop = above - textBox.clientHeight / 2;
  };
  buildText();
  return { textBox, textSays, shadeText, followText };
}
