/* View: the table of trials. */

const table = { id: "table", late: true, sort: { column: null, down: false }, high: 26,
  build() {
    const flat = (name, v, text) => ({ name, v, text: text || ((i) => num(real(v[i]), 5)), key: (i) => real(v[i]) });
    this.columns = [
      ...(E.length > 1 ? [{ name: "experiment", key: (i) => E[T.exp[i]].name, text: (i) => E[T.exp[i]].name, words: true }] : []),
      { name: "trial", key: numbered, text: (i) => folded() && E[T.exp[i]].repeats > 1 ? `${numbered(i)}–${numbered(i) + E[T.exp[i]].repeats - 1}` : String(numbered(i)) },
      { name: "state", key: (i) => D.states[T.state[i]], text: (i) => D.states[T.state[i]], words: true },
      ...metrics.map((m) => flat(m.name, m.v)), ...(D.repeats ? [{ name: "point", key: pointed, text: (i) => String(pointed(i)) }, flat("deviation", T.deviation), flat("n", T.n), flat("own value", T.best)] : []), ...D.curves.filter((c) => c.last).map((c) => flat(c.name, c.last)), flat("length", T.length), flat("time", T.seconds, (i) => span(T.seconds[i])), flat("attempts", T.attempts), ...(T.files.some((n) => n) ? [flat("checkpoint", T.step.map((s) => s < 0 ? null : s))] : []),
      ...params.map((p) => ({ name: p.name, key: (i) => p.table ? p.text(i) : p.v[i], text: p.text, words: !!p.table })),
      { name: "host", key: (i) => D.hosts[T.host[i]], text: (i) => D.hosts[T.host[i]] || "–", words: true },
      { name: "why", key: (i) => D.whys[T.why[i]], text: (i) => D.whys[T.why[i]] || "", words: true }];
    const el = this.card.querySelector("table");
    el.textContent = "";
    const tr = make(make(el, "thead"), "tr");
    this.columns.forEach((c, k) => {
      const th = c.th = make(tr, "th", { scope: "col", class: c.words ? "t" : "" });
      make(th, "button", { type: "button", title: c.name }, c.name).onclick = () => {
        this.sort = { column: c, down: this.sort.column === c ? !this.sort.down : false };
        this.columns.forEach((o) => o.th.removeAttribute("aria-sort"));
        th.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
        touch(SELECT, this);
      };
    });
    this.body = make(el, "tbody");
    this.scroll = this.card.querySelector(".scroll");
    this.scroll.onscroll = () => this.rows();
    this.body.onclick = (e) => { const tr = e.target.closest("tr[data-i]"); if (tr) pin(+tr.dataset.i); };
    this.body.onkeydown = (e) => { if (e.key === "Enter" && e.target.dataset.i) pin(+e.target.dataset.i); };
    this.body.onpointerover = (e) => { const tr = e.target.closest("tr[data-i]"), i = tr ? +tr.dataset.i : -1; if (i !== model.hover) { model.hover = i; touch(HOVER); } };
    this.body.onpointerleave = () => { model.hover = -1; touch(HOVER); };
    $("search").oninput = (e) => { const t = e.target.value.trim(); this.search(t); };
    $("csv").onclick = () => this.save();
  },
  layout() {},
  search(t) { model.set("search", `“${short(t, 24)}”`, t ? this.parse(t) : null, null, ["search", t]); },
  /* Compile a condition.  Any other text is a list of words, each of which must occur in some column. */
  parse(text) {
    const column = (name) => this.columns.find((c) => c.name === name) || this.columns.find((c) => `hp.${c.name}` === name);
    try {
      const holds = compileExpression(text, column);
      return (i) => holds(i) === true;
    } catch {
      const words = text.toLowerCase().split(/\s+/);
      return (i) => words.every((word) => this.columns.some((c) => c.text(i).toLowerCase().includes(word)));
    }
  },
  select() {
    const { column, down } = this.sort;
    if (!column) this.order = byValue.filter((i) => model.mask[i]).concat(model.shown.filter((i) => place[i] < 0).sort((a, b) => a - b));
    else {
      const keys = new Array(N), none = (v) => v === "" || v === "–" || v === undefined || Number.isNaN(v);
      for (const i of model.shown) keys[i] = column.key(i);
      this.order = model.shown.slice().sort((a, b) => none(keys[a]) - none(keys[b]) || (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) * (down ? -1 : 1) || a - b);
    }
    if (folded()) this.order = this.order.filter((i) => T.point[i] === i);     // one row for each point
    const all = folded() ? T.point.filter((p, i) => p === i).length : N;
    $("note").textContent = `${this.order.length.toLocaleString("en")} of ${all.toLocaleString("en")}${folded() ? " points" : ""}, ${column ? `by ${column.name}` : "the best first"}`;
    this.rows(true);
  },
  rows(all) {
    const n = this.order.length, room = 60, first = clamp(Math.floor(this.scroll.scrollTop / this.high) - 20, 0, Math.max(0, n - room)) & ~1;
    if (!all && first === this.first) return;
    this.first = first;
    const some = this.order.slice(first, first + room), gap = (k) => `<tr class="spacer" aria-hidden="true"><td colspan="${this.columns.length}" style="height:${k * this.high}px"></td></tr>`;
    this.body.innerHTML = (first ? gap(first) : "") + some.map((i) => `<tr data-i="${i}" tabindex="0">` + this.columns.map((c, k) => `<td${c.words ? ' class="t"' : ""}>${k === 0 ? `<i style="background:${i === best ? ink.best : colour(i)}"></i>` : ""}${escaped(c.text(i))}</td>`).join("") + "</tr>").join("") + (n > first + room ? gap(n - first - room) : "");
    this.hover(model.hover >= 0 ? model.hover : model.pinned);
  },
  hover(i) { for (const tr of this.body.children) tr.classList.toggle("on", +tr.dataset.i === i); },
  save() {
    // spreadsheets take texts that begin with these characters for formulas
    const plain = (v) => typeof v === "string" && /^[=+\-@\t\r]/.test(v) && Number.isNaN(Number(v)) ? `'${v}` : String(v);
    const quote = (v) => { const s = v === null || v === undefined || Number.isNaN(v) ? "" : plain(v); return /[",\n\r]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s; };
    const text = [this.columns.map((c) => quote(c.name)), ...this.order.map((i) => this.columns.map((c) => quote(c.key(i))))].map((r) => r.join()).join("\r\n");
    const a = make(document.body, "a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${E[0].name}.csv` });
    a.click();
    a.remove();
  } };
