/* The selection consists of filters by key.  A trial is selected if no filter rejects it.
 * A view is drawn in the next frame after its data changed (a late one when the brush
 * rests), and only while it is on the screen. */

const shuffled = d3.range(N).sort((a, b) => (a * 2654435761 % 4294967296) - (b * 2654435761 % 4294967296));
const MANY = 3000;

/* The order in which trials are drawn: the best one last, on top.  If there are many, the
 * others come in random order, so that the first frame gives a fair impression. */
function revalue(which) {
  choice = which;
  main = chosen(which);
  byValue = d3.range(N).filter((i) => Number.isFinite(main.v[i])).sort((a, b) => compared(b) - compared(a) || (main.smaller ? main.v[a] - main.v[b] : main.v[b] - main.v[a]) || a - b);
  best = byValue.length ? byValue[0] : -1;
  place = new Int32Array(N).fill(-1);
  byValue.forEach((i, k) => { place[i] = k; });
  top = byValue.length / 25;
  painted = N > MANY ? shuffled.filter((i) => place[i] < 0 || place[i] >= top).concat(byValue.filter((i) => place[i] < top).reverse())
    : byValue.concat(d3.range(N).filter((i) => place[i] < 0)).reverse();
  outcome = [main].concat(metrics.slice(1)).map((m) => axis(m.name, m.v, { domain: focus(m.v, m.smaller) }));
}
revalue("best");

/* The opacity of a line: if there are many, the best ones stand out from the rest. */
function opacity(n, most) {
  const all = clamp(9 / Math.sqrt(n), 0.03, most), mist = clamp(200 / n, 0.03, most), few = clamp(0.5 * 100 / Math.sqrt(n * 25), 0.2, most);
  return n > MANY ? (i) => i === best ? 1 : place[i] >= 0 && place[i] < top ? few : mist : (i) => i === best ? 1 : all;
}

/* A filter has a label, a test, one byte for each trial that it rejects, a range for the
 * brush, and a text that restores it from the address of the page. */
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

/* Draw many things: as many as fit into this frame, and the rest in the next ones.  The
 * order is random if there are many, so that the first frame gives a fair impression. */
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

/* A surface has, from bottom to top, an SVG for axes, two canvases (for trials that are not
 * selected and for those that are), and an SVG for marks, labels and the pointer. */
function surface(el, w, h, m) {
  w = Math.max(w, m.left + m.right + 20);       // the browser may not know its size yet
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

/* Select a range of a rectangle by pointer or keyboard.  set(lo, hi) sets it, as parts of
 * the length (from the bottom if vertical); set() clears it; get() returns it. */
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
