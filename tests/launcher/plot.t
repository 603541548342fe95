#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl plot: charts in the terminal and in files; gnuplot never executes text from experiments.
. "$srcdir/tests/lib.sh"
unset COLUMNS LINES DL_DIR TMUX KITTY_WINDOW_ID TERM_PROGRAM
export LC_ALL=C.UTF-8 TERM=xterm
make=$builddir/tests/launcher/makesweep
cat >rungs.conf <<'END2'
name = "rungs"; entrypoint = "true"; max_restarts = 1;
searcher = { metric = "loss"; name = "asha"; max_trials = 60; max_length = 9; divisor = 3; };
resources = { workers = 4; };
hyperparameters = { lr = { type = "log"; minval = -5; maxval = -1; }; opt = { type = "categorical"; vals = ("adam", "sgd"); };
    momentum = { type = "float"; minval = 0; maxval = 0.99; when = { opt = "sgd"; }; }; };
END2
runs 0 "a sweep" "$make" . rungs.conf 20
mkdir bin
for tool in env sh cat; do ln -s "$(command -v $tool)" bin/; done
PATH=$work/bin "$builddir/launcher/dl" plot rungs >out 2>&1
is "$? $(cat out)" "1 dl: dl plot needs gnuplot: install gnuplot-nox (Debian) or gnuplot-minimal (Fedora); 'dl report' does not need it" "without gnuplot"
command -v gnuplot >/dev/null || { skip "gnuplot" "not installed"; done_testing; }

# ---- text
runs 0 "history is the default" dl plot rungs
like "$(cat out)" 'rungs-0001: history' "a title"
like "$(cat out)" 'best so far [^ ]' "a line"
is "$(LC_ALL=C grep -c "$(printf '\033')" out)" 0 "no colours in a pipe"
[ "$(wc -L <out)" -gt 60 ] && [ "$(wc -L <out)" -le 80 ]
ok $? "80 columns"
for what in curves "scatter lr" "scatter opt" "scatter momentum" parallel; do
    COLUMNS=110 dl plot rungs $what >out 2>&1
    is "$? $(wc -l <out | awk '{ print ($1 > 15) }')" "0 1" "$what"
    holds "$what: it fits" [ "$(wc -L <out)" -le 110 ]
done
like "$(cat out)" 'lr +opt +momentum +loss|lr +momentum +opt +loss' "parallel: the axes"
like "$(dl plot --trials=3 rungs curves)" 'trial [0-9]+' "curves: their trials"
is "$(dl plot --trials=3 rungs curves | grep -c 'trial [0-9]')" 3 "--trials"
dl plot --term=sixel rungs >out 2>&1
is "$? $(head -c 3 out | od -An -tx1 | tr -d ' ')" "0 1b5071" "sixel"

# ---- terminals of gnuplot 6; without it, a stand-in
if ! gnuplot -d -e "print GPVAL_TERMINALS" 2>&1 | grep -q ' block '; then
    mkdir six
    program six/gnuplot <<'END2'
[ "$2" = - ] || { echo " block dumb kittycairo "; exit; }
cat >script
grep -q kitty script && printf '\033[H\033_Ga=T;iVBOR\033\\' && exit
printf '\342\240\200\342\240\200\n\342\240\200 rungs-0001: history\n loss\n\342\242\260\342\240\200\n'
END2
fi
PATH=$work/six:$PATH dl plot --term=block rungs >out 2>&1
is "$? $(head -n 2 out | tr -s ' ' | tr '\n' '|')" "0  rungs-0001: history| loss|" "block: the axis covers the data"
is "$(grep -c "$(printf '\342\240\200')" out)" 0 "and empty places are blank"
PATH=$work/six:$PATH dl plot --term=kitty rungs >out 2>&1
is "$? $(head -c 3 out | od -An -tx1 | tr -d ' ')" "0 1b5f47" "kitty: where the cursor is"

# ---- files
for what in history curves parallel; do
    for kind in svg png pdf; do
        dl plot rungs $what -o $what.$kind >out 2>&1
        is "$? $(cat out)" "0 $what.$kind" "$what as $kind"
    done
done
is "$(head -c 4 history.png | tail -c 3) $(head -c 4 history.pdf) $(grep -c '<svg' history.svg)" "PNG %PDF 1" "they have that format"
python3 -c 'import xml.dom.minidom as m; m.parse("history.svg"); m.parse("parallel.svg")' 2>/dev/null
ok $? "the SVG is XML"

# ---- bad input
expect () { # expect STATUS TEXT ARGUMENT...
    wanted="$1 $2"
    shift 2
    dl plot "$@" >out 2>&1
    is "$? $(head -n 1 out)" "$wanted" "$*"
}
expect 2 "dl: plot: there is no 'curve': curves, history, scatter PARAMETER or parallel" rungs curve
expect 2 "dl: plot: scatter needs the name of a parameter" rungs scatter
expect 2 "dl: plot: only scatter takes a parameter" rungs curves lr
expect 2 "dl: 'momentun' is not a searched hyperparameter; did you mean 'momentum'?" rungs scatter momentun
expect 2 "dl: --output: 'gif' is not a picture format: FILE.svg, FILE.png or FILE.pdf" rungs -o x.gif
expect 2 "dl: --term: there is no terminal 'svg': dumb, block, sixel or kitty" rungs --term=svg
expect 3 "dl: no experiment 'missing' in . (set the folder with --dir or DL_DIR)" missing
printf 'name = "none"; entrypoint = "true"; searcher = { metric = "loss"; max_trials = 2; name = "random"; };\nhyperparameters = { x = 1; };\n' >none.conf
dl run --local --no-workers none.conf >out 2>&1
expect 3 "dl: none-0001: no trial has a finite value of loss yet" none

# ---- hostile text: quotes, commands, substitutions, formats, ends of data, escape sequences
mkdir fake
cat >hostile.conf <<'END2'
name = "hostile"; entrypoint = "true";
searcher = { name = "random"; metric = "it's`touch pwned1`\"; system('touch pwned2')#@x"; max_trials = 40; max_length = 2; };
resources = { workers = 4; };
hyperparameters = {
    lr = { type = "log"; minval = -5; maxval = -1; };
    opt = { type = "categorical"; vals = ("'; system('touch pwned3'); '", "`touch pwned4`", "%s%n%s%d %f", "\x1b[2J\x1b]0;title\x07",
        "END_OF_VALUES\nsystem('touch pwned5')\n", "{/=90 big}\\", "$(touch pwned6)", "@system", "ü☃"); };
    other = { type = "categorical"; vals = ("\";!touch pwned7;\"", "\nset output '|touch pwned8'\n", "a'b"); }; };
END2
runs 0 "a sweep with hostile texts" "$make" . hostile.conf 4
[ -d hostile-0001 ] || sed 's/^/# /' out
for what in history curves "scatter opt" "scatter other" parallel; do
    for to in --term=dumb --output=x.svg --output=x.png --output=x.pdf; do
        dl plot hostile $what $to >out 2>err
        is "$? $(cat err)" "0 " "$what $to"
        is "$(LC_ALL=C tr -d '\n\t\040-\176\302-\364\200-\277' <out | wc -c)" 0 "$what $to: no control characters"
    done
    python3 -c 'import xml.dom.minidom as m; m.parse("x.svg")' 2>/dev/null
    ok $? "$what: the SVG is XML"
done
is "$(ls pwned* 2>/dev/null)" "" "none of them is a command"
like "$(dl plot hostile scatter other --term=dumb)" "a’b" "they are printed"
# gnuplot startup files, which anyone who can write here could plant
echo "system('touch pwned9')" >.gnuplot
cp .gnuplot gnuplotrc
GNUPLOT_LIB=$work HOME=$work dl plot rungs >out 2>&1
is "$? $(ls pwned* 2>/dev/null)" "0 " "gnuplot reads no other file"
dl plot rungs -o '|touch pwned10;.svg' >out 2>&1
is "$? $(ls pwned* 2>/dev/null)" "0 " "the name of a file is not a command"
ls '|touch pwned10;.svg' >/dev/null 2>&1
ok $? "but a name"
done_testing
