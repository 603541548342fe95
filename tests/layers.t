#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Find which folder uses which by the symbols of the objects: only as the table in doc/ARCHITECTURE.md allows, without cycles.
. "$srcdir/tests/lib.sh"

# ---- read the symbols of the objects

newest_objects () { # <OBJECTS: drop a libtool object (.libs/x.o) if there is a plain x.o
    awk '{ list[NR] = $0; all[$0] } END {
            for (i = 1; i <= NR; i++) {
                plain = list[i]
                if (!sub (/\.libs\//, "", plain) || !(plain in all)) print list[i]
            } }'
}

# uses SOURCE BUILD FOLDER...: print lines "USER OWNER SYMBOL": the file USER uses a symbol that the file OWNER defines
uses () {
    source=$1
    build=$2
    shift 2
    (cd "$build" && find "$@" -name '*.o' | sort | newest_objects | xargs -r nm -A -P 2>/dev/null) | awk -v source="$source" '
        function file (object) {
            sub (/:$/, "", object); sub (/\.libs\//, "", object)
            folder = base = object
            sub (/[^\/]*$/, "", folder); sub (/.*\//, "", base)
            sub (/^.*_la-/, "", base); sub (/^dl-/, "", base); sub (/\.o$/, ".c", base)
            return folder base
        }
        function is_there (name) { # skips stale objects, whose source has moved
            if (!(name in there)) { there[name] = (getline line <(source "/" name)) >= 0; close (source "/" name) }
            return there[name]
        }
        function top (name) { sub (/\/.*/, "", name); return name }
        !is_there(f = file($1)) { next }
        $3 ~ /^[TDBRVW]$/ { made[top(f), $2] = f; any[$2] = f }
        $3 == "U" { takes[f, $2] }
        END {
            for (t in takes) {
                split (t, part, SUBSEP)
                from = part[1]; name = part[2]
                to = (top(from), name) in made ? made[top(from), name] : any[name]
                if (to != "" && to != from) print from, to, name
            }
        }' | sort
}

folders_of () { # folders_of <USES: replace files by their folders
    awk '{ sub (/\/[^\/]*$/, "", $1); sub (/\/[^\/]*$/, "", $2) } $1 != $2'
}

circles () { # circles <USES: print the members of each cycle
    awk '{ print $1, $2 }' | sort -u | tsort 2>&1 >/dev/null | sed -n 's/^tsort: -: .*loop:/circle:/p; s/^tsort: \([^-]\)/    \1/p'
}

rows () { # rows DOCUMENT: print a line "FOLDER MAY-USE" for each allowed use
    sed -n '/^<!-- layers -->/,/^<!-- \/layers -->/s/^| *\([^ |]*\)[^|]*|[^|]*|\(.*\)|.*/\1,\2/p' "$1" |
        awk -F' *, *' '$1 ~ /[a-z]/ && $1 != "folder" { print $1, $1; for (i = 2; i <= NF; i++) { gsub (/ /, "", $i); print $1, $i } }'
}

forbidden () { # forbidden DOCUMENT <USES: print uses that the table does not allow
    rows "$1" >"$work/rows"
    awk -v rows="$work/rows" '
        function folder (name) { sub (/\/[^\/]*$/, "", name); return name }
        BEGIN { while ((getline <rows) > 0) { may[$1, $2]; row[$1] } }
        !(folder($1) in row) { if (!(folder($1) in told)) print folder($1) ": has no row"; told[folder($1)]; next }
        folder($1) != folder($2) && !((folder($1), folder($2)) in may) { print $1 " uses " $2 ": " $3 }'
}

below () { # below FOLDER <USES: keep uses within this folder
    awk -v top="$1/" 'index ($1, top) == 1 && index ($2, top) == 1'
}

# ---- the test finds planted faults: a cycle, and a use that the table does not allow

mkdir -p "$work/s/one" "$work/s/two" "$work/b/one" "$work/b/two"
echo 'int b (void); int a (void); int a (void) { return b (); }' >"$work/s/one/a.c"
echo 'int a (void); int b (void); int b (void) { return a (); }' >"$work/s/two/b.c"
echo 'int b (void); int c (void); int c (void) { return b (); }' >"$work/s/two/c.c"
printf '<!-- layers -->\n| folder | has | may use |\n| --- | --- | --- |\n| one | a | two, libc |\n| two | b, c | libc |\n<!-- /layers -->\n' >"$work/s/table.md"
for f in one/a two/b two/c; do
    ${CC:-cc} -c "$work/s/$f.c" -o "$work/b/$f.o" || bail_out "no compiler"
done
uses "$work/s" "$work/b" one two >"$work/planted"
is "$(cat "$work/planted")" "one/a.c two/b.c b
two/b.c one/a.c a
two/c.c two/b.c b" "planted: which folder uses which"
is "$(circles <"$work/planted" | sort | xargs)" "one/a.c two/b.c circle:" "planted: a circle of files is seen"
is "$(folders_of <"$work/planted" | circles | sort | xargs)" "one two circle:" "planted: and of folders"
is "$(forbidden "$work/s/table.md" <"$work/planted")" "two/b.c uses one/a.c: a" "planted: and what the table does not allow"

# ---- the tree

document=$srcdir/doc/ARCHITECTURE.md
uses "$srcdir" "$builddir" searcher runtime launcher spank >"$work/uses"
look () { # look TOP files|folders|table: print what is wrong
    case $2 in
    files) below "$1" <"$work/uses" | circles ;;
    folders) below "$1" <"$work/uses" | folders_of | circles ;;
    table) if [ -f "$document" ]; then grep "^$1/" "$work/uses" | forbidden "$document"; else echo "no $document"; fi ;;
    esac
}
hold () { # hold TOP WHAT...: check each WHAT of files, folders (no cycles) and table; only print the others
    grep -q "^$1/" "$work/uses" || { skip "$1" "it was not built"; return; }
    top=$1
    for what in files folders table; do
        wrong=$(look "$top" $what)
        case " $* " in
        *" $what "*) is "$wrong" "" "$top: $what" ;;
        *) echo "# $top: $what: not held yet: $(echo "$wrong" | grep -c .) lines" ;;
        esac
    done
}
hold searcher files folders table
hold runtime files folders table
hold launcher files folders table
hold spank files folders table
# ---- names that grep, gdb and perf can tell apart

# shared_names FILE...: print the functions that another file defines, too; static ones are functions of that file only
shared_names () {
    awk '{ gsub (/__attribute__ \(\([a-z_]*( \([^)]*\))?\)\) ?/, "") }
        /^[a-z][^=;]* \**[a-z_0-9]+ \(/ && !/^(typedef|return|else) / {
            name = $0; sub (/ \(.*/, "", name); sub (/.*[ *]/, "", name)
        }
        /;$/ { name = "" }
        /^{/ && name != "" { if (!((name, FILENAME) in seen)) { files[name] = files[name] " " FILENAME; n[name]++ }; seen[name, FILENAME]; name = "" }
        END { for (f in n) if (n[f] > 1) print f ":" files[f] }' "$@" | sort
}
printf '%s\n' 'static int both (int a,' '    int b)' '{' '}' 'int only (void);' 'static int only (void)' '{' '}' >"$work/one.c"
printf '%s\n' 'char *both (void)' '{' '    return only (1);' '}' 'extern int only (int a);' >"$work/two.c"
is "$(cd "$work" && shared_names one.c two.c)" "both: one.c two.c" "planted: a static function with the name of a global one"
# hdf5() is linked once: with libhdf5, or with what loads it at run time
# shellcheck disable=SC2046
is "$(cd "$srcdir" && shared_names $(find searcher runtime launcher spank -name '*.c' | sort) |
    grep -v '^hdf5: runtime/storage/hdf5_lazy.c runtime/storage/hdf5_linked.c$')" "" "no function has the name of another"

# shared_variables FILE...: print the variables at file scope that another file defines, too
shared_variables () {
    awk '/^(static|}) ?[^(]*[=;]/ {
            name = $0; sub (/ *[=;,].*/, "", name); gsub (/\[[^]]*\]/, "", name); sub (/.*[ *}]/, "", name)
            if (name != "" && !((name, FILENAME) in seen)) { files[name] = files[name] " " FILENAME; n[name]++ }
            seen[name, FILENAME]
        }
        END { for (v in n) if (n[v] > 1) print v ":" files[v] }' "$@" | sort
}
printf '%s\n' 'static const char *const every[2] = {' '};' 'static int only (void);' >"$work/one.c"
printf '%s\n' 'static struct {' '    int only;' '} every;' 'static int only;' >"$work/two.c"
is "$(cd "$work" && shared_variables one.c two.c)" "every: one.c two.c" "planted: two variables of one name"
# shellcheck disable=SC2046
is "$(cd "$srcdir" && shared_variables $(find searcher runtime launcher spank -name '*.c' | sort))" "" "no variable has the name of another"

# ---- the public header, which rebuilds half of the tree

# needless_public HEADER...: print those that include slurmdl.h and name nothing of it but the error, which runtime/base/error.h has
needless_public () {
    for header in $(grep -l '^#include "runtime/slurmdl.h"' "$@"); do
        sed 's/slurmdl_error//g' "$header" | grep -qiE '\bslurmdl_[a-z]' || echo "$header"
    done
}
printf '#include "runtime/slurmdl.h"\nint a (struct slurmdl_error *err);\n' >"$work/error.h"
printf '#include "runtime/slurmdl.h"\nint a (enum slurmdl_type t);\n' >"$work/type.h"
is "$(cd "$work" && needless_public error.h type.h)" "error.h" "planted: a header that needs the error only"
# shellcheck disable=SC2046
is "$(cd "$srcdir" && needless_public $(find searcher runtime launcher spank -name '*.h' | sort))" "" "slurmdl.h is included for more than its error"

# ---- Slurm's commands

# slurm_commands: print where C or Python runs a command of Slurm, or writes a script that does
slurm_commands () {
    commands='(sbatch|srun|salloc|squeue|scontrol|scancel|sacct|sinfo)'
    grep -nE "(command_add|strings_add|execvp|argv|words|_lines|subprocess).*\"$commands\"|(\"|\\$\()$commands --[^d]" "$@"
}
printf '%s\n' 'execvp ("salloc", argv);' '"DL_TIME_LEFT=$(squeue --noheader"' '"srun --nodes=1"' '_lines("scontrol", "show")' >"$work/planted"
is "$(slurm_commands "$work/planted" | wc -l)" 4 "planted: Slurm's commands"
is "$(cd "$srcdir" && slurm_commands -r launcher contrib/python --include='*.c' --include='*.py' |
    grep -vE '^(launcher/slurm|contrib/python/slurmdl/imports)/')" "" "launcher/slurm alone runs Slurm's commands"
done_testing
