/* View: two parameters, as contours of the model's predictions. */

const surfaces = { id: "surfaces",
  build() {
    this.list = D.surfaces.filter((f) => params[f.a] && params[f.b]);
    this.card.hidden = !this.list.length;
    $("surfaces-note").textContent = this.list.length ? `expected ${main.name}${D.fair ? ` at ${num(D.fair)}` : ""} by the two, all else averaged; %: of the variance that only both together explain; dots: trials` : "";
  },
  /* Return the place on an axis of a point of the surface's grid, or of one between two points. */
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
        const edge = (q) => Math.min(q[0], q[1], nx - q[0], ny - q[1]) < 0.49;      // the border of the grid
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
