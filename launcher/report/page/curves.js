/* View: learning curves. */

/* The steps and values of curves in flat arrays.  Trial i has elements first[i] to first[i + 1]. */
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
  /* Form at most six groups: by the value of a parameter, by experiment, or the repeats of the best points. */
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
  /* Return the mean and deviation of the curves at places along the axis. */
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
    const rungs = levels > 1 && levels < 12 && R.lengths[levels - 1] <= x.domain()[1] && R.lengths[levels - 1] * 2 > x.domain()[1] ? R.lengths : null;     // show rungs if steps are lengths
    axisY(s, y, y.base ? marks(y, 6) : y.ticks(6), rungs ? "" : c.name);
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
