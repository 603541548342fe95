/* View: workers and attempts by time. */

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
    for (const plain of [true, false]) for (let k = 0; k < A.trial.length; k++) {      // draw failures on top, and higher
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
