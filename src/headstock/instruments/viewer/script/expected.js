/* What is expected after each token, and what does come. */
const mark = (rank) => rank === null ? "no number" : rank === 1 ? "✓ right" : `✗ rank ${rank.toLocaleString("en")}`;
const bars = (top, next) => make("ol", {}, ...top.map(([label, p]) => {
  const row = make("li", {}, make("span", { class: "hs-bar" }), make("span", { class: "hs-what" }, short(spelt(label))), make("span", { class: "hs-p" }, share(p)));
  row.firstChild.style.setProperty("--p", p ?? 0);
  if (next !== null && spelt(label) === next) row.classList.add("hs-comes");
  return row;
}));

const allExpected = (meta, labels, lock) => {
  const T = labels.length;
  const box = make("details", { class: "hs-all" }), body = make("tbody"), most = meta.predictions[0][0].length;
  box.append(make("summary", {}, "All predictions, token by token"));
  const fill = () => {
    if (body.children.length) return;
    const rows = document.createDocumentFragment();
    meta.predictions.forEach(([top, p, rank], q) => {
      const row = make("tr", { "data-q": String(q) }, make("th", { scope: "row" }, String(q)), make("td", { class: "hs-read" }, labels[q]));
      row.append(...top.map(([label, chance]) => {
        const here = make("td", { class: "hs-guess" }, make("span", { class: "hs-what" }, short(spelt(label))), " ", make("small", {}, share(chance)));
        here.style.setProperty("--p", chance ?? 0);
        if (q + 1 < T && spelt(label) === labels[q + 1]) here.classList.add("hs-comes");
        return here;
      }));
      row.append(make("td", { class: "hs-read" }, q + 1 < T ? labels[q + 1] : "—"), make("td", {}, share(p)), make("td", { class: rank === 1 ? "hs-good" : rank ? "hs-bad" : "" }, rank ? mark(rank) : "—"));
      rows.append(row);
    });
    body.append(rows);
  };
  box.addEventListener("toggle", () => { if (box.open) fill(); });
  body.addEventListener("click", (event) => { const row = event.target.closest("tr"); if (row) lock(+row.dataset.q); });
  const head = make("tr", {}, make("th", { scope: "col" }, "#"), make("th", { scope: "col" }, "token read"),
    ...Array.from({ length: most }, (_, i) => make("th", { scope: "col" }, i ? `${i + 1}.` : "predicts → 1.")),
    ...["comes next", "p", ""].map((text) => make("th", { scope: "col" }, text)));
  box.append(make("div", { class: "hs-scroll" }, make("table", { class: "hs-numbers" }, make("thead", {}, head), body)));
  if (T <= 40) { box.open = true; fill(); }
  return box;
};
