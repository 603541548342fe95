# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Run the recipes of doc/cookbook.md: source this after tests/lib.sh.  A block that begins with "# FILE" is the content of
# that file; "$ " starts a command; other lines are the commands' output, shortened.
book=$srcdir/doc/cookbook.md

blocks () { # blocks N: write the files of a recipe, "commands" and "said" to the current folder
    awk -v recipe="$1." '
        /^## / { on = $2 == recipe; next }
        /^```/ { block = /^``` /; first = 1; file = ""; next }
        !on || !block { next }
        first && /^# / { file = $2 }
        { first = 0 }
        file { print >file; next }
        /^\$ / { print substr ($0, 3) >"commands"; next }
        { print >"said" }' "$book"
}

recipe () { # recipe N: create a folder with the recipe's files and enter it
    mkdir "$work/recipe$1"
    cd "$work/recipe$1" || exit 1
    cp "$srcdir/contrib/examples/cookbook/train.py" .
    blocks "$1"
    title=$(sed -n "s/^## $1\. /recipe $1: /p" "$book")
}

needs () { # needs N FILE: copy a file of another recipe
    mkdir other
    (cd other && blocks "$1")
    cp "other/$2" .
    rm -r other
}

same () { # replace what differs from run to run
    sed -E 's/after [0-9hms. ]+,/after N,/; s/(loss|weight) [0-9.e+-]+/\1 N/; s/[0-9]+\.[0-9]+/N/g; s/ +/ /g' "$1"
}

follow () { # run the commands, and compare their output
    timeout 600 sh -ex commands >out 2>&1 </dev/null
    status=$?
    is $status 0 "$title"
    [ $status -eq 0 ] || sed 's/^/# /' out
    [ ! -f said ] || { same out >same.out; same said; } | while read -r line; do
        grep -qF -e "$line" same.out || echo "$line"
    done >missing
    [ ! -s missing ] || is "$(cat missing)" "" "$title: prints it"
}
