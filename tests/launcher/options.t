#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl(1), dl-experiment(5) and the tables in the program agree
. "$srcdir/tests/lib.sh"
rm -rf "$work"

commands=$(dl --complete | grep -v '^--')
for c in $commands; do
    grep -q "^\.B dl $c" "$srcdir/doc/dl.1"
    ok $? "dl(1) has the command $c"
    for o in $(dl --complete "$c"); do
        o=${o%=}
        sed -n "/^\.B dl $c/,/^\.B dl [^$]/p" "$srcdir/doc/dl.1" | grep -q -e "$(echo "$o" | sed 's/-/\\\\-/g')" ||
            grep -q -e "^\.BR\? $(echo "$o" | sed 's/-/\\\\-/g')" "$srcdir/doc/dl.1"
        ok $? "dl(1) has the option $c $o"
    done
    dl "$c" --help | grep -q "usage: dl $c"
    ok $? "$c has a help"
done
documented=$(sed -n 's/^\.B dl \([a-z-]*\).*/\1/p' "$srcdir/doc/dl.1" | sort -u | tr '\n' ' ')
is "$documented" "$(echo "$commands" | sort | tr '\n' ' ')" "dl(1) has no other commands"

missing=
for status in $(sed -n 's/^ *EXIT_[A-Z_]* = \([0-9]*\),.*/\1/p' "$srcdir/launcher/sys/say.h"); do
    grep -q "^\.B $status$" "$srcdir/doc/dl.1" || missing="$missing $status"
done
is "$missing" "" "dl(1) has each exit status"
lines=$(dl --help | wc -l)
[ "$lines" -le 36 ] && [ "$(dl --help | awk '{ print length }' | sort -n | tail -n 1)" -le 80 ]
ok $? "the list of commands fits on a screen ($lines lines)"

keys=$(sed -n 's/^    { "\([a-z_.]*\)", *KEY_.*/\1/p' "$srcdir/launcher/config/keys.c")
[ "$(echo "$keys" | wc -l)" -gt 20 ]
ok $? "the table of keys was found"
for k in $keys; do
    grep -q -e "^\.B $k" "$srcdir/doc/dl-experiment.5"
    ok $? "dl-experiment(5) has $k"
done
for k in $(sed -n 's/^\.B \([a-z_.]*\) \\fR(.*/\1/p' "$srcdir/doc/dl-experiment.5"); do
    case $k in
    hyperparameters | environment | hyperparameters.* | environment.*) continue ;;
    esac
    echo "$keys" | grep -qx "$k"
    ok $? "$k of dl-experiment(5) exists"
done
done_testing
