/* The data of the page, and functions that every view uses: text, numbers, axes. */

const D = JSON.parse(document.getElementById("data").textContent);
const N = D.n, T = D.trial, P = D.params, A = D.attempts, E = D.experiments;
const $ = (id) => document.getElementById(id);
const LAYOUT = 4, SELECT = 2, HOVER = 1;
const stats = window.reportStats = { first: 0, brush: [] };

// --- small things -----------------------------------------------------------

function make(parent, tag, attrs, text) {
  const el = parent.namespaceURI.endsWith("svg") || tag === "svg" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const k in attrs) el.setAttribute(k, attrs[k]);
  if (text !== undefined) el.textContent = text;
  parent.appendChild(el);
  return el;
}

function num(v, digits = 4) {
  if (v === null || Number.isNaN(v)) return "–";
  if (typeof v !== "number") return String(v);
  if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
  const a = Math.abs(v);
  if (a && (a >= 1e6 || a < 1e-3)) return v.toExponential(digits - 2).replace(/\.?0*e\+?/, "e");
  return a >= 1000 && Number.isInteger(v) ? v.toLocaleString("en") : String(+v.toPrecision(digits));
}

function span(s) {
  if (s === null || !Number.isFinite(s)) return "–";
  if (s < 100) return `${+s.toPrecision(3)} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const k = parts.findIndex((p) => s >= p[0]);
  const rest = Math.floor(s % parts[k][0] / (parts[k + 1] || [1])[0]);
  return `${Math.floor(s / parts[k][0])} ${parts[k][1]}` + (rest ? ` ${rest} ${parts[k + 1][1]}` : "");
}

const real = (v) => v === null || v === undefined ? NaN : v === "inf" ? Infinity : v === "-inf" ? -Infinity : +v;
const clamp = (v, lo, hi) => v < lo ? lo : v > hi ? hi : v;
const escaped = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const short = (s, n) => s.length > n ? s.slice(0, n - 1) + "…" : s;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = () => css("color-scheme") === "dark";

/* Choose a range from the best value to slightly beyond the given share of all values.
 * Otherwise one trial that diverged would compress the others into a line. */
function focus(values, smaller, share = 0.9) {
  const s = Float64Array.from(values).filter(Number.isFinite).sort();
  if (!s.length) return [0, 1];
  if (!smaller) s.reverse();
  const best = s[0], most = s[Math.floor((s.length - 1) * share)], worst = s[s.length - 1];
  let end = most + (most - best) * 0.4;
  if (smaller ? end > worst : end < worst) end = worst;
  const pad = Math.abs(end - best) * 0.04 || Math.abs(best) * 0.1 || 1;
  return smaller ? [best - pad, end + pad] : [end - pad, best + pad];
}

const numbered = (i) => i - E[T.exp[i]].first + 1;
const label = (i) => E.length > 1 ? `${E[T.exp[i]].name}/${numbered(i)}` : String(i + 1);
/* With repeats, a value belongs to a point, that is to several trials ("4–6"). */
const pointed = (i) => Math.floor((numbered(i) - 1) / E[T.exp[i]].repeats) + 1;
const folded = () => D.repeats && choice !== "own";
const whose = (i) => folded() ? `mean of ${T.n[i]}, ${E.length > 1 ? `${E[T.exp[i]].name} ` : ""}point ${pointed(i)}` : `trial ${label(i)}`;
const shell = (s) => /^[\w.+=/:,-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`;
const pageName = E.map((e) => e.name).join(", ");

// --- columns ----------------------------------------------------------------

const metrics = D.metrics.map((m) => ({ name: m.name, smaller: m.smaller, v: Float64Array.from(m.v, real) }));
const R = D.rungs, levels = R.lengths.length > 32 ? 0 : R.lengths.length;     // more lengths than that are not rungs: trials were stopped at any step
const reached = new Int8Array(N).fill(-1);
if (levels) R.trial.forEach((i, k) => { reached[i] = Math.max(reached[i], R.rung[k]); });

/* The value by which trials are ranked: "best" is their result (with repeats, the mean of
 * the point), "k" their value at rung k, and "own" that of each repeat. */
let choice = "best", main, byValue, place, best, top, painted, outcome;
const better = (a, b) => main.smaller ? a < b : a > b;
const none = { name: "value", smaller: true, v: new Float64Array(N).fill(NaN) };

function atRung(k) {
  const v = new Float64Array(N).fill(NaN);
  R.trial.forEach((i, r) => { if (R.rung[r] === k) v[i] = real(R.v[r]); });
  return v;
}

/* Only these trials can be the best.  Others have fewer repeats or a shorter length. */
const compared = (i) => choice !== "best" || T.compared[i] === 1;

function chosen(which) {
  const m = metrics[0] || none;
  if (which === "own") return { name: `${m.name} (each repeat)`, smaller: m.smaller, v: Float64Array.from(T.best, real) };
  if (which === "best") return m;
  return { name: `${m.name} at ${num(R.lengths[+which])}`, smaller: m.smaller, v: atRung(+which) };
}

/* An axis.  u(i) is the place of trial i from 0 to 1, or NaN if it has none. */
function axis(name, v, options) {
  const a = { name, v, table: options.table, u: new Float32Array(N) };
  if (a.table) {
    const k = a.table.length || 1;
    a.u.forEach((_, i) => { a.u[i] = v[i] === null ? NaN : (v[i] + 0.5) / k; });
    a.text = (i) => v[i] === null ? "–" : a.table[v[i]];
    a.ticks = (most) => a.table.map((t, i) => ({ u: (i + 0.5) / k, text: t })).filter((_, i) => i % Math.ceil(k / most) === 0);
    a.range = (lo, hi) => {
      const names = a.table.filter((_, i) => (i + 0.5) / k >= lo && (i + 0.5) / k <= hi);
      return names.length > 3 ? `${names.length} values` : names.join(", ") || "none";
    };
  } else {
    const known = Array.from(v).filter(Number.isFinite);
    let [lo, hi] = options.domain || (options.range || []).map(real);
    if (!Number.isFinite(lo)) lo = d3.min(known);
    if (!Number.isFinite(hi)) hi = d3.max(known);
    if (!(lo < hi)) { lo = (lo || 0) - (Math.abs(lo) * 0.1 || 1); hi = lo + 2 * ((Math.abs(lo) || 1) * 0.1 || 1); }
    const log = options.log && lo > 0;
    a.scale = (log ? d3.scaleLog() : d3.scaleLinear()).domain([lo, hi]);
    a.log = log;
    a.u.forEach((_, i) => { a.u[i] = Number.isFinite(v[i]) ? clamp(a.scale(v[i]), 0, 1) : NaN; });
    a.text = (i) => num(v[i]);
    a.ticks = (most) => marks(a.scale, most).map((t) => ({ u: a.scale(t), text: num(t, 3) }));
    a.range = (l, h) => `${num(a.scale.invert(l), 3)} to ${num(a.scale.invert(h), 3)}`;
  }
  return a;
}

/* Ticks of a scale.  A logarithmic scale gets powers of ten if there are enough of them. */
function marks(scale, most) {
  if (!scale.base) return scale.ticks(most);
  const [lo, hi] = scale.domain().slice().sort((a, b) => a - b);
  const decades = d3.range(Math.ceil(Math.log10(lo) - 1e-9), Math.floor(Math.log10(hi) + 1e-9) + 1);
  const thin = Math.ceil(decades.length / most);
  if (decades.length >= 3) return decades.filter((_, k) => k % thin === 0).map((k) => +`1e${k}`);
  const fine = scale.ticks(most).filter((t) => [1, 2, 5].includes(+t.toExponential()[0]));
  return fine.length > 1 ? fine : d3.ticks(lo, hi, Math.min(most, 4));
}

const params = P.map((p) => axis(p.name, p.table ? p.v : Float64Array.from(p.v, real), p));
const BINS = 10;
for (const p of params) {               // bins with equal counts, and one more for trials without the parameter
  p.bin = new Int32Array(N);
  if (p.table) { p.bins = p.table.length + 1; p.bin.forEach((_, i) => { p.bin[i] = p.v[i] === null ? p.bins - 1 : p.v[i]; }); continue; }
  const cuts = d3.range(1, BINS).map((k) => d3.quantile(Array.from(p.v).filter(Number.isFinite).sort(d3.ascending), k / BINS));
  p.bins = BINS + 1;
  p.cuts = cuts;
  p.bin.forEach((_, i) => { p.bin[i] = Number.isFinite(p.v[i]) ? d3.bisectRight(cuts, p.v[i]) : BINS; });
}
params.forEach((p, k) => { p.share = real(P[k].share); p.at = P[k].at; p.mean = P[k].mean; });
const ranked = params.slice().sort((a, b) => (b.share || 0) - (a.share || 0));
