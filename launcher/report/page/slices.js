/* View: the metric by each parameter. */

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
