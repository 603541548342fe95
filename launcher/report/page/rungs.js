/* View: rungs and promotions. */

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
      if (next === undefined && R.rung[k] < levels - 1 && N <= MANY) { ctx.lineWidth = 1; ctx.stroke(); } else ctx.fill();      // hollow if it was stopped here
    });
  },
  hover(i) {
    if (levels < 2) return;
    const at = i < 0 ? [] : R.lengths.map((_, k) => this.at.get(i * 64 + k)).filter((k) => k !== undefined && !Number.isNaN(this.py[k]));
    this.path.setAttribute("d", at.length ? "M" + at.map((k) => `${this.px[k]},${this.py[k]}`).join("L") + (at.length < 2 ? "h.1" : "") : "");
  } };
