/* The report page: one selection model, and views that draw what it selects.
 *
 *   model    filters by key; a trial is selected if no filter rejects it
 *   view     { id, build, layout, select, hover }: drawn in the next frame after
 *            what it shows has changed (if late, when the brush rests), and only
 *            while it is on the screen
 */
(function () {
"use strict";

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

/* From the best value to a bit beyond where that share of them is: one
 * diverged trial must not press the others into a line. */
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
const shell = (s) => /^[\w.+=/:,-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`;
const pageName = E.map((e) => e.name).join(", ");

// --- columns ----------------------------------------------------------------

const metrics = D.metrics.map((m) => ({ name: m.name, smaller: m.smaller, v: Float64Array.from(m.v, real) }));
const R = D.rungs, levels = R.lengths.length > 32 ? 0 : R.lengths.length;     // more are no rungs: trials were stopped anywhere
const reached = new Int8Array(N).fill(-1);
if (levels) R.trial.forEach((i, k) => { reached[i] = Math.max(reached[i], R.rung[k]); });

/* By which value trials are ranked: "best", at rung "k", or "mean" of repeats. */
let choice = "best", main, byValue, place, best, top, painted, outcome;
const better = (a, b) => main.smaller ? a < b : a > b;
const none = { name: "value", smaller: true, v: new Float64Array(N).fill(NaN) };

function atRung(k) {
  const v = new Float64Array(N).fill(NaN);
  R.trial.forEach((i, r) => { if (R.rung[r] === k) v[i] = real(R.v[r]); });
  return v;
}

function meanOfRepeats(values) {
  const sum = new Float64Array(N), n = new Int32Array(N);
  values.forEach((v, i) => { if (Number.isFinite(v)) { sum[T.point[i]] += v; n[T.point[i]]++; } });
  return Float64Array.from(sum, (s, i) => T.point[i] === i && n[i] ? s / n[i] : NaN);
}

function chosen(which) {
  const m = metrics[0] || none;
  if (which === "mean") return { name: `${m.name} (mean)`, smaller: m.smaller, v: meanOfRepeats(m.v) };
  if (which === "best") return m;
  return { name: `${m.name} at ${num(R.lengths[+which])}`, smaller: m.smaller, v: atRung(+which) };
}

/* An axis: u(i) is trial i's place on it from 0 to 1, NaN where it has none. */
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

/* Ticks of a scale; of a logarithmic one powers of ten, if there are enough. */
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
for (const p of params) {               // bins of equal counts; one more of those that do not have it
  p.bin = new Int32Array(N);
  if (p.table) { p.bins = p.table.length + 1; p.bin.forEach((_, i) => { p.bin[i] = p.v[i] === null ? p.bins - 1 : p.v[i]; }); continue; }
  const cuts = d3.range(1, BINS).map((k) => d3.quantile(Array.from(p.v).filter(Number.isFinite).sort(d3.ascending), k / BINS));
  p.bins = BINS + 1;
  p.cuts = cuts;
  p.bin.forEach((_, i) => { p.bin[i] = Number.isFinite(p.v[i]) ? d3.bisectRight(cuts, p.v[i]) : BINS; });
}
params.forEach((p, k) => { p.share = real(P[k].share); p.at = P[k].at; p.mean = P[k].mean; });
const ranked = params.slice().sort((a, b) => (b.share || 0) - (a.share || 0));

// --- the selection ----------------------------------------------------------

const shuffled = d3.range(N).sort((a, b) => (a * 2654435761 % 4294967296) - (b * 2654435761 % 4294967296));
const MANY = 3000;

/* The order in which trials are drawn: the best last, on top.  Of many the others
 * come in a random order, so that what fits into the first frame shows them all. */
function revalue(which) {
  choice = which;
  main = chosen(which);
  byValue = d3.range(N).filter((i) => Number.isFinite(main.v[i])).sort((a, b) => (main.smaller ? main.v[a] - main.v[b] : main.v[b] - main.v[a]) || a - b);
  best = byValue.length ? byValue[0] : -1;
  place = new Int32Array(N).fill(-1);
  byValue.forEach((i, k) => { place[i] = k; });
  top = byValue.length / 25;
  painted = N > MANY ? shuffled.filter((i) => place[i] < 0 || place[i] >= top).concat(byValue.filter((i) => place[i] < top).reverse())
    : byValue.concat(d3.range(N).filter((i) => place[i] < 0)).reverse();
  outcome = [main].concat(metrics.slice(1)).map((m) => axis(m.name, m.v, { domain: focus(m.v, m.smaller) }));
}
revalue("best");

/* How opaque a line is: of many the best stand out from the mist of the others. */
function opacity(n, most) {
  const all = clamp(9 / Math.sqrt(n), 0.03, most), mist = clamp(200 / n, 0.03, most), few = clamp(0.5 * 100 / Math.sqrt(n * 25), 0.2, most);
  return n > MANY ? (i) => i === best ? 1 : place[i] >= 0 && place[i] < top ? few : mist : (i) => i === best ? 1 : all;
}

/* A filter: its label, its test, a byte a trial that it rejects, its range for
 * the brush, and what restores it from the address of the page. */
const model = {
  filters: new Map(), rejects: new Uint8Array(N), mask: new Uint8Array(N).fill(1), shown: painted, hover: -1, pinned: -1, pins: [],
  set(key, label, test, range, spec, not) {
    const old = model.filters.get(key);
    if (!test && !old) return;
    const mine = old ? old.mine : new Uint8Array(N);
    for (let i = 0; i < N; i++) {
      const now = test && !test(i) !== Boolean(not) ? 1 : 0;
      model.rejects[i] += now - mine[i];
      mine[i] = now;
      model.mask[i] = model.rejects[i] ? 0 : 1;
    }
    if (test) model.filters.set(key, { label, test, mine, range, spec, not }); else model.filters.delete(key);
    model.shown = model.filters.size ? painted.filter((i) => model.mask[i]) : painted;
    touch(SELECT);
  },
  negate(key) { const f = model.filters.get(key); model.set(key, f.label, f.test, f.range, f.spec, !f.not); },
  toggle(key, label, test, spec) { const f = model.filters.get(key); model.set(key, label, f && f.label === label ? null : test, null, spec); },
  range(key) { const f = model.filters.get(key); return f && f.range; },
};

const views = [];
let frame = 0, asked = 0, rest = 0, changed = false;

function touch(what, one) {
  for (const v of one ? [one] : views) v.dirty |= what;
  if (what & SELECT && !one) changed = true;
  if (!asked) asked = performance.now();
  if (!frame) frame = requestAnimationFrame(flush);
}

function flush() {
  frame = 0;
  for (const v of views) {
    if (!v.visible || !v.dirty) continue;
    if (v.late && v.dirty === SELECT) { clearTimeout(rest); rest = setTimeout(() => { for (const o of views) if (o.visible && o.dirty) draw(o); }, 70); }
    else draw(v);
  }
  if (changed) { changed = false; chips(); remember(); stats.brush.push(performance.now() - asked); }
  asked = 0;
}

function draw(v) {
  const what = v.dirty;
  v.dirty = 0;
  if (what & LAYOUT) v.layout(v.wide = v.el.clientWidth);
  if (what & (LAYOUT | SELECT) && v.select) v.select();
  if (v.hover) v.hover(model.hover >= 0 ? model.hover : model.pinned);
}

function view(v) {
  v.card = $(v.id);
  v.el = v.card.querySelector(".plot") || v.card;
  v.tools = v.card.querySelector(".tools");
  v.visible = false;
  v.dirty = LAYOUT;
  if (v.build) v.build();
  views.push(v);
}

/* Draw many things: what fits into this frame now, the rest in the next ones.
 * The order is a random one where there are many, so the first look is right. */
function paint(v, rows, one) {
  const mine = v.paint = (v.paint || 0) + 1;
  let k = 0;
  (function some() {
    if (mine !== v.paint) return;
    const end = performance.now() + 2.5;
    while (k < rows.length && performance.now() < end)
      for (const stop = Math.min(k + 40, rows.length); k < stop; k++) one(rows[k]);
    if (k < rows.length) requestAnimationFrame(some);
  })();
}

/* Below an SVG for axes, then two canvases (what is not selected, what is), on
 * top an SVG for marks, labels and the pointer. */
function surface(el, w, h, m) {
  w = Math.max(w, m.left + m.right + 20);       // the browser may have no size for it yet
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  el.textContent = "";
  el.style.height = h + "px";
  const below = make(make(el, "svg", { width: w, height: h, class: "below", "aria-hidden": "true" }), "g", { transform: `translate(${m.left},${m.top})` });
  const layers = [0, 1].map(() => {
    const c = make(el, "canvas", { width: w * ratio, height: h * ratio, style: `width:${w}px;height:${h}px`, "aria-hidden": "true" }).getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, m.left * ratio, m.top * ratio);
    return c;
  });
  const svg = make(el, "svg", { width: w, height: h });
  const g = make(svg, "g", { transform: `translate(${m.left},${m.top})` });
  const s = { w: w - m.left - m.right, h: h - m.top - m.bottom, back: layers[0], front: layers[1], svg, g, m };
  s.axes = below;
  s.over = make(g, "g", { "aria-hidden": "true" });
  s.clear = (c) => c.clearRect(-m.left, -m.top, w, h);
  s.clip = (c) => { c.beginPath(); c.rect(-1, -1, s.w + 2, s.h + 2); c.clip(); };
  return s;
}

function axisY(s, scale, ticks, label) {
  for (const t of ticks) {
    const g = make(s.axes, "g", { class: "tick", transform: `translate(0,${scale(t)})` });
    make(g, "line", { x2: s.w });
    make(g, "text", { x: -6, dy: "0.32em", "text-anchor": "end" }, num(t, 4));
  }
  if (label) make(s.axes, "text", { x: -s.m.left, y: -8, class: "name" }, short(label, 40));
}

function axisX(s, scale, ticks, label, text) {
  for (const t of ticks) {
    const g = make(s.axes, "g", { class: "tick", transform: `translate(${scale(t)},${s.h})` });
    make(g, "line", { y2: -s.h });
    make(g, "text", { y: 14, "text-anchor": "middle" }, text ? text(t) : num(t, 4));
  }
  if (label) make(s.axes, "text", { x: s.w, y: s.h + 28, "text-anchor": "end", class: "name" }, label);
}

/* A range on a rectangle, by pointer or keyboard.  set(lo, hi) has parts of its
 * length (of a vertical one from below), set() none; get() is what is set. */
function brush(parent, box, vertical, label, get, set) {
  const mark = make(parent, "rect", { class: "brush", visibility: "hidden" });
  const hit = make(parent, "rect", Object.assign({ class: "hit", tabindex: 0, role: "group", "aria-roledescription": "range filter",
    "aria-label": `${label}: Enter sets a range, arrows move it, with Shift its upper end, Escape removes it` }, box));
  const size = vertical ? box.height : box.width;
  const at = (e) => { const r = hit.getBoundingClientRect(); return clamp(vertical ? (r.bottom - e.clientY) / r.height : (e.clientX - r.left) / r.width, 0, 1); };
  let from = null;
  hit.onpointerdown = (e) => { from = at(e); hit.setPointerCapture(e.pointerId); };
  hit.onpointermove = (e) => { if (from !== null && Math.abs(at(e) - from) * size > 3) set(Math.min(from, at(e)), Math.max(from, at(e))); };
  hit.onpointerup = (e) => { if (from !== null && Math.abs(at(e) - from) * size <= 3 && get()) { set(); e.stopPropagation(); } from = null; };
  hit.onkeydown = (e) => {
    const step = { ArrowUp: 0.02, ArrowRight: 0.02, ArrowDown: -0.02, ArrowLeft: -0.02 }[e.key], r = get();
    if (e.key === "Escape" && r) set();
    else if (e.key === "Enter") set(0.25, 0.75);
    else if (step && r) set(e.shiftKey ? r[0] : clamp(r[0] + step, 0, 1), clamp(r[1] + step, 0, 1));
    else return;
    e.preventDefault();
  };
  return { hit, show() {
    const r = get();
    mark.setAttribute("visibility", r ? "visible" : "hidden");
    if (!r) return;
    const put = vertical ? { x: box.x, width: box.width, y: +box.y + (1 - r[1]) * size, height: (r[1] - r[0]) * size } : { y: box.y, height: box.height, x: +box.x + r[0] * size, width: (r[1] - r[0]) * size };
    for (const k in put) mark.setAttribute(k, put[k]);
  } };
}

const axisKey = (a) => `axis ${a.name}`;
function filterAxis(a, lo, hi) {
  model.set(axisKey(a), `${a.name}: ${lo === undefined ? "" : a.range(lo, hi)}`, lo === undefined ? null : (i) => a.u[i] >= lo && a.u[i] <= hi, [lo, hi], ["axis", a.name, lo, hi]);
}

// --- colour -----------------------------------------------------------------

/* Six hues that stay apart (CIE76 above 29) in normal and each kind of dichromatic
 * sight, by 24 from that of the best trial, and have a contrast above 3:1. */
const HUES = { light: ["#598df9", "#650e17", "#849860", "#66345c", "#be7ca2", "#1e358f"], dark: ["#76ace1", "#916f03", "#d4f0ba", "#c73a54", "#56fbf5", "#675bc0"] };
const RAMP = { light: ["#b38a12", "#778a63", "#3a6f95", "#122c6b"], dark: ["#4a6cbb", "#5c8fa6", "#a9b36a", "#ffe066"] };
let colour = () => "#888", ink = {};

function recolour() {
  const theme = dark() ? "dark" : "light", hues = HUES[theme], key = $("colour").value, legend = $("legend");
  const ramp = d3.interpolateRgbBasis(RAMP[theme]), steps = d3.range(65).map((k) => ramp(k / 64));
  ink = { faint: css("--faint"), best: css("--best"), ink: css("--ink"), ink3: css("--ink3"), card: css("--card"), accent: css("--accent"),
          states: D.states.map((_, k) => css(`--s${k}`)), ends: D.ends.map((_, k) => css(`--e${k}`)) };
  const named = (names, colours) => names.slice(0, 6).map((n, k) => `<span><i style="background:${colours[k]}"></i>${escaped(short(n, 18))}</span>`).join("") + (names.length > 6 ? ` +${names.length - 6} grey` : "");
  const scale = (lo, hi) => `${escaped(lo)} <i class="ramp" style="background:linear-gradient(90deg,${steps.join()})"></i> ${escaped(hi)}`;
  const a = params.find((p) => `p ${p.name}` === key);
  if (key === "state") { colour = (i) => ink.states[T.state[i]]; const used = D.states.map((_, k) => k).filter((k) => T.state.includes(k)); legend.innerHTML = named(used.map((k) => D.states[k]), used.map((k) => ink.states[k])); }
  else if (key === "exp") { colour = (i) => hues[T.exp[i] % hues.length]; legend.innerHTML = named(E.map((e) => e.name), hues); }
  else if (key === "rung") { const k = Math.max(1, levels - 1); colour = (i) => reached[i] < 0 ? ink.ink3 : steps[Math.round(64 * reached[i] / k)]; legend.innerHTML = scale(num(R.lengths[0]), num(R.lengths[levels - 1])); }
  else if (a && a.table) { const most = Math.min(a.table.length, hues.length); colour = (i) => a.v[i] === null ? ink.ink3 : a.v[i] < most ? hues[a.v[i]] : ink.ink3; legend.innerHTML = named(a.table, hues); }
  else if (a) { colour = (i) => Number.isNaN(a.u[i]) ? ink.ink3 : steps[Math.round(64 * a.u[i])]; legend.innerHTML = scale(num(a.scale.domain()[0], 3), num(a.scale.domain()[1], 3)); }
  else { const k = Math.max(1, byValue.length - 1); colour = (i) => place[i] < 0 ? ink.ink3 : steps[Math.round(64 * (1 - place[i] / k))]; legend.innerHTML = byValue.length ? scale(`worst`, `best`) : ""; }
}

// --- the trial under the pointer --------------------------------------------

function facts(i) {
  const rows = metrics.map((m) => [m.name, num(m.v[i], 5)]).concat(ranked.slice(0, 14).filter((p) => p.text(i) !== "–").map((p) => [p.name, p.text(i)]),
    [["length", num(T.length[i])], ["time", `${span(T.seconds[i])}, ${T.tries[i]} attempt${T.tries[i] === 1 ? "" : "s"}`]], D.whys[T.why[i]] ? [["why", D.whys[T.why[i]]]] : []);
  return `<b>Trial ${escaped(label(i))}</b> <span class="dim">${escaped(D.states[T.state[i]])}${place[i] >= 0 ? `, rank ${place[i] + 1}` : ""}</span>`
    + `<dl>${rows.map((r) => `<dt>${escaped(r[0])}</dt><dd>${escaped(r[1])}</dd>`).join("")}</dl>`;
}

function point(i, e, html) {
  const tip = $("tip");
  if (i !== model.hover) { model.hover = i; touch(HOVER); }
  tip.hidden = i < 0 && !html;
  if (tip.hidden) return;
  tip.innerHTML = html || facts(i);
  const x = e.clientX + 16, y = e.clientY + 16;
  tip.style.left = (x + tip.offsetWidth > innerWidth - 8 ? Math.max(4, e.clientX - tip.offsetWidth - 16) : x) + "px";
  tip.style.top = Math.max(4, Math.min(y, innerHeight - tip.offsetHeight - 8)) + "px";
}

/* Up to four trials side by side; what differs between them stands out. */
function pin(i) {
  model.pins = model.pins.includes(i) ? model.pins.filter((k) => k !== i) : model.pins.concat(i).slice(-4);
  model.pinned = model.pins.length ? model.pins[model.pins.length - 1] : -1;
  showPins();
  touch(HOVER);
  remember();
}

function pinRows(i) {
  return [["state", D.states[T.state[i]]], ["rank", place[i] < 0 ? "–" : String(place[i] + 1)], ...metrics.map((m) => [m.name, num(m.v[i], 5)]),
    ...ranked.map((p) => [p.name, p.text(i)]), ["length", num(T.length[i])], ["time", span(T.seconds[i])], ["attempts", String(T.tries[i])],
    ["host", D.hosts[T.host[i]] || "–"], ["why", D.whys[T.why[i]] || "–"], ["checkpoint", T.step[i] < 0 ? "–" : `step ${num(T.step[i])}`]];
}

function showPins() {
  const box = $("detail"), pins = model.pins;
  box.hidden = !pins.length;
  box.textContent = "";
  if (!pins.length) return;
  const head = make(box, "header");
  make(head, "h2", {}, pins.length > 1 ? `${pins.length} trials pinned` : "Pinned");
  make(head, "button", { type: "button", "aria-label": "Close" }, "✕").onclick = () => { model.pins = []; model.pinned = -1; showPins(); touch(HOVER); remember(); };
  const table = make(box, "table"), top = make(make(table, "thead"), "tr");
  make(top, "td");
  for (const i of pins) make(make(top, "th", { scope: "col" }), "button", { type: "button", title: "Remove" }, label(i)).onclick = () => pin(i);
  const body = make(table, "tbody"), columns = pins.map(pinRows);
  columns[0].forEach(([name], k) => {
    const texts = columns.map((c) => c[k][1]);
    if (texts.every((t) => t === "–")) return;
    const tr = make(body, "tr", { class: texts.some((t) => t !== texts[0]) ? "differs" : "" });
    make(tr, "th", { scope: "row" }, name);
    for (const text of texts) make(tr, "td", { title: text }, text);
  });
  if (pins.length === 1) for (const w of ["show", "logs", "fork"]) {
    const row = make(box, "div", { class: "copy" });
    make(row, "code", {}, `dl ${w} ${shell(E[T.exp[pins[0]]].name)} ${numbered(pins[0])}`);
    make(row, "button", { type: "button", "data-copy": "" }, "Copy");
  }
}

/* Follow the pointer over a surface: nearest(x, y) is a trial or -1. */
function follow(el, s, nearest) {
  s.svg.addEventListener("pointermove", (e) => {
    if (e.buttons) return point(-1);
    const r = s.svg.getBoundingClientRect();
    point(nearest(e.clientX - r.left - s.m.left, e.clientY - r.top - s.m.top), e);
  });
  s.svg.addEventListener("pointerleave", (e) => point(-1, e));
  s.svg.addEventListener("click", () => { if (model.hover >= 0) pin(model.hover); });
}

function closest(x, y, limit, px, py, trialOf, n) {
  let found = -1, least = limit * limit;
  for (let k = 0; k < n; k++) {
    const dx = px[k] - x, dy = py[k] - y, d = dx * dx + dy * dy;
    if (d < least && model.mask[trialOf ? trialOf[k] : k]) { least = d; found = trialOf ? trialOf[k] : k; }
  }
  return found;
}

function choose(tools, label, options, value, then) {
  const l = make(tools, "label", {}, label + " "), s = make(l, "select");
  for (const [k, text] of options) make(s, "option", { value: k }, text);
  s.value = value;
  s.onchange = () => then(s.value);
  return s;
}

// --- learning curves --------------------------------------------------------

/* The steps and values of curves as flat arrays; trial i has first[i] to first[i + 1]. */
function decode(c) {
  const code = {};
  [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].forEach((ch, k) => { code[ch.charCodeAt(0)] = k; });
  const first = new Int32Array(N + 1), x = [], y = [], trial = [];
  for (let i = 0; i < N; i++) {
    const t = c.text[i];
    let k = 0, step = 0, level = 0;
    const next = () => { let n = 0, shift = 1, d; do { d = code[t.charCodeAt(k++)]; n += (d & 31) * shift; shift *= 32; } while (d & 32); return n; };
    while (k < t.length) {
      const move = next(), z = next();
      step += move % 2 ? -(move + 1) / 2 : move / 2;
      level += z % 2 ? -(z + 1) / 2 : z / 2;
      const v = c.base + (level - 1) * c.scale;
      x.push(step); y.push(level ? c.log ? Math.exp(v) : v : NaN); trial.push(i);
    }
    first[i + 1] = x.length;
  }
  return { name: c.name, first, x: Float64Array.from(x), y: Float64Array.from(y), trial: Int32Array.from(trial) };
}

const curves = { id: "curves", which: 0, group: "", xlog: levels > 1, y: "focus", smooth: 0, cache: [],
  build() {
    if (D.curves.length > 1) choose(this.tools, "Metric", D.curves.map((c, k) => [k, c.name]), 0, (v) => { this.which = +v; touch(LAYOUT, this); });
    choose(this.tools, "Steps", [["lin", "linear"], ["log", "log"]], this.xlog ? "log" : "lin", (v) => { this.xlog = v === "log"; touch(LAYOUT, this); });
    choose(this.tools, "Values", [["focus", "focus"], ["full", "full"], ["log", "log"]], "focus", (v) => { this.y = v; touch(LAYOUT, this); });
    const l = make(this.tools, "label", {}, "Smooth "), r = make(l, "input", { type: "range", min: 0, max: 0.95, step: 0.05, value: 0 });
    r.oninput = () => { this.smooth = +r.value; touch(LAYOUT, this); };
    const groups = [["", "none"], ...(E.length > 1 ? [["exp", "experiment"]] : []), ...(D.repeats ? [["point", "repeats"]] : []), ...ranked.map((p) => [`p ${p.name}`, p.name])];
    if (groups.length > 1) choose(this.tools, "Mean by", groups, "", (v) => { this.group = v; touch(LAYOUT, this); });
    this.key = make(this.tools, "span", { class: "legend" });
  },
  /* Trials by the value of a parameter, by experiment, or the repeats of the best points: at most six groups. */
  groups() {
    const p = params.find((q) => `p ${q.name}` === this.group), of = new Map();
    const put = (key, i) => { if (!of.has(key)) of.set(key, []); of.get(key).push(i); };
    if (this.group === "exp") for (const i of model.shown) put(E[T.exp[i]].name, i);
    else if (this.group === "point") { for (const i of model.shown) put(label(T.point[i]), i); return [...of].sort((a, b) => d3.min(a[1], (i) => place[i] < 0 ? N : place[i]) - d3.min(b[1], (i) => place[i] < 0 ? N : place[i])).slice(0, 6); }
    else if (p && p.table) for (const i of model.shown) { if (p.v[i] !== null) put(p.text(i), i); }
    else if (p) {
      const known = model.shown.filter((i) => Number.isFinite(p.v[i])), v = known.map((i) => p.v[i]).sort(d3.ascending);
      const cuts = [...new Set([0.25, 0.5, 0.75].map((k) => d3.quantile(v, k)))], name = (k) => k === 0 ? `< ${num(cuts[0], 3)}` : k === cuts.length ? `≥ ${num(cuts[k - 1], 3)}` : `${num(cuts[k - 1], 3)} to ${num(cuts[k], 3)}`;
      for (let k = 0; k <= cuts.length; k++) of.set(name(k), []);
      for (const i of known) of.get(name(d3.bisectRight(cuts, p.v[i]))).push(i);
    }
    return [...of].filter((g) => g[1].length).sort((a, b) => p && !p.table ? 0 : b[1].length - a[1].length).slice(0, 6);
  },
  /* Mean and deviation of the curves that are there, at places along the axis. */
  band(rows) {
    const c = this.c, s = this.s, n = 80, sum = new Float64Array(n), square = new Float64Array(n), count = new Int32Array(n);
    for (const i of rows) {
      let k = c.first[i];
      const end = c.first[i + 1] - 1;
      for (let q = 0; q < n; q++) {
        const x = q * s.w / (n - 1);
        while (k < end && this.px[k + 1] < x) k++;
        const one = k === end || this.px[k] >= x;
        if (k > end || Math.min(Math.abs(this.px[k] - x), k < end ? Math.abs(this.px[k + 1] - x) : 1e9) > s.w / n && (this.px[k] > x || one)) continue;
        const a = this.values[k], v = one ? a : a + (this.values[k + 1] - a) * (x - this.px[k]) / (this.px[k + 1] - this.px[k] || 1);
        if (Number.isFinite(v)) { sum[q] += v; square[q] += v * v; count[q]++; }
      }
    }
    return d3.range(n).filter((q) => count[q] >= Math.max(1, rows.length * 0.1)).map((q) => {
      const mean = sum[q] / count[q], sd = Math.sqrt(Math.max(0, square[q] / count[q] - mean * mean));
      return { x: q * s.w / (n - 1), mean, low: mean - sd, high: mean + sd };
    });
  },
  bands() {
    const s = this.s, hues = HUES[dark() ? "dark" : "light"], y = (v) => clamp(Number.isFinite(this.y0(v)) ? this.y0(v) : s.h, 0, s.h).toFixed(1), groups = this.groups();
    s.over.querySelectorAll(".band").forEach((e) => e.remove());
    groups.forEach(([name, rows], k) => {
      const line = this.band(rows);
      if (!line.length) return;
      const g = make(s.over, "g", { class: "band" });
      make(g, "path", { d: "M" + line.map((q) => `${q.x.toFixed(1)},${y(q.high)}`).join("L") + "L" + line.slice().reverse().map((q) => `${q.x.toFixed(1)},${y(q.low)}`).join("L") + "Z", fill: hues[k], "fill-opacity": 0.16 });
      make(make(g, "path", { d: "M" + line.map((q) => `${q.x.toFixed(1)},${y(q.mean)}`).join("L"), fill: "none", stroke: hues[k], "stroke-width": 2.2 }), "title", {}, `${name}: ${rows.length} trials`);
    });
    this.key.textContent = "";
    groups.forEach(([name, rows], k) => { const g = make(this.key, "span", { title: `${name}: ${rows.length} trials` }); make(g, "i", { style: `background:${hues[k]}` }); g.append(short(name, 16)); });
  },
  last(c, i) { for (let k = c.first[i + 1] - 1; k >= c.first[i]; k--) if (Number.isFinite(c.y[k])) return c.y[k]; return NaN; },
  filter(name, lo, hi) {
    const which = D.curves.findIndex((q) => q.name === name), c = which < 0 ? null : this.cache[which] || (this.cache[which] = decode(D.curves[which]));
    if (!c) return;
    const v = lo === undefined ? null : Float64Array.from({ length: N }, (_, i) => this.last(c, i));
    model.set("ends", `${name} ends at ${num(lo, 3)} to ${num(hi, 3)}`, v && ((i) => v[i] >= lo && v[i] <= hi), [lo, hi], ["ends", name, lo, hi]);
  },
  layout(w) {
    if (!D.curves.length) { this.el.innerHTML = '<p class="empty">No trial has logged a metric.</p>'; this.s = null; return; }
    const c = this.c = this.cache[this.which] || (this.cache[this.which] = decode(D.curves[this.which]));
    const s = this.s = surface(this.el, w, w < 500 ? 280 : 340, { left: 46, right: 14, top: 24, bottom: 34 });
    const smaller = (metrics.find((m) => m.name === c.name) || { smaller: !/acc|score|reward/i.test(c.name) }).smaller;
    this.smaller = smaller;
    let v = c.y;
    if (this.smooth) {
      v = Float64Array.from(c.y);
      for (let i = 0; i < N; i++) for (let k = c.first[i] + 1; k < c.first[i + 1]; k++) if (Number.isFinite(v[k - 1]) && Number.isFinite(v[k])) v[k] = this.smooth * v[k - 1] + (1 - this.smooth) * v[k];
    }
    const all = d3.extent(v.filter((y) => Number.isFinite(y) && (this.y !== "log" || y > 0)));
    const domain = this.y === "focus" ? focus(v, smaller, 0.75) : all[0] < all[1] ? all : [(all[0] || 1) * 0.9, (all[0] || 1) * 1.1];
    const ends = d3.extent(c.x), xs = this.xlog && ends[0] > 0;
    const x = (xs ? d3.scaleLog() : d3.scaleLinear()).domain(ends[0] < ends[1] ? ends : [ends[0] || 0.9, (ends[0] || 1) + 1]).range([0, s.w]);
    const y = (this.y === "log" && domain[0] > 0 ? d3.scaleLog() : d3.scaleLinear()).domain(domain).range([s.h, 0]);
    this.values = v;
    this.y0 = y;
    this.px = Float32Array.from(c.x, (q) => x(q));
    this.py = Float32Array.from(v, (q) => Number.isFinite(q) && (this.y !== "log" || q > 0) ? clamp(y(q), -4000, 4000) : NaN);
    axisY(s, y, y.base ? marks(y, 6) : y.ticks(6), levels > 1 ? "" : c.name);
    const rungs = levels > 1 && levels < 12 && R.lengths[levels - 1] <= x.domain()[1] && R.lengths[levels - 1] * 2 > x.domain()[1] ? R.lengths : null;     // steps are lengths
    axisX(s, x, rungs && xs ? rungs : x.base ? marks(x, 8) : x.ticks(w < 500 ? 4 : 8), "steps");
    if (rungs) rungs.forEach((length, k) => {
      make(s.axes, "line", { x1: x(length), x2: x(length), y2: s.h, stroke: css("--ink3"), "stroke-dasharray": "2 3", "stroke-opacity": 0.6 });
      make(s.axes, "text", { x: x(length) - (x(length) > s.w - 30 ? 3 : -3), y: -8, "text-anchor": x(length) > s.w - 30 ? "end" : "start" }, `${R.rung.filter((r) => r === k).length.toLocaleString("en")} trials`);
    });
    this.path = make(s.over, "path", { class: "hover" });
    s.svg.setAttribute("role", "img");
    s.svg.setAttribute("aria-label", `Learning curves of ${N} trials: ${c.name} by step`);
    this.brush = brush(s.g, { x: 0, y: 0, width: s.w, height: s.h }, true, `${c.name}, last value`, () => {
      const r = model.range("ends"), spec = r && model.filters.get("ends").spec;
      return r && spec[1] === c.name ? [1 - clamp(y(r[0]) / s.h, 0, 1), 1 - clamp(y(r[1]) / s.h, 0, 1)] : undefined;
    }, (lo, hi) => lo === undefined ? this.filter(c.name) : this.filter(c.name, y.invert(s.h * (1 - lo)), y.invert(s.h * (1 - hi))));
    follow(this.el, s, (mx, my) => closest(mx, my, 24, this.px, this.py, c.trial, c.trial.length));
    s.back.save();
    s.clip(s.back);
    if (N <= MANY) this.lines(s.back, painted, () => ink.faint, opacity(N, 0.8), "grey");
  },
  lines(ctx, rows, style, alpha, pass) {
    const c = this.c, px = this.px, py = this.py;
    this[pass] = this[pass] || {};
    ctx.lineWidth = rows.length > 400 ? 0.8 : 1.2;
    ctx.lineJoin = "round";
    paint(this[pass], rows, (i) => {
      const a = c.first[i], b = c.first[i + 1];
      if (a === b) return;
      ctx.globalAlpha = alpha(i);
      ctx.strokeStyle = ctx.fillStyle = i === best && pass === "front" ? ink.best : style(i);
      ctx.beginPath();
      let pen = false;
      for (let k = a; k < b; k++) { if (Number.isNaN(py[k])) pen = false; else if (pen) ctx.lineTo(px[k], py[k]); else { ctx.moveTo(px[k], py[k]); pen = true; } }
      ctx.stroke();
      if (b - a < 3) ctx.fillRect(px[b - 1] - 1.5, py[b - 1] - 1.5, 3, 3);
    });
  },
  select() {
    const s = this.s;
    if (!s) return;
    s.clear(s.front);
    s.front.save();
    s.clip(s.front);
    const alpha = opacity(model.shown.length, 0.9);
    this.lines(s.front, model.shown, colour, this.group ? (i) => alpha(i) * 0.25 : alpha, "front");
    if (this.group) this.bands(); else { s.over.querySelectorAll(".band").forEach((e) => e.remove()); this.key.textContent = ""; }
    this.brush.show();
    const last = best >= 0 ? this.c.first[best + 1] - 1 : -1;
    s.over.querySelectorAll(".best").forEach((e) => e.remove());
    if (best >= 0 && model.mask[best] && last >= this.c.first[best]) {
      const end = this.px[last] > s.w - 60;
      make(s.over, "text", { class: "best halo", x: this.px[last] + (end ? -2 : 5), y: clamp(this.py[last] + (this.smaller ? 13 : -6), 8, s.h - 3), "text-anchor": end ? "end" : "start" }, `best: ${label(best)}`);
    }
  },
  hover(i) {
    if (!this.s) return;
    const a = i < 0 ? 0 : this.c.first[i], b = i < 0 ? 0 : this.c.first[i + 1];
    let d = "";
    for (let k = a; k < b; k++) if (!Number.isNaN(this.py[k])) d += `${d ? "L" : "M"}${this.px[k].toFixed(1)},${clamp(this.py[k], 0, this.s.h).toFixed(1)}`;
    this.path.setAttribute("d", d);
  } };

// --- dots: history and slices -----------------------------------------------

function dots(v, s, px, py, rows, size) {
  const ctx = s.front, r = size || (N > MANY ? 1.5 : N > 400 ? 2 : 2.8);
  s.clear(ctx);
  ctx.globalAlpha = clamp(30 / Math.sqrt(rows.length), 0.35, 0.9);
  paint(v, rows, (i) => {
    if (Number.isNaN(px[i]) || Number.isNaN(py[i])) return;
    ctx.fillStyle = colour(i);
    if (py[i] > s.h || py[i] < 0) { ctx.fillRect(px[i] - r, py[i] < 0 ? 0 : s.h - 2, 2 * r, 2); return; }     // beyond the focus
    ctx.beginPath();
    ctx.arc(px[i], py[i], r, 0, 6.3);
    ctx.fill();
  });
}

function ring(dot, i, px, py, h) {
  const there = i >= 0 && !Number.isNaN(px[i]) && !Number.isNaN(py[i]);
  dot.setAttribute("visibility", there ? "visible" : "hidden");
  if (there) { dot.setAttribute("cx", px[i]); dot.setAttribute("cy", clamp(py[i], 0, h)); }
}

const history = { id: "history", mode: "trial", y: "focus",
  build() {
    this.by = choose(this.tools, "By", [["trial", "trial"], ["time", "time"], ["cost", E.some((e) => e.gpus) ? "GPU time" : "worker time"]], "trial", (v) => { this.mode = v; model.set("history", "", null); touch(LAYOUT, this); });
    choose(this.tools, "Values", [["focus", "focus"], ["full", "full"]], "focus", (v) => { this.y = v; touch(LAYOUT, this); });
  },
  layout(w) {
    const s = this.s = surface(this.el, w, w < 500 && innerWidth < 640 ? 240 : 340, { left: 46, right: 14, top: 24, bottom: 34 });
    const all = d3.extent(main.v.filter(Number.isFinite)), at = this.where();
    const x = this.x = d3.scaleLinear().domain(this.ends).range([0, s.w]);
    const y = this.y0 = d3.scaleLinear().domain(this.y === "focus" ? focus(main.v, main.smaller) : all[0] < all[1] ? all : [(all[0] || 0) - 1, (all[0] || 0) + 1]).range([s.h, 0]);
    this.px = Float32Array.from(at, (q) => x(q));
    this.py = Float32Array.from(main.v, (q) => Number.isFinite(q) ? clamp(y(q), -9, s.h + 9) : NaN);
    axisY(s, y, y.ticks(6), main.name);
    if (this.mode !== "trial") { const k = unit(x.domain()[1]); axisX(s, x, d3.ticks(0, x.domain()[1] / k[0], 5).map((t) => t * k[0]), k[1], (t) => num(t / k[0])); }
    else axisX(s, x, x.ticks(5).filter(Number.isInteger), "trial");
    this.line = make(s.over, "g");
    this.dot = make(s.over, "circle", { class: "hover", r: 5, visibility: "hidden" });
    this.text = make(s.over, "text", { class: "best", x: s.w, y: -8, "text-anchor": "end" });
    this.brush = brush(s.g, { x: 0, y: 0, width: s.w, height: s.h }, false, `History by ${this.mode}`, () => model.range("history"), (lo, hi) => this.filter(lo, hi));
    follow(this.el, s, (mx, my) => closest(mx, my, 20, this.px, this.py, null, N));
  },
  select() {
    const s = this.s;
    dots(this, s, this.px, this.py, model.shown);
    this.line.textContent = "";
    let now = NaN, who = -1;
    E.forEach((e, k) => {               // a line an experiment
      const rows = model.shown.filter((i) => T.exp[i] === k && place[i] >= 0 && Number.isFinite(this.at[i])).sort((a, b) => this.at[a] - this.at[b]);
      let d = "", so = NaN;
      for (const i of rows) if (!d || better(main.v[i], so)) {
        const y = clamp(this.y0(main.v[i]), 0, s.h).toFixed(1);
        d += d ? `H${this.px[i].toFixed(1)}V${y}` : `M${this.px[i].toFixed(1)},${y}`;
        so = main.v[i];
        if (who < 0 || better(so, now)) { now = so; who = i; }
      }
      if (d) make(this.line, "path", { d: d + `H${E.length > 1 ? this.px[rows[rows.length - 1]] : s.w}`, fill: "none", "stroke-width": 1.6, stroke: E.length > 1 && $("colour").value === "exp" ? colour(e.first) : "var(--best)" });
    });
    this.text.textContent = who < 0 ? "" : `best so far ${num(now, 5)}, trial ${label(who)}`;
    this.brush.show();
  },
  where() {                             // each trial's place, and the ends of the axis
    const at = this.at = this.mode === "time" ? Float64Array.from(T.end, real) : this.mode === "cost" ? this.cost() : Float64Array.from({ length: N }, (_, i) => numbered(i));
    const ends = d3.extent(at.filter(Number.isFinite));
    this.ends = ends[0] < ends[1] ? ends : [0, 2 * (ends[0] || 1)];
    return at;
  },
  filter(lo, hi) {
    const at = this.at || this.where(), [first, last] = this.ends, a = first + lo * (last - first), b = first + hi * (last - first);
    const text = this.mode !== "trial" ? `${this.mode === "time" ? "ended" : "cost"} ${span(a)} to ${span(b)}` : `trials ${Math.ceil(a)} to ${Math.floor(b)}`;
    model.set("history", text, lo === undefined ? null : (i) => at[i] >= a && at[i] <= b, [lo, hi], ["history", this.mode, lo, hi]);
  },
  cost() {                              // spent by the experiment until the trial's last result, in all attempts
    const order = d3.range(A.trial.length).sort((a, b) => timeline.to[a] - timeline.to[b]), sum = new Float64Array(E.length), at = new Float64Array(N).fill(NaN);
    for (const k of order) { const e = T.exp[A.trial[k]]; sum[e] += (timeline.to[k] - timeline.from[k]) * (E[e].gpus || 1); if (A.end[k] === 0) at[A.trial[k]] = sum[e]; }
    return at;
  },
  hover(i) { ring(this.dot, i, this.px, this.py, this.s.h); } };

const unit = (s) => s > 172800 ? [86400, "days"] : s > 7200 ? [3600, "hours"] : s > 180 ? [60, "minutes"] : [1, "seconds"];

// --- parallel coordinates ---------------------------------------------------

const parallel = { id: "parallel",
  build() { this.card.hidden = !ranked.length; },
  layout(w) {
    const axes = this.axes = ranked.slice(0, 12).concat(outcome.slice(0, 3));
    this.el.classList.add("wide-plot");
    const wide = Math.max(w, axes.length * 92);
    const s = this.s = surface(this.el, wide, 300, { left: 30, right: 60, top: 34, bottom: 26 });
    const x = this.x = axes.map((_, k) => axes.length < 2 ? 0 : k * s.w / (axes.length - 1));
    const gap = s.w / Math.max(1, axes.length - 1), low = this.low = s.h + 14;                // where the lines go of trials without that parameter
    this.pos = axes.map((a) => {        // categories a bit spread, so that many lines do not lie on one another
      const spread = a.table ? Math.min(22, 0.4 * s.h / Math.max(1, a.table.length)) : 0;
      return Float32Array.from(a.u, (u, i) => Number.isNaN(u) ? low + Math.min(N / 100, 6) * (i * 0.618034 % 1 - 0.5) : s.h * (1 - u) + spread * (i * 0.618034 % 1 - 0.5));
    });
    this.path = make(s.over, "path", { class: "hover" });
    this.brushes = axes.map((a, k) => {
      const g = make(s.g, "g", { transform: `translate(${x[k]},0)` }), metric = k >= axes.length - Math.min(3, outcome.length);
      make(g, "line", { y2: s.h, class: "domain", stroke: "var(--ink3)" });
      const name = make(g, "text", { y: -20, x: k ? 0 : -28, class: metric ? "best" : "strong", "text-anchor": k ? "middle" : "start" }, short(a.name, Math.floor((k ? gap : gap / 2 + 28) / 6.4)));
      make(name, "title", {}, a.name);
      make(g, "text", { y: -7, x: k ? 0 : -28, "text-anchor": k ? "middle" : "start" }, metric ? (metrics[k - axes.length + Math.min(3, outcome.length)].smaller ? "smaller is better" : "larger is better") : Number.isNaN(a.share) ? "" : `${Math.round(100 * a.share)} %`);
      for (const t of a.ticks(a.table ? 12 : 5)) make(g, "text", { x: 6, y: s.h * (1 - t.u), dy: "0.32em", class: "halo place" }, short(t.text, 12));
      if (a.u.some(Number.isNaN)) make(g, "text", { x: 6, y: low, dy: "0.32em", class: "halo place" }, metric ? "none" : "inactive");
      return brush(g, { x: -14, y: 0, width: 28, height: s.h }, true, a.name, () => model.range(axisKey(a)), (lo, hi) => filterAxis(a, lo, hi));
    });
    s.svg.addEventListener("pointermove", (e) => { if (e.buttons) return point(-1); const r = s.svg.getBoundingClientRect(); point(this.near(e.clientX - r.left - s.m.left, e.clientY - r.top - s.m.top), e); });
    s.svg.addEventListener("pointerleave", (e) => point(-1, e));
    s.svg.addEventListener("click", () => { if (model.hover >= 0) pin(model.hover); });
    if (N <= MANY) this.lines(s.back, painted, () => ink.faint, opacity(N, 0.7), "grey");
  },
  near(mx, my) {
    const k = clamp(d3.bisectRight(this.x, mx) - 1, 0, this.x.length - 2), f = (mx - this.x[k]) / (this.x[k + 1] - this.x[k]);
    if (!(f >= 0 && f <= 1)) return -1;
    let found = -1, least = 8;
    for (const i of model.shown) { const d = Math.abs(this.pos[k][i] * (1 - f) + this.pos[k + 1][i] * f - my); if (d < least) { least = d; found = i; } }
    return found;
  },
  lines(ctx, rows, style, alpha, pass) {
    const { x, pos } = this, m = x.length;
    this[pass] = this[pass] || {};
    ctx.lineWidth = rows.length > 400 ? 0.8 : 1.1;
    paint(this[pass], rows, (i) => {
      ctx.globalAlpha = alpha(i);
      ctx.strokeStyle = i === best && pass === "front" ? ink.best : style(i);
      ctx.beginPath();
      for (let k = 0; k < m; k++) ctx.lineTo(x[k], pos[k][i]);
      ctx.stroke();
    });
  },
  select() {
    this.s.clear(this.s.front);
    this.lines(this.s.front, model.shown, colour, opacity(model.shown.length, 0.85), "front");
    for (const b of this.brushes) b.show();
  },
  hover(i) { this.path.setAttribute("d", i < 0 ? "" : "M" + this.x.map((x, k) => `${x.toFixed(1)},${this.pos[k][i].toFixed(1)}`).join("L")); } };

// --- slices -----------------------------------------------------------------

const slices = { id: "slices",
  build() { this.card.hidden = !ranked.length; },
  layout() {
    this.el.textContent = "";
    const box = make(this.el, "div", { class: "slices" }), fair = R.lengths.indexOf(D.fair), even = choice === "best" && levels > 1 && fair >= 0;
    const y = even ? axis(`${metrics[0].name} at ${num(D.fair)}`, atRung(fair), { domain: focus(atRung(fair), main.smaller) }) : outcome[0];
    const modelled = even || (choice === "best" && levels < 2) || +choice === fair;
    $("slices-note").textContent = Number.isNaN(ranked.length ? ranked[0].share : NaN) ? y ? y.name : "" : `${y.name}; bar and %: share of its variance that the parameter explains alone${modelled ? "; line: expected value, all else averaged" : ""}`;
    if (!y || !ranked.length) { box.innerHTML = '<p class="empty">No parameter was searched.</p>'; this.parts = []; return; }
    this.parts = ranked.slice(0, 24).map((p) => ({ p, el: make(box, "div", { class: "slice" }) }));
    const w = this.parts[0].el.clientWidth;
    for (const part of this.parts) {
      const { p, el } = part;
      const head = make(el, "header");
      make(head, "b", { title: p.name }, p.name);
      make(head, "span", { class: "dim" }, Number.isNaN(p.share) ? "" : `${Math.round(100 * p.share)} %`);
      make(make(head, "div", { class: "share" }), "i").style.width = `${100 * (p.share || 0)}%`;
      const s = part.s = surface(make(el, "div", { class: "plot" }), w, 128, { left: 36, right: 8, top: 6, bottom: 20 });
      for (const t of y.ticks(4)) { const g = make(s.axes, "g", { class: "tick", transform: `translate(0,${s.h * (1 - t.u)})` }); make(g, "line", { x2: s.w }); make(g, "text", { x: -5, dy: "0.32em", "text-anchor": "end" }, t.text); }
      const ticks = p.ticks(p.table ? Math.max(2, Math.floor(s.w / 46)) : 4);
      for (const t of ticks) make(s.axes, "text", { x: s.w * t.u, y: s.h + 14, "text-anchor": t.u < 0.08 && !p.table ? "start" : t.u > 0.92 && !p.table ? "end" : "middle" }, short(t.text, 9));
      const jitter = p.table ? 0.6 * s.w / Math.max(1, p.table.length) : 0;
      part.px = Float32Array.from(p.u, (u, i) => u * s.w + jitter * ((i * 0.618034) % 1 - 0.5));
      part.py = Float32Array.from(y.u, (u, i) => Number.isNaN(u) ? NaN : clamp(s.h * (1 - u), 1, s.h - 1));
      if (modelled && p.mean && y.scale) make(s.over, "path", { d: this.line(p, y, s), fill: "none", stroke: "var(--ink)", "stroke-width": 1.6 });
      part.dot = make(s.over, "circle", { class: "hover", r: 4.5, visibility: "hidden" });
      part.brush = brush(s.g, { x: 0, y: 0, width: s.w, height: s.h }, false, p.name, () => model.range(axisKey(p)), (lo, hi) => filterAxis(p, lo, hi));
      follow(el, s, (mx, my) => closest(mx, my, 14, part.px, part.py, null, N));
    }
  },
  select() {
    for (const part of this.parts) { dots(part, part.s, part.px, part.py, model.shown, N > MANY ? 1.2 : N > 400 ? 1.6 : 2.2); part.brush.show(); }
  },
  line(p, y, s) {
    const u = (x) => p.table ? (x + 0.5) / p.table.length : p.scale(x), at = (m) => (s.h * (1 - clamp(y.scale(m), 0, 1))).toFixed(1), half = p.table ? Math.min(14, 0.4 * s.w / p.table.length) : 0;
    return p.at.map((x, k) => p.mean[k] === null ? "" : p.table ? `M${s.w * u(x) - half},${at(p.mean[k])}h${2 * half}` : `${k ? "L" : "M"}${(s.w * clamp(u(x), 0, 1)).toFixed(1)},${at(p.mean[k])}`).join("");
  },
  hover(i) { for (const p of this.parts) ring(p.dot, i, p.px, p.py, p.s.h); } };

// --- two parameters -------------------------------------------------------------

const surfaces = { id: "surfaces",
  build() {
    this.list = D.surfaces.filter((f) => params[f.a] && params[f.b]);
    this.card.hidden = !this.list.length;
    $("surfaces-note").textContent = this.list.length ? `expected ${main.name}${D.fair ? ` at ${num(D.fair)}` : ""} by the two, all else averaged; %: of the variance that only both together explain; dots: trials` : "";
  },
  /* The place along an axis of a point of the surface's grid, also between two. */
  at(p, xs) {
    const u = xs.map((x) => p.table ? (x + 0.5) / p.table.length : p.scale(x));
    return (c) => { const n = u.length, k = clamp(Math.floor(c - 0.5), 0, Math.max(0, n - 2)), f = c - 0.5 - k; return clamp(n < 2 ? c / n : u[k] + (u[k + 1] - u[k]) * f, 0, 1); };
  },
  layout() {
    this.el.textContent = "";
    this.parts = [];
    if (!this.list.length) return;
    const box = make(this.el, "div", { class: "slices surfaces" }), ramp = d3.interpolateRgbBasis(RAMP[dark() ? "dark" : "light"]);
    for (const f of this.list) {
      const a = params[f.a], b = params[f.b], el = make(box, "div", { class: "slice" }), head = make(el, "header");
      make(head, "b", { title: `${b.name} by ${a.name}` }, `${b.name} by ${a.name}`);
      make(head, "span", { class: "dim" }, `${Math.round(100 * f.share)} %`);
      const s = surface(make(el, "div", { class: "plot" }), el.clientWidth, 200, { left: 48, right: 8, top: 6, bottom: 20 });
      const known = f.v.filter((v) => v !== null), lo = d3.min(known), hi = d3.max(known), shade = (v) => ramp(hi > lo ? (main.smaller ? hi - v : v - lo) / (hi - lo) : 0.5);
      const X = this.at(a, f.x), Y = this.at(b, f.y), nx = f.x.length, ny = f.y.length;
      f.v.forEach((v, k) => {
        if (v === null) return;
        const i = k % nx, j = Math.floor(k / nx), x0 = i ? X(i) : 0, x1 = i < nx - 1 ? X(i + 1) : 1, y0 = j ? Y(j) : 0, y1 = j < ny - 1 ? Y(j + 1) : 1;
        make(s.axes, "rect", { x: s.w * x0, y: s.h * (1 - y1), width: s.w * (x1 - x0) + 0.6, height: s.h * (y1 - y0) + 0.6, fill: d3.interpolateRgb(ink.card, shade(v))(0.6) });
      });
      if (!a.table && !b.table && known.length === f.v.length && hi > lo) {
        const edge = (q) => Math.min(q[0], q[1], nx - q[0], ny - q[1]) < 0.49;      // where nothing was computed
        const levels = d3.range(1, 8).map((k) => lo + (hi - lo) * k / 8);
        for (const c of d3.contours().size([nx, ny]).thresholds(levels)(f.v))
          make(s.axes, "path", { d: c.coordinates.map((poly) => poly.map((ring) => ring.map((q, k) => `${k && !edge(q) && !edge(ring[k - 1]) ? "L" : "M"}${(s.w * X(q[0])).toFixed(1)},${(s.h * (1 - Y(q[1]))).toFixed(1)}`).join("")).join("")).join(""), fill: "none", stroke: "var(--ink)", "stroke-opacity": 0.35, "stroke-width": 0.8 });
      }
      for (const q of a.ticks(a.table ? 4 : 3)) make(s.axes, "text", { x: s.w * q.u, y: s.h + 14, "text-anchor": q.u < 0.08 ? "start" : q.u > 0.92 ? "end" : "middle" }, short(q.text, 9));
      for (const q of b.ticks(b.table ? 8 : 4)) make(s.axes, "text", { x: -5, y: s.h * (1 - q.u), dy: "0.32em", "text-anchor": "end" }, short(q.text, 7));
      const jitter = (p, size) => p.table ? 0.5 * size / Math.max(1, p.table.length) : 0;
      const part = { s, px: Float32Array.from(a.u, (u, i) => u * s.w + jitter(a, s.w) * (i * 0.618034 % 1 - 0.5)), py: Float32Array.from(b.u, (u, i) => s.h * (1 - u) + jitter(b, s.h) * (i * 0.414214 % 1 - 0.5)) };
      part.dot = make(s.over, "circle", { class: "hover", r: 4.5, visibility: "hidden" });
      s.svg.setAttribute("role", "img");
      s.svg.setAttribute("aria-label", `Expected ${main.name} by ${a.name} and ${b.name}`);
      follow(el, s, (mx, my) => closest(mx, my, 14, part.px, part.py, null, N));
      this.parts.push(part);
    }
  },
  select() {
    for (const part of this.parts) {
      const ctx = part.s.front, r = N > 400 ? 1.1 : 1.8;
      part.s.clear(ctx);
      ctx.fillStyle = ink.ink;
      paint(part, model.shown, (i) => {
        if (Number.isNaN(part.px[i]) || Number.isNaN(part.py[i])) return;
        ctx.globalAlpha = place[i] >= 0 && place[i] < Math.max(5, top) ? 1 : clamp(8 / Math.sqrt(N), 0.08, 0.4);
        ctx.beginPath();
        ctx.arc(part.px[i], part.py[i], i === best ? 2 * r : r, 0, 6.3);
        ctx.fill();
      });
    }
  },
  hover(i) { for (const p of this.parts) ring(p.dot, i, p.px, p.py, p.s.h); } };

// --- rungs ------------------------------------------------------------------

const rungs = { id: "rungs",
  build() { if (levels < 2) { this.card.hidden = true; $("failures").classList.replace("w5", metrics.length > 1 ? "w7" : "w12"); } },
  layout(w) {
    if (levels < 2) return;
    const s = this.s = surface(this.el, Math.max(w, levels * 112), 300, { left: 46, right: 10, top: 56, bottom: 20 });
    this.el.classList.add("wide-plot");
    const wide = s.w / levels, y = d3.scaleLinear().domain(focus(R.v.map(real), main.smaller, 0.75)).range([s.h, 0]);
    axisY(s, y, y.ticks(6));
    this.px = Float32Array.from(R.trial, (i, k) => wide * (R.rung[k] + 0.16 + 0.42 * ((i * 0.618034) % 1)));
    this.py = Float32Array.from(R.v, (v) => Number.isFinite(real(v)) ? clamp(y(real(v)), 0, s.h) : NaN);
    this.at = new Map();
    R.trial.forEach((i, k) => this.at.set(i * 64 + R.rung[k], k));
    this.head = R.lengths.map((length, k) => {
      const g = make(s.g, "g", { class: "press", transform: `translate(${wide * k},-52)`, tabindex: 0, role: "button", "aria-label": `Select the trials that reached length ${length}` });
      make(g, "rect", { class: "hit", width: wide, height: 48 });
      make(g, "text", { x: wide * 0.08, y: 11, class: "strong" }, `length ${num(length)}`);
      const bar = make(g, "rect", { class: "bar", x: wide * 0.08, y: 18, height: 6 });
      const text = make(g, "text", { x: wide * 0.08, y: 38 });
      const press = () => model.toggle("rung", `reached length ${length}`, (i) => reached[i] >= k, ["rung", k]);
      g.onclick = press;
      g.onkeydown = (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); press(); } };
      return { bar, text };
    });
    this.path = make(s.over, "path", { class: "hover" });
    follow(this.el, s, (mx, my) => closest(mx, my, 14, this.px, this.py, R.trial, R.trial.length));
  },
  select() {
    if (levels < 2) return;
    const s = this.s, ctx = s.front, wide = s.w / levels, r = N > MANY ? 1.2 : N > 400 ? 1.8 : 2.8;
    const count = R.lengths.map(() => 0), on = R.lengths.map(() => 0);
    R.trial.forEach((i, k) => { if (model.mask[i]) { count[R.rung[k]]++; if (reached[i] > R.rung[k]) on[R.rung[k]]++; } });
    this.head.forEach((h, k) => {
      h.bar.setAttribute("width", Math.max(count[k] ? 1 : 0, wide * 0.84 * count[k] / Math.max(1, count[0])));
      h.text.textContent = k < levels - 1 ? `${count[k].toLocaleString("en")} · ${on[k].toLocaleString("en")} went on` : `${count[k].toLocaleString("en")} in full`;
    });
    s.clear(ctx);
    paint(this, d3.range(R.trial.length), (k) => {
      const i = R.trial[k];
      if (!model.mask[i] || Number.isNaN(this.py[k])) return;
      const next = reached[i] > R.rung[k] ? this.at.get(i * 64 + R.rung[k] + 1) : undefined;
      ctx.strokeStyle = ctx.fillStyle = i === best ? ink.best : colour(i);
      if (next !== undefined) { ctx.globalAlpha = i === best ? 1 : clamp(14 / Math.sqrt(N), 0.1, 0.55); ctx.lineWidth = i === best ? 1.8 : 0.8; ctx.beginPath(); ctx.moveTo(this.px[k], this.py[k]); ctx.lineTo(this.px[next], this.py[next]); ctx.stroke(); }
      ctx.globalAlpha = next === undefined && R.rung[k] < levels - 1 ? clamp(24 / Math.sqrt(N), 0.3, 0.6) : 1;
      ctx.beginPath();
      ctx.arc(this.px[k], this.py[k], r, 0, 6.3);
      if (next === undefined && R.rung[k] < levels - 1 && N <= MANY) { ctx.lineWidth = 1; ctx.stroke(); } else ctx.fill();      // hollow: stopped here
    });
  },
  hover(i) {
    if (levels < 2) return;
    const at = i < 0 ? [] : R.lengths.map((_, k) => this.at.get(i * 64 + k)).filter((k) => k !== undefined && !Number.isNaN(this.py[k]));
    this.path.setAttribute("d", at.length ? "M" + at.map((k) => `${this.px[k]},${this.py[k]}`).join("L") + (at.length < 2 ? "h.1" : "") : "");
  } };

// --- two metrics ------------------------------------------------------------

const tradeoff = { id: "tradeoff", a: 0, b: 1,
  build() {
    if (metrics.length < 2) { this.card.hidden = true; return; }
    this.front = D.front;
    this.card.querySelector(".dim").textContent = `${this.front.length} trials that no other beats in all metrics`;
    const front = new Set(this.front), names = metrics.map((m, k) => [k, m.name]), again = () => touch(LAYOUT, this);
    this.press = () => model.toggle("front", "on the Pareto front", (i) => front.has(i), ["front"]);
    if (metrics.length > 2) {
      choose(this.tools, "y", names, 0, (v) => { this.a = +v; again(); });
      choose(this.tools, "x", names, 1, (v) => { this.b = +v; again(); });
    }
    make(this.tools, "button", { type: "button" }, "Select these").onclick = this.press;
  },
  layout(w) {
    if (metrics.length < 2) return;
    const s = this.s = surface(this.el, w, 300, { left: 46, right: 14, top: 24, bottom: 34 }), a = metrics[this.a], b = metrics[this.b];
    const x = d3.scaleLinear().domain(focus(b.v, b.smaller)).range([0, s.w]), y = d3.scaleLinear().domain(focus(a.v, a.smaller)).range([s.h, 0]);
    axisY(s, y, y.ticks(6), a.name);
    axisX(s, x, x.ticks(w < 500 ? 4 : 6), b.name);
    this.px = Float32Array.from(b.v, (v) => Number.isFinite(v) ? clamp(x(v), 0, s.w) : NaN);
    this.py = Float32Array.from(a.v, (v) => Number.isFinite(v) ? clamp(y(v), -9, s.h + 9) : NaN);
    const front = this.front.filter((i) => !Number.isNaN(this.px[i]) && !Number.isNaN(this.py[i])).sort((i, k) => this.px[i] - this.px[k] || this.py[i] - this.py[k]);
    if (metrics.length === 2 && E.length === 1) make(s.over, "path", { d: front.map((i, k) => k ? (a.smaller ? `H${this.px[i]}V${this.py[i]}` : `V${this.py[i]}H${this.px[i]}`) : `M${this.px[i]},${this.py[i]}`).join(""), fill: "none", stroke: "var(--best)", "stroke-width": 1.5 });
    for (const i of front) make(s.over, "circle", { cx: this.px[i], cy: clamp(this.py[i], 0, s.h), r: 3.5, fill: "var(--card)", stroke: "var(--best)", "stroke-width": 1.5 });
    this.dot = make(s.over, "circle", { class: "hover", r: 5, visibility: "hidden" });
    s.svg.setAttribute("role", "img");
    s.svg.setAttribute("aria-label", `${a.name} by ${b.name}`);
    follow(this.el, s, (mx, my) => closest(mx, my, 20, this.px, this.py, null, N));
  },
  select() { if (this.s) dots(this, this.s, this.px, this.py, model.shown); },
  hover(i) { if (this.s) ring(this.dot, i, this.px, this.py, this.s.h); } };

// --- failures ---------------------------------------------------------------

const failedState = D.states.indexOf("failed");
const failures = { id: "failures", late: true,
  build() {
    this.why = new Map();               // cause: the trials that it befell
    A.trial.forEach((i, k) => { const c = A.cause[k]; if (A.causes[c]) { if (!this.why.has(c)) this.why.set(c, new Set()); this.why.get(c).add(i); } });
    if (!this.why.size) { this.card.hidden = true; if (metrics.length < 2) $("rungs").classList.replace("w7", "w12"); }
    else if (levels > 1 && metrics.length > 1) this.card.classList.replace("w5", "w12");
    this.attempts = new Map([...this.why.keys()].map((c) => [c, d3.range(A.trial.length).filter((k) => A.cause[k] === c)]));
  },
  layout(w) {
    this.wide = w;
  },
  select() {
    const el = this.el, w = this.wide;
    el.textContent = "";
    if (!this.why.size) return;
    const svg = make(el, "svg", { width: w, height: 10 });
    const causes = [...this.why.keys()].map((c) => [c, this.attempts.get(c).filter((k) => model.mask[A.trial[k]]).length]).sort((a, b) => b[1] - a[1]).slice(0, 6);
    const most = Math.max(1, d3.max(causes, (c) => c[1])), two = w > 760, left = two ? w * 0.4 : w;
    let y = 12;
    make(svg, "text", { y, class: "name" }, "Attempts by cause");
    for (const [c, n] of causes) {
      const g = make(svg, "g", { class: "press", tabindex: 0, role: "button", transform: `translate(0,${y += 6})`, "aria-label": `${A.causes[c]}: ${n} attempts; select their trials` });
      make(g, "rect", { class: "hit", width: left, height: 28 });
      make(make(g, "text", { y: 14 }, short(A.causes[c], Math.floor((left - 50) / 5.6))), "title", {}, A.causes[c]);
      make(g, "rect", { class: "bar", y: 19, height: 5, width: Math.max(n ? 1 : 0, (left - 50) * n / most), style: "fill:var(--e1)" });
      make(g, "text", { x: left - 8, y: 24, "text-anchor": "end", class: "strong" }, n.toLocaleString("en"));
      const set = this.why.get(c), press = () => model.toggle("cause", `failed: ${short(A.causes[c], 30)}`, (i) => set.has(i), ["cause", A.causes[c]]);
      g.onclick = press;
      g.onkeydown = (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); press(); } };
      y += 24;
    }
    // the share of failed trials in each bin of each parameter
    const x0 = two ? left + 30 : 0, name = 112, right = w - x0 - name;
    let yy = two ? 12 : y + 24;
    make(svg, "text", { x: x0, y: yy, class: "name" }, "Failed trials by parameter value, low to high");
    const rows = params.filter((p) => p.bins < 40).map((p) => {
      const n = new Int32Array(p.bins), bad = new Int32Array(p.bins);
      for (const i of model.shown) { n[p.bin[i]]++; if (T.state[i] === failedState) bad[p.bin[i]]++; }
      const rate = d3.sum(bad) / Math.max(1, d3.sum(n));
      return { p, n, bad, odd: d3.sum(n, (c, k) => c ? (bad[k] - c * rate) ** 2 / c : 0) };
    }).sort((a, b) => b.odd - a.odd).slice(0, two ? 10 : 8);
    const scale = d3.scaleLinear().domain([0, 1]).range([css("--grid"), css("--e1")]).interpolate(d3.interpolateLab);
    for (const { p, n, bad } of rows) {
      yy += 8;
      make(make(svg, "text", { x: x0, y: yy + 11 }, short(p.name, 18)), "title", {}, p.name);
      const used = d3.range(p.bins).filter((k) => n[k]), cell = right / Math.max(1, used.length);
      used.forEach((k, at) => {
        const rate = bad[k] / n[k], what = k === p.bins - 1 ? "inactive" : p.table ? p.table[k] : `${k ? num(p.cuts[k - 1], 3) : "lowest"} to ${k < BINS - 1 ? num(p.cuts[k], 3) : "highest"}`;
        const r = make(svg, "rect", { x: x0 + name + cell * at, y: yy, width: Math.max(1, cell - 1), height: 15, fill: scale(rate) });
        make(r, "title", {}, `${p.name} ${what}: ${bad[k]} of ${n[k]} failed`);
        if (cell > 24 && bad[k]) make(svg, "text", { x: x0 + name + cell * (at + 0.5), y: yy + 11, "text-anchor": "middle", style: `fill:${d3.lab(scale(rate)).l > 56 ? "#111" : "#fff"}` }, `${Math.round(100 * rate)} %`);
      });
      yy += 13;
    }
    const h = Math.max(y, yy) + 10;
    svg.setAttribute("height", h);
  } };

// --- workers ----------------------------------------------------------------

const timeline = { id: "timeline", late: true,
  filter(lo, hi) {
    const end = d3.max(this.to) || 1, a = lo * end, b = hi * end, on = new Uint8Array(N);
    if (lo !== undefined) A.trial.forEach((i, q) => { if (this.to[q] >= a && this.from[q] <= b) on[i] = 1; });
    model.set("time", `at work ${span(a)} to ${span(b)}`, lo === undefined ? null : (i) => on[i], [lo, hi], ["time", lo, hi]);
  },
  times() {
    this.from = Float64Array.from(A.begin, (t) => t * A.tick);
    this.to = Float64Array.from(A.ticks, (t, k) => this.from[k] + t * A.tick);
  },
  build() {
    this.tools.innerHTML = `<span class="legend" style="max-width:none">${D.ends.map((e, k) => A.end.includes(k) ? `<span><i style="background:var(--e${k})"></i>${e} ${A.end.filter((x) => x === k).length.toLocaleString("en")}</span>` : "").join("")}</span>`;
  },
  layout(w) {
    const n = A.slots.length;
    if (!n) { this.el.innerHTML = '<p class="empty">No attempt has begun.</p>'; this.s = null; return; }
    const row = this.row = clamp(Math.floor(420 / n), 5, 18);
    const s = this.s = surface(this.el, w, n * row + 58, { left: innerWidth < 640 ? 64 : 110, right: 44, top: 16, bottom: 34 });
    const x = this.x = d3.scaleLinear().domain([0, d3.max(this.to) || 1]).range([0, s.w]), k = unit(x.domain()[1]);
    axisX(s, x, d3.ticks(0, x.domain()[1] / k[0], w < 500 ? 4 : 10).map((t) => t * k[0]), k[1], (t) => num(t / k[0]));
    const busy = new Float64Array(n);
    const since = new Float64Array(n).fill(Infinity), until = new Float64Array(n);
    A.slot.forEach((slot, a) => { busy[slot] += this.to[a] - this.from[a]; since[slot] = Math.min(since[slot], this.from[a]); until[slot] = Math.max(until[slot], this.to[a]); });
    const each = Math.ceil(12 / row);
    A.slots.forEach((name, i) => {
      if (i % each) return;
      const t = make(s.axes, "text", { x: -6, y: row * (i + 0.5), dy: "0.32em", "text-anchor": "end" }, short(name, innerWidth < 640 ? 10 : 18));
      make(t, "title", {}, name);
      make(s.axes, "text", { x: s.w + 40, y: row * (i + 0.5), dy: "0.32em", "text-anchor": "end" }, `${Math.round(100 * busy[i] / (until[i] - since[i] || 1))} %`);
    });
    make(s.axes, "text", { x: s.w + 40, y: -5, "text-anchor": "end", class: "name" }, "busy");
    for (const [t, op] of D.requests) {
      make(s.axes, "line", { x1: x(t), x2: x(t), y1: -3, y2: s.h, stroke: "var(--ink2)", "stroke-dasharray": "3 2" });
      make(s.axes, "text", { x: x(t), y: -5, "text-anchor": op === "pause" ? "end" : "start", class: "name" }, op);
    }
    this.box = make(s.over, "rect", { class: "hover", width: 0, height: 0 });
    this.brush = brush(s.g, { x: 0, y: 0, width: s.w, height: s.h }, false, "Time", () => model.range("time"), (lo, hi) => this.filter(lo, hi));
    s.svg.addEventListener("pointermove", (e) => {
      const r = s.svg.getBoundingClientRect(), t = x.invert(e.clientX - r.left - s.m.left), slot = Math.floor((e.clientY - r.top - s.m.top) / row), slack = x.invert(2) - x.invert(0);
      const q = e.buttons ? -1 : A.trial.findIndex((_, k) => A.slot[k] === slot && this.from[k] - slack <= t && this.to[k] + slack >= t);
      if (q < 0) return point(-1);
      point(A.trial[q], e, `${facts(A.trial[q])}<p class="dim">attempt ${A.number[q]}: ${D.ends[A.end[q]]} after ${span(this.to[q] - this.from[q])} on ${escaped(A.slots[slot])}${A.causes[A.cause[q]] ? ` (${escaped(A.causes[A.cause[q]])})` : ""}</p>`);
    });
    s.svg.addEventListener("pointerleave", (e) => point(-1, e));
    s.svg.addEventListener("click", () => { if (model.hover >= 0) pin(model.hover); });
  },
  select() {
    const s = this.s;
    if (!s) return;
    s.clear(s.front);
    const ctx = s.front, row = this.row;
    for (const plain of [true, false]) for (let k = 0; k < A.trial.length; k++) {      // what went wrong on top, and higher
      const end = A.end[k];
      if (plain !== (end === 0)) continue;
      ctx.globalAlpha = model.mask[A.trial[k]] ? 1 : 0.13;
      ctx.fillStyle = ink.ends[end];
      const x = this.x(this.from[k]), w = Math.max(this.x(this.to[k]) - x - (row > 8 ? 0.6 : 0), 1.2), high = end ? row - 2 : Math.max(2, row * 0.5);
      ctx.fillRect(x, row * A.slot[k] + (row - high) / 2, w, high);
      if (end === 4) ctx.fillRect(x + w - 1, row * A.slot[k], 2, row);
    }
    this.brush.show();
  },
  hover(i) {
    if (!this.s) return;
    const k = i < 0 ? -1 : A.trial.lastIndexOf(i), put = k < 0 ? { width: 0, height: 0 } : { x: this.x(this.from[k]) - 1, width: Math.max(3, this.x(this.to[k]) - this.x(this.from[k]) + 1), y: this.row * A.slot[k], height: this.row };
    for (const a in put) this.box.setAttribute(a, put[a]);
  } };

// --- GPUs -------------------------------------------------------------------------

const G = D.gpu;
const gpus = { id: "gpus", late: true,
  build() {
    this.gpus = (k) => E[T.exp[A.trial[k]]].gpus;
    this.of = new Map(G.attempt.map((k, g) => [k, g]));
    const any = E.some((e) => e.gpus) || G.attempt.length;
    this.card.hidden = !any;
    this.rows = [...new Set(G.attempt.map((k) => A.slot[k]))].sort((a, b) => a - b);
    this.row = new Map(this.rows.map((slot, r) => [slot, r]));
    $("gpus-note").textContent = !any ? "" : G.attempt.length ? `${G.attempt.length.toLocaleString("en")} of ${A.trial.length.toLocaleString("en")} attempts were monitored; a row is a worker: how busy its GPUs were over time`
      : "not monitored: with --dl-monitor the report shows how busy they were";
    this.decode = {};
    [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"].forEach((c, k) => { this.decode[c] = k / 60; });
  },
  /* GPU hours of the selected trials: at work, idle, not monitored, without a result. */
  hours() {
    const h = { busy: 0, idle: 0, unknown: 0, wasted: 0, all: 0, low: 0 };
    A.trial.forEach((i, k) => {
      if (!model.mask[i]) return;
      const g = this.of.get(k), n = g === undefined ? this.gpus(k) : G.gpus[g] || this.gpus(k), t = A.ticks[k] * A.tick * n / 3600, busy = g === undefined ? null : G.busy[g];
      h.all += t;
      if (A.end[k] !== 0 && A.end[k] !== 5) h.wasted += t;
      else if (busy === null || busy === undefined) h.unknown += t;
      else { h.busy += t * busy / 100; h.idle += t * (1 - busy / 100); }
      if (busy !== null && busy !== undefined && busy < 25) h.low += t;
    });
    return h;
  },
  layout(w) {
    if (this.card.hidden) return;
    this.el.textContent = "";
    this.bar = make(this.el, "div", { class: "hours" });
    this.s = null;
    if (!this.rows.length) return;
    const row = this.high = clamp(Math.floor(300 / this.rows.length), 5, 18), n = this.rows.length, ramp = d3.interpolateRgbBasis([css("--grid"), css("--s1"), css("--s0")]);
    const s = this.s = surface(make(this.el, "div", { class: "plot" }), w, n * row + 44, { left: innerWidth < 640 ? 64 : 110, right: 44, top: 8, bottom: 34 });
    const x = this.x = d3.scaleLinear().domain([0, d3.max(timeline.to) || 1]).range([0, s.w]), k = unit(x.domain()[1]);
    this.steps = d3.range(61).map((q) => ramp(q / 60));
    axisX(s, x, d3.ticks(0, x.domain()[1] / k[0], w < 500 ? 4 : 10).map((t) => t * k[0]), k[1], (t) => num(t / k[0]));
    const each = Math.ceil(12 / row), sum = new Float64Array(n), time = new Float64Array(n);
    G.attempt.forEach((a, g) => { const r = this.row.get(A.slot[a]); if (G.busy[g] !== null) { sum[r] += G.busy[g] * A.ticks[a]; time[r] += A.ticks[a]; } });
    this.rows.forEach((slot, r) => {
      if (r % each) return;
      make(make(s.axes, "text", { x: -6, y: row * (r + 0.5), dy: "0.32em", "text-anchor": "end" }, short(A.slots[slot], innerWidth < 640 ? 10 : 18)), "title", {}, A.slots[slot]);
      make(s.axes, "text", { x: s.w + 40, y: row * (r + 0.5), dy: "0.32em", "text-anchor": "end" }, time[r] ? `${Math.round(sum[r] / time[r])} %` : "–");
    });
    this.box = make(s.over, "rect", { class: "hover", width: 0, height: 0 });
    s.svg.setAttribute("role", "img");
    s.svg.setAttribute("aria-label", "How busy the GPUs of each worker were over time");
    s.svg.addEventListener("pointermove", (e) => {
      const r = s.svg.getBoundingClientRect(), t = x.invert(e.clientX - r.left - s.m.left), at = Math.floor((e.clientY - r.top - s.m.top) / row);
      const g = G.attempt.findIndex((a) => this.row.get(A.slot[a]) === at && timeline.from[a] <= t && timeline.to[a] >= t);
      if (g < 0) return point(-1);
      const a = G.attempt[g];
      point(A.trial[a], e, `${facts(A.trial[a])}<p class="dim">attempt ${A.number[a]}: ${G.gpus[g]} GPU${G.gpus[g] === 1 ? "" : "s"}, busy ${G.busy[g] === null ? "–" : num(G.busy[g], 3)} %, memory ${G.memory[g] === null ? "–" : num(100 * G.memory[g], 3)} %</p>`);
    });
    s.svg.addEventListener("pointerleave", (e) => point(-1, e));
    s.svg.addEventListener("click", () => { if (model.hover >= 0) pin(model.hover); });
  },
  select() {
    if (this.card.hidden) return;
    const h = this.hours(), parts = [["busy", h.busy, "var(--s0)"], ["idle", h.idle, "var(--s1)"], ["not monitored", h.unknown, "var(--faint)"], ["without a result", h.wasted, "var(--e1)"]].filter((q) => q[1] > 0);
    this.bar.textContent = "";
    const strip = make(this.bar, "div", { class: "strip", "aria-hidden": "true" });
    for (const [, v, c] of parts) make(strip, "i", { style: `flex:${v} 0 0;background:${c}` });
    const p = make(this.bar, "p", { class: "legend wrap" });
    make(p, "b", {}, `${num(h.all, 3)} GPU h`);
    for (const [name, v, c] of parts) { const q = make(p, "span"); make(q, "i", { style: `background:${c}` }); q.append(`${name} ${num(v, 3)} (${Math.round(100 * v / h.all)} %)`); }
    if (h.low > 0) make(p, "span", {}, `${num(h.low, 3)} GPU h in attempts that were less than 25 % busy`);
    const s = this.s;
    if (!s) return;
    s.clear(s.front);
    G.attempt.forEach((a, g) => {
      const from = this.x(timeline.from[a]), wide = (this.x(timeline.to[a]) - from) / G.bins[g].length, y = this.high * this.row.get(A.slot[a]);
      s.front.globalAlpha = model.mask[A.trial[a]] ? 1 : 0.13;
      [...G.bins[g]].forEach((c, k) => {
        if (c === "_") return;
        s.front.fillStyle = this.steps[Math.round(60 * this.decode[c])];
        s.front.fillRect(from + k * wide, y + 1, wide + 0.4, this.high - 2);
      });
    });
  },
  hover(i) {
    if (!this.s) return;
    const g = i < 0 ? -1 : G.attempt.findIndex((a) => A.trial[a] === i), a = g < 0 ? -1 : G.attempt[g];
    const put = a < 0 ? { width: 0, height: 0 } : { x: this.x(timeline.from[a]) - 1, width: Math.max(3, this.x(timeline.to[a]) - this.x(timeline.from[a]) + 1), y: this.high * this.row.get(A.slot[a]), height: this.high };
    for (const q in put) this.box.setAttribute(q, put[q]);
  } };

// --- table ------------------------------------------------------------------

const table = { id: "table", late: true, sort: { column: null, down: false }, high: 26,
  build() {
    const flat = (name, v, text) => ({ name, v, text: text || ((i) => num(real(v[i]), 5)), key: (i) => real(v[i]) });
    this.columns = [
      ...(E.length > 1 ? [{ name: "experiment", key: (i) => E[T.exp[i]].name, text: (i) => E[T.exp[i]].name, words: true }] : []),
      { name: "trial", key: numbered, text: (i) => String(numbered(i)) },
      { name: "state", key: (i) => D.states[T.state[i]], text: (i) => D.states[T.state[i]], words: true },
      ...metrics.map((m) => flat(m.name, m.v)), flat("length", T.length), flat("time", T.seconds, (i) => span(T.seconds[i])), flat("attempts", T.tries), ...(T.files.some((n) => n) ? [flat("checkpoint", T.step.map((s) => s < 0 ? null : s))] : []),
      ...params.map((p) => ({ name: p.name, key: (i) => p.table ? p.text(i) : p.v[i], text: p.text, words: !!p.table })),
      { name: "host", key: (i) => D.hosts[T.host[i]], text: (i) => D.hosts[T.host[i]] || "–", words: true },
      { name: "why", key: (i) => D.whys[T.why[i]], text: (i) => D.whys[T.why[i]] || "", words: true }];
    const el = this.card.querySelector("table");
    el.textContent = "";
    const tr = make(make(el, "thead"), "tr");
    this.columns.forEach((c, k) => {
      const th = c.th = make(tr, "th", { scope: "col", class: c.words ? "t" : "" });
      make(th, "button", { type: "button", title: c.name }, c.name).onclick = () => {
        this.sort = { column: c, down: this.sort.column === c ? !this.sort.down : false };
        this.columns.forEach((o) => o.th.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
        touch(SELECT, this);
      };
    });
    this.body = make(el, "tbody");
    this.scroll = this.card.querySelector(".scroll");
    this.scroll.onscroll = () => this.rows();
    this.body.onclick = (e) => { const tr = e.target.closest("tr[data-i]"); if (tr) pin(+tr.dataset.i); };
    this.body.onkeydown = (e) => { if (e.key === "Enter" && e.target.dataset.i) pin(+e.target.dataset.i); };
    this.body.onpointerover = (e) => { const tr = e.target.closest("tr[data-i]"), i = tr ? +tr.dataset.i : -1; if (i !== model.hover) { model.hover = i; touch(HOVER); } };
    this.body.onpointerleave = () => { model.hover = -1; touch(HOVER); };
    $("search").oninput = (e) => { const t = e.target.value.trim(); this.search(t); };
    $("csv").onclick = () => this.save();
  },
  layout() {},
  search(t) { model.set("search", `“${short(t, 24)}”`, t ? this.parse(t) : null, null, ["search", t]); },
  /* Words, each of which must hold: NAME, one of < <= > >= = != and a value; else a text in any column. */
  parse(text) {
    const tests = text.split(/\s+/).map((word) => {
      const m = /^(.+?)(<=|>=|!=|<|>|=)(.+)$/.exec(word), name = m && m[1].toLowerCase();
      const c = m && (this.columns.find((k) => k.name.toLowerCase() === name) || this.columns.find((k) => k.name.toLowerCase().startsWith(name)));
      if (!c) { const low = word.toLowerCase(); return (i) => this.columns.some((k) => k.text(i).toLowerCase().includes(low)); }
      const want = m[3].toLowerCase(), value = Number(want);
      if (m[2] === "=" || m[2] === "!=") return (i) => (String(c.text(i)).toLowerCase().startsWith(want) || (want !== "" && c.key(i) === value)) === (m[2] === "=");
      return { "<": (i) => c.key(i) < value, "<=": (i) => c.key(i) <= value, ">": (i) => c.key(i) > value, ">=": (i) => c.key(i) >= value }[m[2]];
    });
    return (i) => tests.every((t) => t(i));
  },
  select() {
    const { column, down } = this.sort;
    if (!column) this.order = byValue.filter((i) => model.mask[i]).concat(model.shown.filter((i) => place[i] < 0).sort((a, b) => a - b));
    else {
      const keys = new Array(N), none = (v) => v === "" || v === "–" || v === undefined || Number.isNaN(v);
      for (const i of model.shown) keys[i] = column.key(i);
      this.order = model.shown.slice().sort((a, b) => none(keys[a]) - none(keys[b]) || (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) * (down ? -1 : 1) || a - b);
    }
    $("note").textContent = `${this.order.length.toLocaleString("en")} of ${N.toLocaleString("en")}, ${column ? `by ${column.name}` : "the best first"}`;
    this.rows(true);
  },
  rows(all) {
    const n = this.order.length, room = 60, first = clamp(Math.floor(this.scroll.scrollTop / this.high) - 20, 0, Math.max(0, n - room)) & ~1;
    if (!all && first === this.first) return;
    this.first = first;
    const some = this.order.slice(first, first + room), gap = (k) => `<tr class="spacer" aria-hidden="true"><td colspan="${this.columns.length}" style="height:${k * this.high}px"></td></tr>`;
    this.body.innerHTML = (first ? gap(first) : "") + some.map((i) => `<tr data-i="${i}" tabindex="0">` + this.columns.map((c, k) => `<td${c.words ? ' class="t"' : ""}>${k === 0 ? `<i style="background:${i === best ? ink.best : colour(i)}"></i>` : ""}${escaped(c.text(i))}</td>`).join("") + "</tr>").join("") + (n > first + room ? gap(n - first - room) : "");
    this.hover(model.hover >= 0 ? model.hover : model.pinned);
  },
  hover(i) { for (const tr of this.body.children) tr.classList.toggle("on", +tr.dataset.i === i); },
  save() {
    const quote = (v) => { const s = v === null || v === undefined || Number.isNaN(v) ? "" : String(v); return /[",\n\r]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s; };
    const text = [this.columns.map((c) => quote(c.name)), ...this.order.map((i) => this.columns.map((c) => quote(c.key(i))))].map((r) => r.join()).join("\r\n");
    const a = make(document.body, "a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${E[0].name}.csv` });
    a.click();
    a.remove();
  } };

// --- the page ---------------------------------------------------------------

function chips() {
  const box = $("chips");
  $("count").textContent = model.filters.size ? `${model.shown.length.toLocaleString("en")} of ${N.toLocaleString("en")} trials` : "All trials";
  box.textContent = "";
  for (const [key, f] of model.filters) {
    const chip = make(box, "span", { class: "chip" });
    make(chip, "button", { type: "button", "aria-pressed": Boolean(f.not), title: "Keep the others instead" }, f.not ? `not ${f.label}` : f.label).onclick = () => model.negate(key);
    make(chip, "button", { type: "button", "aria-label": `Remove the filter ${f.label}` }, "✕").onclick = () => { if (key === "search") $("search").value = ""; model.set(key, "", null); };
  }
  if (model.filters.size > 1) make(box, "button", { type: "button" }, "Clear all").onclick = () => { $("search").value = ""; for (const key of [...model.filters.keys()]) model.set(key, "", null); };
  const on = model.filters.get("state");
  document.querySelectorAll("[data-state]").forEach((b) => b.setAttribute("aria-pressed", Boolean(on && on.label === b.children[1].textContent)));
}

function useValue(which) {
  $("value").value = which;
  revalue(which);
  model.set("fold", "one of the repeats", which === "mean" ? (i) => T.point[i] === i : null, null, null);
  model.shown = painted.filter((i) => model.mask[i]);
  recolour();
  touch(LAYOUT);
  remember();
}

// --- the address keeps what is selected, also when a new file is loaded --------

const restorers = {
  axis: (name, lo, hi) => { const a = ranked.concat(outcome).find((k) => k.name === name); if (a) filterAxis(a, lo, hi); },
  state: (k) => model.set("state", D.states[k], (i) => T.state[i] === k, null, ["state", k]),
  rung: (k) => { if (k < levels) model.set("rung", `reached length ${R.lengths[k]}`, (i) => reached[i] >= k, null, ["rung", k]); },
  cause: (text) => { const c = A.causes.indexOf(text), set = failures.why.get(c); if (set) model.set("cause", `failed: ${short(text, 30)}`, (i) => set.has(i), null, ["cause", text]); },
  front: () => { if (tradeoff.press) tradeoff.press(); },
  search: (text) => { $("search").value = text; table.search(text); },
  history: (mode, lo, hi) => { history.by.value = history.mode = mode; history.where(); history.filter(lo, hi); },
  time: (lo, hi) => { timeline.filter(lo, hi); },
  ends: (name, lo, hi) => { curves.filter(name, lo, hi); },
};

let recalling = false;
function remember() {
  if (recalling) return;
  const state = { f: [...model.filters.values()].filter((f) => f.spec).map((f) => f.not ? ["not"].concat(f.spec) : f.spec), c: $("colour").value, v: choice, p: model.pins };
  const plain = !state.f.length && !state.p.length && state.v === "best" && $("colour").selectedIndex === (E.length > 1 ? 2 : 0);
  const hash = plain ? "" : "#" + encodeURIComponent(JSON.stringify(state));
  if (hash === location.hash || (plain && !location.hash)) return;
  try { window.history.replaceState(null, "", hash || location.pathname + location.search); } catch (e) { location.replace(hash || "#"); }
}

function recall() {
  let state;
  try { state = JSON.parse(decodeURIComponent(location.hash.slice(1))); } catch (e) { return; }
  if (!state || !Array.isArray(state.f)) return;
  recalling = true;
  if ([...$("colour").options].some((o) => o.value === state.c)) { $("colour").value = state.c; recolour(); }
  if ([...$("value").options].some((o) => o.value === String(state.v)) && state.v !== "best") useValue(String(state.v));
  for (const spec of state.f) {
    if (!Array.isArray(spec)) continue;
    const not = spec[0] === "not", [kind, ...args] = not ? spec.slice(1) : spec;
    const before = new Set(model.filters.keys());
    if (Object.prototype.hasOwnProperty.call(restorers, kind)) restorers[kind](...args);
    if (not) for (const key of model.filters.keys()) if (!before.has(key)) model.negate(key);
  }
  model.pins = (Array.isArray(state.p) ? state.p : []).filter((i) => Number.isInteger(i) && i >= 0 && i < N).slice(0, 4);
  model.pinned = model.pins.length ? model.pins[model.pins.length - 1] : -1;
  showPins();
  recalling = false;
}

/* A page of file: cannot fetch; it loads itself anew, and the address keeps the
 * rest.  Not while somebody drags or types; ever more seldom if nothing comes. */
function live() {
  const age = () => Date.now() / 1000 - D.made;
  let down = false;
  addEventListener("pointerdown", () => { down = true; }, true);
  addEventListener("pointerup", () => { down = false; }, true);
  $("state").title = `renewed every ${span(D.live)}; of ${new Date(D.made * 1000).toLocaleTimeString()}`;
  $("state").classList.add("live");
  (function wait() {
    const stale = age() > 5 * D.live;
    if (stale) $("state").classList.remove("live");
    setTimeout(() => {
      const typing = /INPUT|SELECT/.test(document.activeElement ? document.activeElement.tagName : "");
      if (down || typing || document.hidden || model.hover >= 0) wait(); else { remember(); location.reload(); }
    }, 1000 * (stale ? Math.min(600, age() / 2) : Math.max(2, D.live)));
  })();
}

function start() {
  const colours = $("colour");
  const options = [["value", main.name], ["state", "state"], ...(E.length > 1 ? [["exp", "experiment"]] : []), ...(levels > 1 ? [["rung", "rung reached"]] : []), ...ranked.map((p) => [`p ${p.name}`, p.name])];
  for (const [k, text] of options) make(colours, "option", { value: k }, text);
  if (E.length > 1) colours.value = "exp";
  colours.onchange = () => { recolour(); touch(LAYOUT); remember(); };
  const values = [["best", "best"], ...(levels > 1 ? R.lengths.map((l, k) => [k, `at length ${num(l)}`]) : []), ...(D.repeats ? [["mean", "mean of repeats"]] : [])];
  $("value-label").hidden = values.length < 2;
  for (const [k, text] of values) make($("value"), "option", { value: k }, text);
  $("value").onchange = () => useValue($("value").value);
  $("theme").onclick = () => {
    const theme = document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("dl-theme", theme); } catch (e) { /* file: may have no storage */ }
    recolour();
    touch(LAYOUT);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { recolour(); touch(LAYOUT); });
  document.querySelectorAll("[data-state]").forEach((b) => {
    const k = +b.dataset.state;
    b.onclick = () => model.toggle("state", D.states[k], (i) => T.state[i] === k, ["state", k]);
  });
  document.addEventListener("click", (e) => {
    const b = e.target.closest("[data-copy]");
    if (!b) return;
    const code = b.parentNode.querySelector("code"), done = () => { b.textContent = "Copied"; setTimeout(() => { b.textContent = "Copy"; }, 1200); };
    const select = () => { getSelection().selectAllChildren(code); if (document.execCommand("copy")) done(); };     // file: has no clipboard in some browsers
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && model.pinned >= 0) pin(model.pinned);
    if (e.key === "/" && !/INPUT|SELECT/.test(e.target.tagName)) { e.preventDefault(); $("search").focus(); }
  });
  recolour();
  timeline.times();
  for (const v of [curves, history, parallel, slices, surfaces, rungs, tradeoff, failures, timeline, gpus, table]) view(v);
  recall();
  chips();
  if (D.live) live();
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) { const v = views.find((o) => o.card === e.target); v.visible = e.isIntersecting; if (v.visible && v.dirty) touch(0, v); }
    if (!stats.first) requestAnimationFrame(() => { stats.first = performance.now(); });
  }, { rootMargin: "200px" });
  views.forEach((v) => seen.observe(v.card));
  // of the window, or where the browser had no size for the page at first
  new ResizeObserver(() => { for (const v of views) if (v.wide !== undefined && v.wide !== v.el.clientWidth) touch(LAYOUT, v); }).observe(document.querySelector("main"));
  let theme;
  const all = (to) => { document.documentElement.dataset.theme = to; recolour(); views.forEach((v) => { v.dirty |= LAYOUT; draw(v); }); };
  addEventListener("beforeprint", () => { theme = document.documentElement.dataset.theme; all("light"); });
  addEventListener("afterprint", () => all(theme));
  window.report = { model, views, filterAxis, axes: ranked, useValue, label };
}

start();
})();
