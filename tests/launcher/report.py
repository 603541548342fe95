# SPDX-License-Identifier: Apache-2.0
"""The pages of dl report in a browser: report.py DIR prints TAP without a plan.

DIR has media.html, rungs.html, hostile.html, several.html, repeats.html, many.html, one.html, none.html.
"""
import base64
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

folder = os.path.abspath(sys.argv[1])
shots = os.environ.get("DL_TEST_SHOTS")     # write screenshots to this folder
b = Browser(os.environ.get("CHROMIUM", "chromium"))


def ok(good, name, *more):
    print(f"{'ok' if good else 'not ok'} - {name}" + ("" if good else "".join(f"\n# {m}" for m in more)), flush=True)


def page(name, **how):
    b.open(os.path.join(folder, name + ".html"), **how)
    settle()


def settle():
    """Wait until every view is drawn and no frame is pending."""
    b.wait("report.views.every((v) => !v.visible || v.dirty === 0)")
    b.wait("new Promise((r) => setTimeout(() => r(true), 300))")  # runs again if the page reloads


def shot(name):
    if shots:
        with open(os.path.join(shots, name + ".png"), "wb") as f:
            f.write(base64.b64decode(b("Page.captureScreenshot", captureBeyondViewport=True)["data"]))


def silent(name):
    found = b.complaints()
    ok(not found, f"{name}: no complaint of the browser", *found)


def text(selector):
    return b.js(f"document.querySelector({selector!r}).textContent")


VIEWS = ["curves", "history", "parallel", "slices", "surfaces", "rungs", "tradeoff", "failures", "timeline", "gpus", "table"]

# Each view must have ink on its canvas or marks, stay inside its card, and draw no NaN.
CHECK = """(() => {
  const found = [];
  for (const id of %s) {
    const card = document.getElementById(id);
    if (card.hidden) continue;
    const box = card.getBoundingClientRect();
    if (box.width < 200 || box.height < 40) found.push(id + ": has no size");
    for (const e of card.querySelectorAll("svg *")) {
      for (const a of e.attributes) if (/NaN|Infinity|undefined/.test(a.value)) found.push(`${id}: ${e.tagName} ${a.name}=${a.value.slice(0, 60)}`);
      const r = e.getBoundingClientRect();
      if (r.width && e.tagName === "text" && e.closest(".wide-plot") === null && (r.left < box.left - 1 || r.right > box.right + 1)) found.push(`${id}: text beyond the card: ${e.textContent}`);
    }
    const canvas = [...card.querySelectorAll("canvas")];
    if (canvas.length && !canvas.some((c) => c.width && c.height && c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v, k) => k %% 4 === 3 && v > 0)) && %s) found.push(id + ": nothing is drawn");
  }
  return found;
})()"""


def views(name, hidden=(), empty=False):
    import json
    found = b.js(CHECK % (json.dumps(VIEWS), "false" if empty else "true"))
    ok(not found, f"{name}: each view is drawn, in its card, without NaN", *found[:10])
    gone = [v for v in VIEWS if b.js(f"document.getElementById('{v}').hidden")]
    ok(sorted(gone) == sorted(hidden), f"{name}: what does not apply is not there", f"hidden: {gone}, wanted: {sorted(hidden)}")


def contrast(name):
    """Check the contrast of every visible text (WCAG AA: 4.5), and of marks and control edges on the card (3)."""
    low = b.js("""(() => {
      const d = document.createElement("canvas").getContext("2d", { willReadFrequently: true }), css = (n) => getComputedStyle(document.documentElement).getPropertyValue(n).trim();
      const over = (c, under, alpha = 1) => { d.globalAlpha = 1; d.fillStyle = under; d.fillRect(0, 0, 1, 1); d.globalAlpha = alpha; d.fillStyle = c; d.fillRect(0, 0, 1, 1); return `rgb(${[...d.getImageData(0, 0, 1, 1).data].slice(0, 3)})`; };
      const lum = (c) => { const p = c.match(/[0-9]+/g).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2]; };
      const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
      const behind = (e) => e ? over(getComputedStyle(e).backgroundColor, behind(e.parentElement)) : "rgb(255,255,255)";
      const inside = (r, x, y) => r.left <= x && x <= r.right && r.top <= y && y <= r.bottom;
      const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      let texts = 0;
      for (let t; (t = walk.nextNode());) {
        const e = t.parentElement, s = getComputedStyle(e), r = e.getBoundingClientRect(), svg = e.closest("svg"), big = parseFloat(s.fontSize) >= 24;
        if (!t.textContent.trim() || !r.width || s.visibility === "hidden" || /^(script|style|title|option)$/i.test(e.tagName)) continue;
        let on = behind(e);
        if (svg) for (const q of svg.querySelectorAll("rect")) {
          const z = getComputedStyle(q);
          if (z.fill !== "none" && z.visibility !== "hidden" && inside(q.getBoundingClientRect(), r.x + r.width / 2, r.y + r.height / 2) && q.compareDocumentPosition(e) & 4) on = over(z.fill, on, z.fillOpacity * z.opacity);
        }
        const k = ratio(over(svg ? s.fill : s.color, on), on);
        texts++;
        if (k < (big ? 3 : 4.5)) found.push(`${t.textContent.slice(0, 30)}: ${k.toFixed(2)}`);
      }
      if (texts < 100) found.push(`${texts} texts`);
      const card = over(css("--card"), "white");
      for (const c of ["--edge", "--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--e0", "--e1", "--e2", "--e3", "--e4", "--e5"]) if (ratio(over(css(c), card), card) < 3) found.push(`${c}: ${ratio(over(css(c), card), card)}`);
      return found;
    })()""")
    ok(not low, f"{name}: contrast", *low[:10])


def center(selector, fx=0.5, fy=0.5):
    r = b.js(f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; }})()")
    return r[0] + r[2] * fx, r[1] + r[3] * fy


def selected():
    return b.js("report.model.shown.length")


# ---- each kind of search

def brushes(n):
    """A brush filters all other views."""
    x, y0 = center("#parallel .hit", 0.5, 0.9)
    _, y1 = center("#parallel .hit", 0.5, 0.5)
    b.drag(x, y0, x, y1)
    settle()
    part = selected()
    ok(0 < part < n, "a brush on an axis selects a part", part)
    ok(text("#count").startswith(f"{part:,} of"), "the number of selected trials is told", text("#count"))
    ok(text("#note").startswith(f"{part:,} of"), "the table has the selected", text("#note"))
    ok(len(b.js("location.hash")) > 5, "the address keeps the filter")
    ok(b.js("document.querySelectorAll('#slices .brush[visibility=visible]').length") == 1, "the same brush is in the parameter's own view")
    b.js("document.querySelector('.chip button').click()")
    ok(selected() == n - part, "the other trials instead", selected())
    b.js("document.querySelector('.chip button').click()")
    b.js("document.querySelector('[data-state]').click()")
    settle()
    both = selected()
    b("Page.reload")
    b.wait("window.reportStats && reportStats.first > 0 && report.model.filters.size === 2")
    ok(selected() == both, "a new file has the same filters", selected(), both)
    b.js("[...document.querySelectorAll('#chips > button')].pop().click()")
    ok(selected() == n, "all filters are removed")


def keyboard(n):
    b.js("document.querySelector('#slices .hit').focus()")
    b.key("Enter")
    ok(0 < selected() < n, "Enter sets a range", selected())
    b.key("ArrowRight")
    b.key("Escape")
    ok(selected() == n, "Escape removes it")
    b.js("document.activeElement.blur()")
    b.key("/")
    ok(b.js("document.activeElement.id") == "search", "/ goes to the filter of the table")
    b.js("(() => { const s = document.getElementById('search'); s.value = 'state == failed'; s.oninput({ target: s }); })()")
    failed = b.js("JSON.parse(document.getElementById('data').textContent).trial.state.filter((s) => s === 5).length")
    ok(selected() == failed, "words in the table's filter", selected(), failed)
    b.js("(() => { const s = document.getElementById('search'); s.value = ''; s.oninput({ target: s }); s.blur(); })()")


def hover_and_pin():
    x, y = center("#rungs canvas", 0.15, 0.5)
    for dy in range(-80, 81, 4):
        b.move(x, y + dy)
        if b.js("report.model.hover") >= 0:
            break
    b.js("new Promise((r) => setTimeout(r, 200))")
    i = b.js("report.model.hover")
    ok(i >= 0 and not b.js("document.getElementById('tip').hidden"), "hover: the trial is told")
    ok(text("#tip").startswith(f"Trial {i + 1} "), "hover: it is that trial", text("#tip"))
    ok(b.js("document.querySelector('#parallel path.hover').getAttribute('d').length") > 10, "hover: shown in other views, too")
    b.js("document.querySelector('#table tbody tr[data-i]').click()")
    ok(not b.js("document.getElementById('detail').hidden") and "dl show" in text("#detail"), "a click pins a trial, with its commands")
    b.js("document.querySelectorAll('#table tbody tr[data-i]')[3].click()")
    ok(b.js("document.querySelectorAll('#detail thead th').length") == 2, "two trials side by side")
    b.js("document.querySelector('#detail header button').click()")


def choices():
    """Choose the value at a rung, the means of groups, and each entry of each list."""
    b.js("report.useValue('0')")
    settle()
    ok("at 1" in b.js("document.querySelector('#history .name').textContent"), "the value at a rung is chosen")
    b.js("report.useValue('best')")
    for value in b.js("[...[...document.querySelectorAll('#curves select')].pop().options].map((o) => o.value)"):
        b.js(f"(() => {{ const s = [...document.querySelectorAll('#curves select')].pop(); s.value = {value!r}; s.onchange(); }})()")
        settle()
        bands = b.js("document.querySelectorAll('#curves .band').length")
        ok(bands > 0 or not value, f"curves: mean by {value or 'none'}", bands)
    found = b.js(CHECK % ('["curves"]', "true"))
    ok(not found, "curves: bands are drawn", *found[:5])
    for value in b.js("[...document.getElementById('colour').options].map((o) => o.value)"):
        b.js(f"(() => {{ const s = document.getElementById('colour'); s.value = {value!r}; s.onchange(); }})()")
    for k in range(b.js("document.querySelectorAll('.tools select').length")):
        b.js(f"(() => {{ const s = document.querySelectorAll('.tools select')[{k}]; for (const o of [...s.options].reverse()) {{ s.value = o.value; s.onchange(); }} }})()")


def rungs():
    page("rungs")
    silent("rungs")
    views("rungs", ["tradeoff"])
    shot("rungs-light")
    contrast("light")
    n = selected()
    ok(text("#note") == f"{n:,} of {n:,}, the best first", "table: all trials", text("#note"))
    ok("at 1" in text("#slices-note"), "slices: compared at one length", text("#slices-note"))
    best = b.js("JSON.parse(document.getElementById('data').textContent).metrics[0].v.filter((v) => typeof v === 'number').reduce((a, c) => Math.min(a, c))")
    ok(abs(float(text(".value")) - best) < 1e-4 * abs(best), "summary: the best value is that of the data", text(".value"), best)
    brushes(n)
    keyboard(n)
    hover_and_pin()
    choices()
    settle()
    views("rungs, all choices", ["tradeoff"])
    silent("rungs, all choices")


def dark():
    b("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page("rungs")
    ok(b.js("getComputedStyle(document.body).color") == "rgb(231, 233, 236)", "dark: as the system says")
    contrast("dark")
    views("dark", ["tradeoff"])
    shot("rungs-dark")
    b.js("document.getElementById('theme').click()")
    settle()
    ok(b.js("getComputedStyle(document.body).color") == "rgb(27, 29, 32)", "light: by the button")
    b.js("document.getElementById('theme').click(); localStorage.clear()")
    b("Emulation.setEmulatedMedia", features=[])


def print_out():
    pdf = base64.b64decode(b("Page.printToPDF", printBackground=True)["data"])
    ok(pdf[:5] == b"%PDF-" and 20000 < len(pdf) < 20e6, "print: a PDF", len(pdf))
    pages = pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page>")
    ok(pages < 40, "print: not the whole table's height", pages)
    if shots:
        with open(os.path.join(shots, "print.pdf"), "wb") as f:
            f.write(pdf)
    silent("print")


def logged():
    page("logged")
    names = b.js("[...document.querySelectorAll('#table thead th')].map((e) => e.textContent)")
    ok(names[:5] == ["trial", "state", "loss", "acc", "bad"], "logged: the table has the metrics that are not optimised", names)
    cells = b.js("[...document.querySelectorAll('#table tbody tr[data-i] td')].slice(2, 5).map((e) => e.textContent)")
    ok(cells[1] == "0.5", "logged: with their newest values", cells)


def phone():
    page("rungs", wide=390, high=4000)
    views("phone", ["tradeoff"])
    ok(b.js("document.documentElement.scrollWidth") <= 391, "phone: nothing is wider than the page", b.js("document.documentElement.scrollWidth"))
    shot("phone")


def hostile():
    page("hostile")
    silent("hostile")
    views("hostile", ["rungs", "gpus"])
    shot("hostile")
    ok(b.js("window.attacked === undefined && !document.querySelector('main img, main b b, main script, svg script')"), "hostile: no text became markup")
    ok("</script>" in text(".description") and "☃" in text(".description"), "hostile: the description is as it was written")
    names = b.js("[...document.querySelectorAll('#table thead th')].map((e) => e.textContent)")
    ok(any("<b>acc\"'" in n for n in names), "hostile: a metric's name", names)
    ok(b.js("document.querySelectorAll('script').length") == 4, "hostile: no further script")
    saved = b.js("""(() => { let kept; URL.createObjectURL = (blob) => { kept = blob; return "data:,"; };
        HTMLAnchorElement.prototype.click = () => {}; report.views.find((v) => v.id === "table").save(); return kept.text(); })()""")
    ok(",'=ü☃," in saved and ",=" not in saved and "\n=" not in saved, "hostile: no cell that is saved is a formula")
    ok("on the Pareto front" not in text("#chips"), "hostile: nothing is selected")
    b.js("document.querySelector('#tradeoff button').click()")
    ok(0 < selected() < 60, "the Pareto front is selected", selected())
    b.js("document.querySelector('#failures .press').dispatchEvent(new MouseEvent('click'))")
    settle()
    b.js("document.querySelectorAll('#chips > button').forEach((e) => e.click())")
    settle()
    for i in range(6):
        b.js(f"document.querySelectorAll('#table tbody tr[data-i]')[{i}].click()")
    ok(b.js("document.querySelectorAll('#detail thead th').length") == 4, "hostile: four trials side by side")
    shot("pins")
    silent("hostile, pinned")


def others():
    page("several")
    silent("several")
    views("several")
    ok(b.js("document.querySelectorAll('#compare tbody tr').length") == 3, "several: compared")
    ok(b.js("document.getElementById('colour').value") == "exp", "several: coloured by experiment")
    ok(b.js("document.querySelectorAll('#history path[stroke]').length") >= 1, "several: the best so far")
    shot("several")
    page("repeats")
    silent("repeats")
    views("repeats", ["rungs", "tradeoff", "gpus"])
    n = selected()
    ok("mean of 3" in text(".answer") and "· point " in text(".answer"), "repeats: mean and deviation of the best", text(".answer"))
    ok(text("#history text.best").startswith("best so far ") and "mean of 3, point " in text("#history text.best"), "repeats: the history is that of means")
    rows = "document.querySelectorAll('#table tbody tr[data-i]').length"
    ok(b.js(rows) * 3 == n and "deviation" in text("#table thead"), "repeats: a row for each point", b.js(rows), n)
    b.js("report.useValue('own')")
    settle()
    ok(b.js(rows) == n, "repeats: a row for each repeat", b.js(rows), n)
    shot("repeats")
    page("live")
    ok(b.js("document.getElementById('state').title").startswith("updated every"), "live: says so")
    made = b.js("JSON.parse(document.getElementById('data').textContent).made")
    page("one")
    silent("one trial")
    views("one trial", ["rungs", "tradeoff", "failures", "surfaces", "gpus", "parallel", "slices"], empty=True)
    page("none")
    silent("no trial")
    views("no trial", ["rungs", "tradeoff", "failures", "surfaces", "gpus", "parallel", "slices"], empty=True)
    return made


def renewed(made):
    """An open page loads the file that replaced it."""
    path = os.path.join(folder, "live.html")

    def replace(old, new):
        with open(path) as f:
            page_text = f.read().replace(f'"made":{old}', f'"made":{new}', 1)
        with open(path + ".new", "w") as f:
            f.write(page_text)
        os.rename(path + ".new", path)

    now = int(time.time())
    replace(made, now)          # as if dl had just written it
    page("live")
    b.js("document.querySelector('[data-state]').click()")
    settle()
    n = selected()
    replace(now, now + 1)
    b.wait(f"JSON.parse(document.getElementById('data').textContent).made === {now + 1} && window.report", 200)
    ok(selected() == n and b.js("report.model.filters.size") == 1, "an open page takes the new file and keeps its filters")


def many():
    page("many")
    silent("10,000 trials")
    views("10,000 trials", ["rungs", "tradeoff", "gpus"], empty=False)
    print(f"# 10,000 trials: first drawn after {b.js('Math.round(reportStats.first)')} ms", flush=True)
    ok(b.js("document.querySelectorAll('#table tbody tr').length") < 100, "10,000 trials: few rows in the document")
    shot("many")


def no_script():
    b("Emulation.setScriptExecutionDisabled", value=True)
    page_name = os.path.join(folder, "rungs.html")
    b.events.clear()
    b("Page.navigate", url="file://" + page_name)
    while not any(e["method"] == "Page.loadEventFired" for e in b.events):
        b.events.append(b.message(300))
    root = b("DOM.getDocument", depth=1)["root"]["nodeId"]

    def count(selector):
        return len(b("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"])
    said = b("DOM.getOuterHTML", nodeId=b("DOM.querySelector", nodeId=root, selector="noscript")["nodeId"])["outerHTML"]
    ok("need JavaScript" in said, "no JavaScript: a sentence says so", said)
    ok(count("#table tbody tr") == 50, "no JavaScript: the best trials", count("#table tbody tr"))
    node = b("DOM.querySelector", nodeId=root, selector="#parallel")["nodeId"]
    style = {p["name"]: p["value"] for p in b("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"]}
    ok(style["display"] == "none", "no JavaScript: views that need it are left out")
    shot("noscript")
    b("Emulation.setScriptExecutionDisabled", value=False)


def media():
    page("media")
    ok(b.js("[...document.querySelectorAll('#media canvas')].map((c) => c.width).sort().join()") == ",".join(["134"] * 6 + ["2"] * 6), "media: the images")
    pixel = "[...document.querySelector('#media canvas[data-channels=\"%d\"]').getContext('2d').getImageData(%d, 1, 1, 1).data].join()"
    painted = [b.js(pixel % (3, 2)), b.js(pixel % (1, 0))]
    ok(painted == ["3,0,255,255", "128,128,128,255"], "media: the page paints them", painted)
    ok("attacked = 1" in text("#media") and b.js("typeof attacked") == "undefined", "media: a text is text")
    silent("media")
    b("Emulation.setDeviceMetricsOverride", width=700, height=3000, deviceScaleFactor=1, mobile=False)
    fits = "report.views.every((v) => !v.visible || v.card.hidden || v.wide === v.el.clientWidth)"
    b.wait("innerWidth === 700 && " + fits)
    b("Emulation.setDeviceMetricsOverride", width=1400, height=3000, deviceScaleFactor=1, mobile=False)
    b.wait("innerWidth === 1400 && " + fits)
    settle()
    ok(b.js("document.querySelector('#curves .plot svg').getBoundingClientRect().width") > 600, "the views have the width of the page")
    shot("media")


try:
    b("DOM.enable")
    b("CSS.enable")
    rungs()
    dark()
    print_out()
    logged()
    phone()
    hostile()
    media()
    renewed(others())
    many()
    no_script()
except Exception as e:     # report a failure in TAP as well as a traceback
    ok(False, "the browser's test runs to its end", repr(e))
    raise
finally:
    b.close()
