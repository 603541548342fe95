/* View: parallel coordinates. */

const parallel = { id: "parallel",
  build() { this.card.hidden = !ranked.length; },
  layout(w) {
    const axes = this.axes = ranked.slice(0, 12).concat(outcome.slice(0, 3));
    this.el.classList.add("wide-plot");
    const wide = Math.max(w, axes.length * 92);
    const s = this.s = surface(this.el, wide, 300, { left: 30, right: 60, top: 34, bottom: 26 });
    const x = this.x = axes.map((_, k) => axes.length < 2 ? 0 : k * s.w / (axes.length - 1));
    const gap = s.w / Math.max(1, axes.length - 1), low = this.low = s.h + 14;                // place of trials without the parameter
    this.pos = axes.map((a) => {        // spread categories slightly, so that lines do not cover each other
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
