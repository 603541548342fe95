#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manuals agree with the program: options of each command, exit statuses, keys of the experiment file, searchers.
. "$srcdir/tests/lib.sh"
trap 'rm -rf "$work"' EXIT

# ---- Collect "COMMAND --OPTION" from the pages: from sections "dl COMMAND" and from OPTIONS of dl-COMMAND(1).
# STARTING WORKERS in dl-run(1) applies to four commands, and OPTIONS in dl(1) to every command that has the option.
cat >pages.awk <<'EOF2'
FNR == 1 {
    page = FILENAME
    sub (/.*\/dl-?/, "", page)
    sub (/\.1$/, "", page)
    who = ""
}
/^\.S[HS] / { who = "" }
/^\.SS dl / { who = $3 }
/^\.SH OPTIONS/ { who = page == "" ? "COMMON" : page }
/^\.SH STARTING WORKERS/ { who = "run continue retry fork" }
tag { gsub (/\\f[A-Z]/, "") }
tag && match ($0, /\\-\\-[a-z\\-]+/) {
    option = substr ($0, RSTART, RLENGTH)
    gsub (/\\/, "", option)
    n = split (who, commands, " ")
    for (i = 1; i <= n; i++)
        print commands[i], option
}
{ tag = /^\.T[PQ]/ }
EOF2
awk -f pages.awk "$srcdir"/doc/dl*.1 | sort >all
sed -n 's/^COMMON //p' all >common
grep -v '^COMMON' all >documented

commands=$(dl --complete | grep -v '^--')
for c in $commands; do
    dl --complete "$c" | sed -n "s/^\(--[a-z-]*\)=*\$/$c \1/p"
done | sort >program
holds "the program's options were found" [ "$(wc -l <program)" -gt 60 ]
awk 'NR == FNR { common[$1]; next } FILENAME == "documented" { has[$0]; next } !($0 in has) && !($2 in common)' common documented program >missing
is "$(cat missing)" "" "every option of a command is in a manual"
is "$(comm -13 program documented)" "" "every option of a manual exists"
is "$(uniq -d all)" "" "no option of a command is documented twice"

# ---- commands
for c in $commands; do
    dl "$c" --help | grep -q "usage: dl $c"
    ok $? "$c has help"
done
is "$(sed -n 's/^\.SS dl \([a-z-]*\).*/\1/p; s/^\\fBdl \([a-z]*\\*-*[a-z]*\)\\fR.*/\1/p' "$srcdir"/doc/dl-*.1 | tr -d '\\' | sort -u | tr '\n' ' ')" \
    "$(echo "$commands" | sort | tr '\n' ' ')" "each command has its page, and each page its commands"
is "$(sed -n 's/^dl \([a-z-]*\)	.*/\1/p' "$srcdir/doc/dl.1" | sort | tr '\n' ' ')" \
    "$(echo "$commands" | sort | tr '\n' ' ')" "dl(1) lists each command once"
for page in $(grep -how 'dl[a-z\\-]* *([1-8])' "$srcdir"/doc/*.[1-8] | tr -d ' \\' | sort -u); do
    file=doc/$(echo "$page" | tr '(' . | tr -d ')')
    [ -f "$srcdir/$file" ] || [ -f "$builddir/$file" ]
    ok $? "$page exists"
done

# ---- plugin options of dl env: name, argument and help match the plugin's table
awk '/^    \[PLUGIN_/ { n = 0 }
    n < 3 && match ($0, /"[^"]*"/) { field[++n] = substr ($0, RSTART + 1, RLENGTH - 2) }
    n == 3 && /^    },/ { sub (/^\[dl\] /, "", field[3]); print "--" field[1] "=" field[2] " " field[3] }' "$srcdir/runtime/rank/plugin_options.c" >plugin
is "$(wc -l <plugin)" 7 "the plugin's options were found"
dl env --help | sed -n '/^  --dl[-=][^ ]*$/{N;s/\n/ /;}; s/^  \(--dl[-=]\)/\1/p' | tr -s ' ' >taken
is "$(wc -l <taken) $(grep -vxFf plugin taken)" "4 " "dl env has its four as the plugin does"

# ---- exit statuses
statuses=$(find "$srcdir/launcher" -name '*.h' -exec sed -n 's/^ *EXIT_[A-Z_]* = \([0-9]*\),.*/\1/p' {} + | sort -n)
holds "the table of exit statuses was found" [ "$(echo "$statuses" | wc -l)" -gt 10 ]
is "$(sed -n '/^\.SH EXIT STATUS/,/^\.SH ENV/s/^\([0-9]*\)	.*/\1/p' "$srcdir/doc/dl.1" | sort -n)" "$statuses" "dl(1) has each exit status"

# ---- dl --help
lines=$(dl --help | wc -l)
[ "$lines" -le 50 ] && [ "$(dl --help | awk '{ print length }' | sort -n | tail -n 1)" -le 80 ]
ok $? "the list of commands fits on a screen ($lines lines)"

# ---- keys of the experiment file
keys=$(sed -n 's/^    { "\([a-z_.]*\)", *KEY_.*/\1/p' "$srcdir/launcher/config/keys.c")
holds "the table of keys was found" [ "$(echo "$keys" | wc -l)" -gt 20 ]
for k in $keys; do
    holds "dl-experiment(5) has $k" grep -q -e "^\.B $k" "$srcdir/doc/dl-experiment.5"
done
for k in $(sed -n 's/^\.B \([a-z_.]*\) \\fR(.*/\1/p' "$srcdir/doc/dl-experiment.5"); do
    case $k in
    hyperparameters | environment | hyperparameters.* | environment.*) continue ;;
    esac
    echo "$keys" | grep -qx "$k"
    ok $? "$k of dl-experiment(5) exists"
done

# ---- searchers
searchers=$(sed -n 's/^    { "\([a-z0-9_]*\)",$/\1/p' "$srcdir/searcher/search/kinds.c")
holds "the table of searchers was found" [ "$(echo "$searchers" | wc -l)" -gt 15 ]
is "$(sed -n '/^\.B searcher.name/,/^\.B searcher.sampler/{/^\.TP/{n;s/^\([a-z0-9_]*\)$/\1/p}}' "$srcdir/doc/dl-experiment.5")" "$searchers" \
    "dl-experiment(5) has each searcher"
done_testing
