/* View: GPU use. */

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
  /* Return the GPU hours of the selected trials: busy, idle, not monitored, and without a result. */
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
