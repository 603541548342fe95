/* Colours of trials, the trial under the pointer, and pinned trials. */

/* Six hues that remain distinct (CIE76 above 29) in normal vision and in each kind of
 * dichromatic vision, differ by 24 from that of the best trial, and have a contrast above
 * 3:1. */
const HUES = { light: ["#598df9", "#650e17", "#849860", "#66345c", "#be7ca2", "#1e358f"], dark: ["#76ace1", "#916f03", "#d4f0ba", "#c73a54", "#56fbf5", "#675bc0"] };
const RAMP = { light: ["#b38a12", "#778a63", "#3a6f95", "#122c6b"], dark: ["#4a6cbb", "#5c8fa6", "#a9b36a", "#ffe066"] };
let colour = () => "#888", ink = {};

function recolour() {
  const theme = dark() ? "dark" : "light", hues = HUES[theme], key = $("colour").value, legend = $("legend");
  const ramp = d3.interpolateRgbBasis(RAMP[theme]), steps = d3.range(65).map((k) => ramp(k / 64));
  ink = { faint: css("--faint"), best: css("--best"), ink: css("--ink"), ink3: css("--ink3"), card: css("--card"), accent: css("--accent"),
          states: D.states.map((_, k) => css(`--s${k}`)), ends: D.ends.map((_, k) => css(`--e${k}`)) };
  const named = (names, colours) => names.slice(0, 6).map((n, k) => `<span><i style="background:${colours[k]}"></i>${escaped(short(n, 18))}</span>`).join("") + (names.length > 6 ? ` +${names.length - 6} grey` : "");
  const scale = (lo, hi) => `${escaped(lo)} <i class="ramp" style="background:linear-gradient(90deg,${steps.join()})"></i> ${escaped(hi)}`;
  const a = params.find((p) => `p ${p.name}` === key);
  if (key === "state") { colour = (i) => ink.states[T.state[i]]; const used = D.states.map((_, k) => k).filter((k) => T.state.includes(k)); legend.innerHTML = named(used.map((k) => D.states[k]), used.map((k) => ink.states[k])); }
  else if (key === "exp") { colour = (i) => hues[T.exp[i] % hues.length]; legend.innerHTML = named(E.map((e) => e.name), hues); }
  else if (key === "rung") { const k = Math.max(1, levels - 1); colour = (i) => reached[i] < 0 ? ink.ink3 : steps[Math.round(64 * reached[i] / k)]; legend.innerHTML = scale(num(R.lengths[0]), num(R.lengths[levels - 1])); }
  else if (a && a.table) { const most = Math.min(a.table.length, hues.length); colour = (i) => a.v[i] === null ? ink.ink3 : a.v[i] < most ? hues[a.v[i]] : ink.ink3; legend.innerHTML = named(a.table, hues); }
  else if (a) { colour = (i) => Number.isNaN(a.u[i]) ? ink.ink3 : steps[Math.round(64 * a.u[i])]; legend.innerHTML = scale(num(a.scale.domain()[0], 3), num(a.scale.domain()[1], 3)); }
  else { const k = Math.max(1, byValue.length - 1); colour = (i) => place[i] < 0 ? ink.ink3 : steps[Math.round(64 * (1 - place[i] / k))]; legend.innerHTML = byValue.length ? scale(`worst`, `best`) : ""; }
}

// --- the trial under the pointer --------------------------------------------

function facts(i) {
  const rows = metrics.map((m) => [m.name, num(m.v[i], 5)]).concat(D.repeats ? [["deviation", num(T.deviation[i], 3)], ["n", num(T.n[i])], ["own value", num(real(T.best[i]), 5)]] : [], ranked.slice(0, 14).filter((p) => p.text(i) !== "–").map((p) => [p.name, p.text(i)]),
    [["length", num(T.length[i])], ["time", `${span(T.seconds[i])}, ${T.attempts[i]} attempt${T.attempts[i] === 1 ? "" : "s"}`]], D.whys[T.why[i]] ? [["why", D.whys[T.why[i]]]] : []);
  return `<b>Trial ${escaped(label(i))}</b> <span class="dim">${escaped(D.states[T.state[i]])}${place[i] >= 0 ? `, rank ${place[i] + 1}` : ""}</span>`
    + `<dl>${rows.map((r) => `<dt>${escaped(r[0])}</dt><dd>${escaped(r[1])}</dd>`).join("")}</dl>`;
}

function point(i, e, html) {
  const tip = $("tip");
  if (i !== model.hover) { model.hover = i; touch(HOVER); }
  tip.hidden = i < 0 && !html;
  if (tip.hidden) return;
  tip.innerHTML = html || facts(i);
  const x = e.clientX + 16, y = e.clientY + 16;
  tip.style.left = (x + tip.offsetWidth > innerWidth - 8 ? Math.max(4, e.clientX - tip.offsetWidth - 16) : x) + "px";
  tip.style.top = Math.max(4, Math.min(y, innerHeight - tip.offsetHeight - 8)) + "px";
}

/* Show up to four trials side by side and highlight the differences. */
function pin(i) {
  model.pins = model.pins.includes(i) ? model.pins.filter((k) => k !== i) : model.pins.concat(i).slice(-4);
  model.pinned = model.pins.length ? model.pins[model.pins.length - 1] : -1;
  showPins();
  touch(HOVER);
  remember();
}

function pinRows(i) {
  return [["state", D.states[T.state[i]]], ["rank", place[i] < 0 ? "–" : String(place[i] + 1)], ...metrics.map((m) => [m.name, num(m.v[i], 5)]), ...(D.repeats ? [["deviation", num(T.deviation[i], 3)], ["n", num(T.n[i])], ["own value", num(real(T.best[i]), 5)]] : []),
    ...ranked.map((p) => [p.name, p.text(i)]), ["length", num(T.length[i])], ["time", span(T.seconds[i])], ["attempts", String(T.attempts[i])], ["condition", T.condition[i]],
    ["host", D.hosts[T.host[i]] || "–"], ["why", D.whys[T.why[i]] || "–"], ["checkpoint", T.step[i] < 0 ? "–" : `step ${num(T.step[i])}`]];
}

function showPins() {
  const box = $("detail"), pins = model.pins;
  box.hidden = !pins.length;
  box.textContent = "";
  if (!pins.length) return;
  const head = make(box, "header");
  make(head, "h2", {}, pins.length > 1 ? `${pins.length} trials pinned` : "Pinned");
  make(head, "button", { type: "button", "aria-label": "Close" }, "✕").onclick = () => { model.pins = []; model.pinned = -1; showPins(); touch(HOVER); remember(); };
  const table = make(box, "table"), top = make(make(table, "thead"), "tr");
  make(top, "td");
  for (const i of pins) make(make(top, "th", { scope: "col" }), "button", { type: "button", title: "Remove" }, label(i)).onclick = () => pin(i);
  const body = make(table, "tbody"), columns = pins.map(pinRows);
  columns[0].forEach(([name], k) => {
    const texts = columns.map((c) => c[k][1]);
    if (texts.every((t) => t === "–")) return;
    const tr = make(body, "tr", { class: texts.some((t) => t !== texts[0]) ? "differs" : "" });
    make(tr, "th", { scope: "row" }, name);
    for (const text of texts) make(tr, "td", { title: text }, text);
  });
  if (pins.length === 1) for (const w of ["show", "logs", "fork --seeds 5"]) {
    const row = make(box, "div", { class: "copy" });
    make(row, "code", {}, `dl ${w} ${shell(E[T.exp[pins[0]]].name)} ${numbered(pins[0])}`);
    make(row, "button", { type: "button", "data-copy": "" }, "Copy");
  }
}

/* Follow the pointer over a surface.  nearest(x, y) returns a trial or -1. */
function follow(el, s, nearest) {
  s.svg.addEventListener("pointermove", (e) => {
    if (e.buttons) return point(-1);
    const r = s.svg.getBoundingClientRect();
    point(nearest(e.clientX - r.left - s.m.left, e.clientY - r.top - s.m.top), e);
  });
  s.svg.addEventListener("pointerleave", (e) => point(-1, e));
  s.svg.addEventListener("click", () => { if (model.hover >= 0) pin(model.hover); });
}

function closest(x, y, limit, px, py, trialOf, n) {
  let found = -1, least = limit * limit;
  for (let k = 0; k < n; k++) {
    const dx = px[k] - x, dy = py[k] - y, d = dx * dx + dy * dy;
    if (d < least && model.mask[trialOf ? trialOf[k] : k]) { least = d; found = trialOf ? trialOf[k] : k; }
  }
  return found;
}

function choose(tools, label, options, value, then) {
  const l = make(tools, "label", {}, label + " "), s = make(l, "select");
  for (const [k, text] of options) make(s, "option", { value: k }, text);
  s.value = value;
  s.onchange = () => then(s.value);
  return s;
}
