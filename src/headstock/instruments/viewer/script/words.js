/* How numbers and tokens are written, and elements made. */
const LONGEST_LABEL = 14, MOST_CELL = 40, LETTERS_FROM = 10, DECADES = 4, KEPT = 40;
const NO_NUMBER = "#d4007a";

const make = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};
const minus = (text) => text.replace("-", "−");
const short = (label) => label.length > LONGEST_LABEL ? label.slice(0, LONGEST_LABEL - 1) + "…" : label;
const spelt = (label) => label.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅";
const share = (p) => p === null ? "—" : p >= 0.9995 ? "1.00" : p >= 0.0995 ? p.toFixed(2) : p >= 0.0005 ? p.toFixed(3) : p > 0 ? "<.001" : "0";
const three = (x) => x === null || !Number.isFinite(x) ? "—" : minus(Math.abs(x) >= 100 ? x.toFixed(0) : Math.abs(x) >= 10 ? x.toFixed(1) : x.toFixed(2));
const written = (w, error) => {  // no more digits than are known, and three at most
  if (Number.isNaN(w)) return "no number";
  if (w === 0) return error > 0 ? `0 (less than ${error.toPrecision(1)})` : "0";
  const size = Math.floor(Math.log10(Math.abs(w)));
  const places = Math.max(0, Math.min(2 - size, error > 0 ? Math.max(-size, -Math.ceil(Math.log10(2 * error))) : 9));
  return minus(places > 7 ? w.toExponential(1) : w.toFixed(places));
};
const choice = (name, value, options, changed) => {
  const select = make("select", {}, ...options.map(([key, text]) => make("option", { value: key }, text)));
  select.value = value;
  select.addEventListener("change", () => changed(select.value));
  return make("label", {}, `${name} `, select);
};
const button = (text, says, pressed) => {
  const made = make("button", { type: "button", "aria-label": says, title: says }, text);
  made.addEventListener("click", pressed);
  return made;
};
