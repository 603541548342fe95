/* View: failures by cause and by parameter value. */

const failedState = D.states.indexOf("failed");
const failures = { id: "failures", late: true,
  build() {
    this.why = new Map();               // for each cause, the trials that failed with it
    A.trial.forEach((i, k) => { const c = A.cause[k]; if (A.causes[c]) { if (!this.why.has(c)) this.why.set(c, new Set()); this.why.get(c).add(i); } });
    if (!this.why.size) { this.card.hidden = true; if (metrics.length < 2) $("rungs").classList.replace("w7", "w12"); }
    else if (levels > 1 && metrics.length > 1) this.card.classList.replace("w5", "w12");
    this.attempts = new Map([...this.why.keys()].map((c) => [c, d3.range(A.trial.length).filter((k) => A.cause[k] === c)]));
  },
  layout(w) {
    this.wide = w;
  },
  select() {
    const el = this.el, w = this.wide;
    el.textContent = "";
    if (!this.why.size) return;
    const svg = make(el, "svg", { width: w, height: 10 });
    const causes = [...this.why.keys()].map((c) => [c, this.attempts.get(c).filter((k) => model.mask[A.trial[k]]).length]).sort((a, b) => b[1] - a[1]).slice(0, 6);
    const most = Math.max(1, d3.max(causes, (c) => c[1])), two = w > 760, left = two ? w * 0.4 : w;
    let y = 12;
    make(svg, "text", { y, class: "name" }, "Attempts by cause");
    for (const [c, n] of causes) {
      const g = make(svg, "g", { class: "press", tabindex: 0, role: "button", transform: `translate(0,${y += 6})`, "aria-label": `${A.causes[c]}: ${n} attempts; select their trials` });
      make(g, "rect", { class: "hit", width: left, height: 28 });
      make(make(g, "text", { y: 14 }, short(A.causes[c], Math.floor((left - 50) / 5.6))), "title", {}, A.causes[c]);
      make(g, "rect", { class: "bar", y: 19, height: 5, width: Math.max(n ? 1 : 0, (left - 50) * n / most), style: "fill:var(--e1)" });
      make(g, "text", { x: left - 8, y: 24, "text-anchor": "end", class: "strong" }, n.toLocaleString("en"));
      const set = this.why.get(c), press = () => model.toggle("cause", `failed: ${short(A.causes[c], 30)}`, (i) => set.has(i), ["cause", A.causes[c]]);
      g.onclick = press;
      g.onkeydown = (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); press(); } };
      y += 24;
    }
    // the share of failed trials in each bin of each parameter
    const x0 = two ? left + 30 : 0, name = 112, right = w - x0 - name;
    let yy = two ? 12 : y + 24;
    make(svg, "text", { x: x0, y: yy, class: "name" }, "Failed trials by parameter value, low to high");
    const rows = params.filter((p) => p.bins < 40).map((p) => {
      const n = new Int32Array(p.bins), bad = new Int32Array(p.bins);
      for (const i of model.shown) { n[p.bin[i]]++; if (T.state[i] === failedState) bad[p.bin[i]]++; }
      const rate = d3.sum(bad) / Math.max(1, d3.sum(n));
      return { p, n, bad, odd: d3.sum(n, (c, k) => c ? (bad[k] - c * rate) ** 2 / c : 0) };
    }).sort((a, b) => b.odd - a.odd).slice(0, two ? 10 : 8);
    const scale = d3.scaleLinear().domain([0, 1]).range([css("--grid"), css("--e1")]).interpolate(d3.interpolateLab);
    for (const { p, n, bad } of rows) {
      yy += 8;
      make(make(svg, "text", { x: x0, y: yy + 11 }, short(p.name, 18)), "title", {}, p.name);
      const used = d3.range(p.bins).filter((k) => n[k]), cell = right / Math.max(1, used.length);
      used.forEach((k, at) => {
        const rate = bad[k] / n[k], what = k === p.bins - 1 ? "inactive" : p.table ? p.table[k] : `${k ? num(p.cuts[k - 1], 3) : "lowest"} to ${k < BINS - 1 ? num(p.cuts[k], 3) : "highest"}`;
        const r = make(svg, "rect", { x: x0 + name + cell * at, y: yy, width: Math.max(1, cell - 1), height: 15, fill: scale(rate) });
        make(r, "title", {}, `${p.name} ${what}: ${bad[k]} of ${n[k]} failed`);
        if (cell > 24 && bad[k]) make(svg, "text", { x: x0 + name + cell * (at + 0.5), y: yy + 11, "text-anchor": "middle", style: `fill:${d3.lab(scale(rate)).l > 56 ? "#111" : "#fff"}` }, `${Math.round(100 * rate)} %`);
      });
      yy += 13;
    }
    const h = Math.max(y, yy) + 10;
    svg.setAttribute("height", h);
  } };
