#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl report: the file, --watch, and the page in headless Chromium.
. "$srcdir/tests/lib.sh"
make=$builddir/tests/launcher/makesweep
space='hyperparameters = { lr = { type = "log"; minval = -5; maxval = -1; }; width = { type = "int"; minval = 1; maxval = 8; };
    opt = { type = "categorical"; vals = ("adam", "sgd", "lion"); };
    momentum = { type = "float"; minval = 0; maxval = 0.99; when = { opt = "sgd"; }; }; };'
conf () { # conf NAME SEARCHER RESOURCES [MORE]: with the space above
    printf 'name = "%s"; entrypoint = "true";\nsearcher = { metric = "loss"; %s };\nresources = { %s };\nmax_restarts = 1;\n%s\n%s\n%s\n' \
        "$1" "$2" "$3" 'reproducibility = { experiment_seed = 7; };' "$space" "${4:-}" >"$1.conf"
}
conf rungs 'name = "asha"; max_trials = 80; max_length = 27; divisor = 3;' 'workers = 4; slots_per_trial = 1;'
conf repeats 'name = "random"; max_trials = 15; max_length = 10; repeats = 3;' 'workers = 4;'
conf many 'name = "random"; max_trials = 10000; max_length = 1;' 'workers = 60;'
conf one 'name = "single"; max_length = 3;' 'workers = 1;'
sed -i 's/^hyperparameters.*/hyperparameters = { lr = 1; };/; /^    opt/d; /^    momentum/d' one.conf
cat >hostile.conf <<'END'
name = "hostile"; description = "</script><script>attacked = 1</script><b>x</b> & \"q\" 'x' {{data}} ümläut ☃";
entrypoint = ["train", "</script><img src=x onerror=attacked=1>", "it's"];
searcher = { name = "random"; metric = ("va<l>/lo&ss", "</script><b>acc\"'"); smaller_is_better = (true, false);
    max_trials = 60; max_length = 20; };
hyperparameters = { lr = { type = "log"; minval = -5; maxval = -1; };
    opt = { type = "categorical"; vals = ("<b>&\"'`", "=ü☃", "</script>", ""); };
    n = { type = "categorical"; vals = (1, 0.5, 16); }; };
max_restarts = 0;
resources = { workers = 4; };
END
printf 'name = "none"; entrypoint = "true"; searcher = { metric = "loss"; max_trials = 2; name = "random"; };\nhyperparameters = { x = 1; };\n' >none.conf
for name in rungs hostile repeats one; do
    runs 0 "a sweep is made: $name" "$make" . $name.conf 20
    [ -d $name-0001 ] || sed 's/^/# /' out
done
runs 0 "one of 10,000 trials is made" "$make" . many.conf
sed 's/"rungs"/"live"/' rungs.conf >live.conf
STOP_AFTER=60 "$make" . live.conf 20 >out 2>&1
dl run --local --no-workers none.conf >out 2>&1
cat >logged.conf <<'END'
name = "logged"; entrypoint = "dl log --step 1 loss={lr} acc=0.25; dl log --step 2 loss={lr} acc=0.5 bad=nan";
searcher = { name = "random"; metric = "loss"; max_trials = 2; }; resources = { workers = 1; };
hyperparameters = { lr = { type = "float"; minval = 0; maxval = 1; }; };
END
timeout 300 dl run --local logged.conf >out 2>&1
cat >failed.conf <<'END'
name = "failed"; entrypoint = "[ $DL_TRIAL -gt 5 ] || dl log --step 1 loss={lr}";
searcher = { name = "random"; metric = "loss"; max_trials = 60; }; resources = { workers = 4; }; max_restarts = 0; max_failed = 60;
hyperparameters = { lr = { type = "float"; minval = 0; maxval = 1; }; };
END
timeout 300 dl run --local failed.conf >out 2>&1

# ---- the file
out=$(dl report rungs 2>&1)
if echo "$out" | grep -q 'without D3'; then
    like "$out" '^dl: this dl was built without D3, which dl report needs: install node-d3' "without D3 it says so"
    done_testing
fi
is "$out" rungs-0001.html "it prints the name of the file"
holds "it is small" [ "$(wc -c <rungs-0001.html)" -lt 3000000 ]
dl report rungs -o rungs.html >out 2>&1
is "$(cat out)" rungs.html "-o names another file"
for name in hostile repeats one none logged; do
    runs 0 "report of $name" dl report $name --output=$name.html
done
runs 5 "report of many, whose attempts have no folders" dl report many --output=many.html
like "$(cat out)" "^dl: .*/many-0001/trials/[0-9]*/a.1: missing, although .*\(the rest is on the page\)$" "and says so"
is "$(grep -o '<tr><td>' many.html | wc -l)" 50 "the table has the 50 best"
dl report failed --output=failed.html >out 2>&1
is "$(grep -o '<tr><td>' failed.html | wc -l)" 50 "and no more where most of 60 have no value"
runs 0 "of several" dl report rungs hostile repeats one -o other.html
dl report hostile rungs repeats -o several.html >out 2>&1
is "$(sed -n 's:.*<h1>\(.*\)</h1>.*:\1:p' one.html several.html other.html | tr '\n' ';')" \
    "one-0001;hostile-0001, rungs-0001, repeats-0001;rungs-0001, hostile-0001, repeats-0001 and 1 more;" "the title has the names, three at most"
dl report rungs one -o two.html >out 2>&1
is "$(grep -lE 'id="?compare"' one.html two.html several.html | xargs)" "two.html several.html" "two or more experiments are compared"
grep -q '</script><b>\|<img\|<script>attacked' hostile.html
is $? 1 "no text of an experiment is markup"
is "$(grep -c '<script' hostile.html)" "$(grep -c '<script' one.html)" "nor a script"
nonces () { # nonces FILE: count the different nonces of the scripts and the policy
    grep -o "nonce[-=]\"\{0,1\}[0-9a-f]*" "$1" | grep -o '[0-9a-f]*$' | sort -u | grep -c .
}
is "$(nonces one.html)" 1 "scripts have the nonce of the policy"
holds "which differs in each page" [ "$(grep -o "nonce-[0-9a-f]*" one.html)" != "$(grep -o "nonce-[0-9a-f]*" none.html)" ]
like "$(cat one.html)" "Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-" "nothing else is allowed"
grep -o 'https\{0,1\}://[^" )]*' rungs.html | grep -v '^http://www.w3.org/\|^https://d3js.org\|^https://bl.ocks.org' >urls
is "$(cat urls)" "" "no address but those of namespaces and the licence"
like "$(cat rungs.html)" 'Copyright 2010-2022 Mike Bostock' "the licence of D3 is in it"
cat >data.py <<'END'
import json, re, sys
for name in sys.argv[1:]:
    text = re.search(r'<script id="data"[^>]*>(.*?)</script>', open(name, encoding="utf-8").read(), re.S).group(1)
    def refuse(x):
        raise ValueError(x)
    d = json.loads(text, parse_constant=refuse)
    assert "<" not in text
    for c in d["trial"].values():
        assert len(c) == d["n"], name
    for m in d["metrics"] + d["params"]:
        assert len(m["v"]) == d["n"], name
END
runs 0 "the data are strict JSON, and columns are complete" python3 data.py ./*.html
is "$(python3 -c 'import json, re
d = json.loads(re.search(r"<script id=\"data\"[^>]*>(.*?)</script>", open("logged.html").read(), re.S).group(1))
print({c["name"]: c.get("last") for c in d["curves"]})')" "{'loss': None, 'acc': [0.5, 0.5], 'bad': [None, None]}" "the newest values of metrics that are not optimised"

# ---- bad input
ln -s other.html link.html
dl report one -o link.html >out 2>&1
holds "a symbolic link stays one" [ -h link.html ]
dl report one -o . >out 2>&1
is "$? $(cat out)" "2 dl: --output: $work is not a plain file" "a folder is not overwritten"
dl report one -o missing/x.html >out 2>&1
is "$?" 3 "nor is a missing folder created"
dl report nothing >out 2>&1
is "$?" 3 "an experiment that does not exist"

# ---- --watch
dl report one --watch -o w.html >out 2>&1
is "$?" 0 "--watch ends with the experiment"
dl report live --watch --seconds=1 -o live.html >out 2>&1 &
pid=$!
wait_for 60 test -s live.html
inode () { stat -c %i live.html; }
first=$(inode)
changed () { [ "$(inode)" != "$first" ]; }
holds "--watch replaces the file atomically" wait_for 100 changed
cp live.html live.running
dl stop live >out 2>&1
wait $pid
is $? 0 "and ends when it was stopped"
like "$(cat live.html)" 'id="state">stopped<' "with a last file that says so"
mv live.running live.html

# ---- text and images of the best trials
cat >media.c <<'END'
#include <slurmdl.h>
#include <stdio.h>
#include <stdlib.h>

int main (void)
{
    struct slurmdl_error err;
    struct slurmdl *run = slurmdl_open (NULL, &err);
    static unsigned char pixels[400 * 300 * 3];

    for (int i = 0; i < 400 * 300; i++) {
        pixels[3 * i] = (unsigned char)(i % 400 / 2);
        pixels[3 * i + 2] = 255;
    }
    for (int step = 1; step <= 2; step++) {
        slurmdl_log_image (run, "samples", step, 400, 300, 3, pixels);
        slurmdl_log_image (run, "grey", step, 2, 2, 1, (const unsigned char *)"\0\100\200\300");
        slurmdl_log_text (run, "said", step, step == 1 ? "old" : "</pre><script>attacked = 1</script> \"ü\" \033[31m");
        slurmdl_log (run, "loss", step, slurmdl_float (run, "lr", 1));
    }
    slurmdl_close (run);
    return 0;
}
END
runs 0 "a program that logs texts and images" ${CC:-cc} ${CFLAGS:-} -I"$srcdir/runtime" media.c -L"$builddir/runtime/.libs" -lslurmdl -Wl,-rpath,"$builddir/runtime/.libs" -o media
printf 'name = "media"; entrypoint = "./media"; searcher = { name = "random"; metric = "loss"; max_trials = 8; };\n%s\n' \
    'hyperparameters = { lr = { type = "log"; minval = -3; maxval = -1; }; };' >media.conf
timeout 300 dl run --local --workers=2 media.conf >out 2>&1
runs 0 "its report" dl report media -o media.html
cat >media.py <<'END'
import base64, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
section = re.search(r'<section class="card" id="media">.*?</section>', page, re.S).group(0)
images = {}
for name, width, height, channels, data in re.findall(
        r'<canvas role="img" aria-label="([^"]*)" width="(\d+)" height="(\d+)" data-channels="(\d)" data-pixels="([^"]*)"></canvas>', section):
    images[name] = (int(width), int(height), int(channels)), base64.b64decode(data, validate=True)
print(len(re.findall("<figure>", section)), images["grey"], images["samples"][0], images["samples"][1][:4].hex(), len(images["samples"][1]))
print(re.search(r"<pre>(.*?)</pre><figcaption[^>]*>(.*?)</figcaption>", section).group(2))
END
out=$(python3 media.py media.html)
like "$out" '^18 \(\(2, 2, 1\), b.\\x00@\\x80\\xc0.\) \(134, 100, 3\) 0000ff02 40200$' "the newest images of the six best trials"
like "$out" '^trial [1-8]: said, step 2$' "and the newest text"
is "$(grep -c '<script>attacked' media.html)" 0 "which is no markup"
is "$(grep -c 'id="media"' one.html)" 0 "nothing where none was logged"
best=$(dl show --csv --columns=trial --trials=1 media | tail -n 1)
mv "media-0001/trials/000$best/a.1" elsewhere
ln -s "$work/elsewhere" "media-0001/trials/000$best/a.1"
dl report media -o linked.html >out 2>&1
is "$(grep -c "trial $best: said" media.html) $(grep -c "trial $best: said" linked.html)" "1 0" "and nothing from behind a symbolic link"
rm "media-0001/trials/000$best/a.1"

# ---- the table's filter, in the language of --where
cat >expression.js <<'END'
const fs = require("fs");
const compile = eval(fs.readFileSync(process.argv[2], "utf8") + "\ncompileExpression");
const trial = { lr: 0.1, width: 64, optimizer: "adam", state: "failed", "lr max": 2, gone: NaN, five: "5", flag: "true" };
const words = new Set(["optimizer", "state", "five", "flag"]);
const column = (name) => name in trial ? { key: () => trial[name], words: words.has(name) } : undefined;
const cases = [
  ["lr < 0.2", true], ["lr < 0.2 && width == 64", true], ["lr > 1 || width > 63", true], ["not width == 64", false], ["!(width == 64)", false],
  ["optimizer == adam", true], ["optimizer != 'adam'", false], ["optimizer == sgd or state == failed", true], ["width * 2 + 1 == 129", true],
  ["-2^2 == -4", true], ["2^3^2 == 512", true], ["7 % 4 == 3", true], ["log10(lr * 1000) == 2", true], ["min(width, 3, 5) == 3", true],
  ["`lr max` == 2", true], ["gone > 1", null], ["not gone > 1", null], ["gone > 1 || lr < 1", true], ["gone > 1 && lr > 1", false], ["gone > 1 && lr < 1", null],
  ["five == 5", true], ["five == 5.0", true], ["flag == true", true], ["true", true], ["nothing == x", false], ["lr <", "!"], ["lr", "!"], ["adam sgd", "!"], ["lr = 1", "!"],
  ["active(lr)", true], ["active(gone)", false], ["not active(gone) and lr > 0", true], ["active(1)", "!"], ["min(lr) > 0", "!"], ["abs(lr, 1) > 0", "!"],
  ["(lr < 1", "!"], ["lr < 1 2", "!"], ["lr < 1 < 2", "!"], ["'a' < 1", "!"], ["", "!"], ["width and lr", "!"]];
let wrong = 0;
for (const [text, want] of cases) {
  let got;
  try { got = compile(text, column)(0); } catch (e) { got = typeof e === "string" ? "!" : String(e); }
  if (got !== want) { wrong++; console.log(`# ${text}: ${got}, not ${want}`); }
}
process.exitCode = wrong;
END
if command -v node >/dev/null; then
    is "$(node expression.js "$srcdir/launcher/report/page/expression.js" 2>&1)$?" 0 "conditions, and invalid ones"
else
    skip "the filter of the table" "no node"
fi

# ---- the page
chromium=${CHROMIUM:-$(command -v chromium)}
if [ -z "$chromium" ] || ! command -v python3 >/dev/null; then
    skip "the page in a browser" "no chromium or no python3"
    done_testing
fi
tap page env TMPDIR="$work" CHROMIUM="$chromium" python3 "$srcdir/tests/launcher/report.py" "$work"
done_testing
