/* View: optimisation history.  Slices and trade-offs use its dots as well. */

function dots(v, s, px, py, rows, size) {
  const ctx = s.front, r = size || (N > MANY ? 1.5 : N > 400 ? 2 : 2.8);
  s.clear(ctx);
  ctx.globalAlpha = clamp(30 / Math.sqrt(rows.length), 0.35, 0.9);
  paint(v, rows, (i) => {
    if (Number.isNaN(px[i]) || Number.isNaN(py[i])) return;
    ctx.fillStyle = colour(i);
    if (py[i] > s.h || py[i] < 0) { ctx.fillRect(px[i] - r, py[i] < 0 ? 0 : s.h - 2, 2 * r, 2); return; }     // outside the range
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
    E.forEach((e, k) => {               // one line for each experiment
      const rows = model.shown.filter((i) => T.exp[i] === k && place[i] >= 0 && Number.isFinite(this.at[i])).sort((a, b) => this.at[a] - this.at[b]);
      let d = "", so = NaN;
      for (const i of rows) if (compared(i)) if (!d || better(main.v[i], so)) {
        const y = clamp(this.y0(main.v[i]), 0, s.h).toFixed(1);
        d += d ? `H${this.px[i].toFixed(1)}V${y}` : `M${this.px[i].toFixed(1)},${y}`;
        so = main.v[i];
        if (who < 0 || better(so, now)) { now = so; who = i; }
      }
      if (d) make(this.line, "path", { d: d + `H${E.length > 1 ? this.px[rows[rows.length - 1]] : s.w}`, fill: "none", "stroke-width": 1.6, stroke: E.length > 1 && $("colour").value === "exp" ? colour(e.first) : "var(--best)" });
    });
    this.text.textContent = who < 0 ? "" : `best so far ${num(now, 5)}, ${whose(who)}`;
    this.brush.show();
  },
  where() {                             // the place of each trial, and the ends of the axis
    const at = this.at = this.mode === "time" ? Float64Array.from(T.end_time, real) : this.mode === "cost" ? this.cost() : Float64Array.from({ length: N }, (_, i) => numbered(i));
    const ends = d3.extent(at.filter(Number.isFinite));
    this.ends = ends[0] < ends[1] ? ends : [0, 2 * (ends[0] || 1)];
    return at;
  },
  filter(lo, hi) {
    const at = this.at || this.where(), [first, last] = this.ends, a = first + lo * (last - first), b = first + hi * (last - first);
    const text = this.mode !== "trial" ? `${this.mode === "time" ? "ended" : "cost"} ${span(a)} to ${span(b)}` : `trials ${Math.ceil(a)} to ${Math.floor(b)}`;
    model.set("history", text, lo === undefined ? null : (i) => at[i] >= a && at[i] <= b, [lo, hi], ["history", this.mode, lo, hi]);
  },
  cost() {                              // time that all attempts of the experiment had taken at the trial's last result
    const order = d3.range(A.trial.length).sort((a, b) => timeline.to[a] - timeline.to[b]), sum = new Float64Array(E.length), at = new Float64Array(N).fill(NaN);
    for (const k of order) { const e = T.exp[A.trial[k]]; sum[e] += (timeline.to[k] - timeline.from[k]) * (E[e].gpus || 1); if (A.end[k] === 0) at[A.trial[k]] = sum[e]; }
    return at;
  },
  hover(i) { ring(this.dot, i, this.px, this.py, this.s.h); } };

const unit = (s) => s > 172800 ? [86400, "days"] : s > 7200 ? [3600, "hours"] : s > 180 ? [60, "minutes"] : [1, "seconds"];
