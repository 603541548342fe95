/* The page: its controls, its address, its updates, and the start of all views. */

function chips() {
  const box = $("chips");
  $("count").textContent = model.filters.size ? `${model.shown.length.toLocaleString("en")} of ${N.toLocaleString("en")} trials` : "All trials";
  box.textContent = "";
  for (const [key, f] of model.filters) {
    const chip = make(box, "span", { class: "chip" });
    make(chip, "button", { type: "button", "aria-pressed": Boolean(f.not), title: "Keep the others instead" }, f.not ? `not ${f.label}` : f.label).onclick = () => model.negate(key);
    make(chip, "button", { type: "button", "aria-label": `Remove the filter ${f.label}` }, "✕").onclick = () => { if (key === "search") $("search").value = ""; model.set(key, "", null); };
  }
  if (model.filters.size > 1) make(box, "button", { type: "button" }, "Clear all").onclick = () => { $("search").value = ""; for (const key of [...model.filters.keys()]) model.set(key, "", null); };
  const on = model.filters.get("state");
  document.querySelectorAll("[data-state]").forEach((b) => b.setAttribute("aria-pressed", Boolean(on && on.label === b.children[1].textContent)));
}

function useValue(which) {
  $("value").value = which;
  revalue(which);
  model.shown = painted.filter((i) => model.mask[i]);
  recolour();
  touch(LAYOUT);
  remember();
}

// --- the address keeps what is selected, also when a new file is loaded --------

const restorers = {
  axis: (name, lo, hi) => { const a = ranked.concat(outcome).find((k) => k.name === name); if (a) filterAxis(a, lo, hi); },
  state: (k) => model.set("state", D.states[k], (i) => T.state[i] === k, null, ["state", k]),
  rung: (k) => { if (k < levels) model.set("rung", `reached length ${R.lengths[k]}`, (i) => reached[i] >= k, null, ["rung", k]); },
  cause: (text) => { const c = A.causes.indexOf(text), set = failures.why.get(c); if (set) model.set("cause", `failed: ${short(text, 30)}`, (i) => set.has(i), null, ["cause", text]); },
  front: () => { if (tradeoff.press) tradeoff.press(); },
  search: (text) => { $("search").value = text; table.search(text); },
  history: (mode, lo, hi) => { history.by.value = history.mode = mode; history.where(); history.filter(lo, hi); },
  time: (lo, hi) => { timeline.filter(lo, hi); },
  ends: (name, lo, hi) => { curves.filter(name, lo, hi); },
};

let recalling = false;
function remember() {
  if (recalling) return;
  const state = { f: [...model.filters.values()].filter((f) => f.spec).map((f) => f.not ? ["not"].concat(f.spec) : f.spec), c: $("colour").value, v: choice, p: model.pins };
  const plain = !state.f.length && !state.p.length && state.v === "best" && $("colour").selectedIndex === (E.length > 1 ? 2 : 0);
  const hash = plain ? "" : "#" + encodeURIComponent(JSON.stringify(state));
  if (hash === location.hash || (plain && !location.hash)) return;
  try { window.history.replaceState(null, "", hash || location.pathname + location.search); } catch (e) { location.replace(hash || "#"); }
}

function recall() {
  let state;
  try { state = JSON.parse(decodeURIComponent(location.hash.slice(1))); } catch (e) { return; }
  if (!state || !Array.isArray(state.f)) return;
  recalling = true;
  if ([...$("colour").options].some((o) => o.value === state.c)) { $("colour").value = state.c; recolour(); }
  if ([...$("value").options].some((o) => o.value === String(state.v)) && state.v !== "best") useValue(String(state.v));
  for (const spec of state.f) {
    if (!Array.isArray(spec)) continue;
    const not = spec[0] === "not", [kind, ...args] = not ? spec.slice(1) : spec;
    const before = new Set(model.filters.keys());
    if (Object.prototype.hasOwnProperty.call(restorers, kind)) restorers[kind](...args);
    if (not) for (const key of model.filters.keys()) if (!before.has(key)) model.negate(key);
  }
  model.pins = (Array.isArray(state.p) ? state.p : []).filter((i) => Number.isInteger(i) && i >= 0 && i < N).slice(0, 4);
  model.pinned = model.pins.length ? model.pins[model.pins.length - 1] : -1;
  showPins();
  recalling = false;
}

/* A page with a file: address cannot fetch, so it reloads itself; the address of the page
 * keeps its state.  It does not reload while the user drags or types, and reloads less and
 * less often if nothing changes. */
function live() {
  const age = () => Date.now() / 1000 - D.made;
  let down = false;
  addEventListener("pointerdown", () => { down = true; }, true);
  addEventListener("pointerup", () => { down = false; }, true);
  $("state").title = `updated every ${span(D.live)}; last at ${new Date(D.made * 1000).toLocaleTimeString()}`;
  $("state").classList.add("live");
  (function wait() {
    const stale = age() > 5 * D.live;
    if (stale) $("state").classList.remove("live");
    setTimeout(() => {
      const typing = /INPUT|SELECT/.test(document.activeElement ? document.activeElement.tagName : "");
      if (down || typing || document.hidden || model.hover >= 0) wait(); else { remember(); location.reload(); }
    }, 1000 * (stale ? Math.min(600, age() / 2) : Math.max(2, D.live)));
  })();
}

/* Rows start at the top.  1 to 4 channels are grey, grey and alpha, RGB, and RGBA. */
function paintImage(canvas) {
  const raw = atob(canvas.dataset.pixels), n = +canvas.dataset.channels, colour = n > 2, at = (i) => raw.charCodeAt(i);
  const image = new ImageData(canvas.width, canvas.height);
  for (let i = 0, p = 0; p < raw.length; i += 4, p += n) image.data.set([at(p), at(colour ? p + 1 : p), at(colour ? p + 2 : p), n % 2 ? 255 : at(p + n - 1)], i);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function start() {
  const colours = $("colour");
  const options = [["value", main.name], ["state", "state"], ...(E.length > 1 ? [["exp", "experiment"]] : []), ...(levels > 1 ? [["rung", "rung reached"]] : []), ...ranked.map((p) => [`p ${p.name}`, p.name])];
  for (const [k, text] of options) make(colours, "option", { value: k }, text);
  if (E.length > 1) colours.value = "exp";
  colours.onchange = () => { recolour(); touch(LAYOUT); remember(); };
  const values = [["best", D.repeats ? "mean of repeats" : "result"], ...(levels > 1 ? R.lengths.map((l, k) => [k, `at length ${num(l)}`]) : []), ...(D.repeats ? [["own", "each repeat"]] : [])];
  $("value-label").hidden = values.length < 2;
  for (const [k, text] of values) make($("value"), "option", { value: k }, text);
  $("value").onchange = () => useValue($("value").value);
  $("theme").onclick = () => {
    const theme = document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("dl-theme", theme); } catch (e) { /* a file: page may have no storage */ }
    recolour();
    touch(LAYOUT);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { recolour(); touch(LAYOUT); });
  document.querySelectorAll("[data-state]").forEach((b) => {
    const k = +b.dataset.state;
    b.onclick = () => model.toggle("state", D.states[k], (i) => T.state[i] === k, ["state", k]);
  });
  document.addEventListener("click", (e) => {
    const b = e.target.closest("[data-copy]");
    if (!b) return;
    const code = b.parentNode.querySelector("code"), done = () => { b.textContent = "Copied"; setTimeout(() => { b.textContent = "Copy"; }, 1200); };
    const select = () => { getSelection().selectAllChildren(code); if (document.execCommand("copy")) done(); };     // a file: page has no clipboard in some browsers
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && model.pinned >= 0) pin(model.pinned);
    if (e.key === "/" && !/INPUT|SELECT/.test(e.target.tagName)) { e.preventDefault(); $("search").focus(); }
  });
  document.querySelectorAll("canvas[data-pixels]").forEach(paintImage);
  recolour();
  timeline.times();
  for (const v of [curves, history, parallel, slices, surfaces, rungs, tradeoff, failures, timeline, gpus, table]) view(v);
  recall();
  chips();
  if (D.live) live();
  const seen = new IntersectionObserver((entries) => {
    for (const e of entries) { const v = views.find((o) => o.card === e.target); v.visible = e.isIntersecting; if (v.visible && v.dirty) touch(0, v); }
    if (!stats.first) requestAnimationFrame(() => { stats.first = performance.now(); });
  }, { rootMargin: "200px" });
  views.forEach((v) => seen.observe(v.card));
  // of the window, or because the browser did not know the size of the page at first
  new ResizeObserver(() => { for (const v of views) if (v.wide !== undefined && v.wide !== v.el.clientWidth) touch(LAYOUT, v); }).observe(document.querySelector("main"));
  let theme;
  const all = (to) => { document.documentElement.dataset.theme = to; recolour(); views.forEach((v) => { v.dirty |= LAYOUT; draw(v); }); };
  addEventListener("beforeprint", () => { theme = document.documentElement.dataset.theme; all("light"); });
  addEventListener("afterprint", () => all(theme));
  window.report = { model, views, filterAxis, axes: ranked, useValue, label };
}

start();
