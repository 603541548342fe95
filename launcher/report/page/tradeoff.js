/* View: two metrics and their Pareto front. */

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
