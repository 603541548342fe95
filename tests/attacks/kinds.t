#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Pipes, devices, huge files and the like wherever a member of the group can put them: each command ends soon, with a message.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/groups.sh"

as_kind () { # as_kind KIND PATH: make a file of this kind
    case $1 in
    pipe) mkfifo -m 666 "$2" ;;
    socket) python3 -c 'import socket, os, sys; os.chdir(os.path.dirname(sys.argv[1])); socket.socket(socket.AF_UNIX).bind(os.path.basename(sys.argv[1]))' "$2" ;;
    device) ln -s /dev/zero "$2" ;;
    folder) mkdir -m 777 "$2" ;;
    huge) truncate -s 1T "$2" ;;
    cycle) ln -s "$2" "$2" ;;
    dangling) ln -s /nowhere/at/all "$2" ;;
    outside) ln -s /etc/passwd "$2" ;;
    empty) : >"$2" ;;
    esac
}

next=$(find "$group/s-0001/log/000000" -type f | wc -l)
worker=$(cd "$group/s-0001/workers" && find . -name '[0-9a-f]*' ! -name '*.*' | head -1 | cut -c 3-)
# each path, and the commands besides ls and show that access it
places="experiment.conf:export,kill,rm
log:kill,wait
log/000000:kill,continue
log/000000/00000002:export,kill,rm,wait,gc
log/000000/$(printf %08d $((next + 1))):continue
log/000000.pack:export
workers:kill,rm,gc
workers/${worker:-none}:rm,gc,kill
workers/0123456789abcdef0123456789abcdef:rm,gc,kill
trials:show 1,export,gc,continue
trials/0001:show 1,export,gc
trials/0001/a.1:show 1,export,logs 1,gc
trials/0001/a.1/log:logs 1
trials/0001/a.1/metrics.h5:show 1,export,gc
trials/0001/a.1/ckpt:gc
trials/0001/a.1/ckpt/00000002.h5:gc,rm
trials/0003:continue
trials/0003/a.1:continue
trials/0003/a.1/log:continue
results.h5:export h5,continue
reserve:show,continue
run:scale"
kinds=${DL_TEST_KINDS:-$(often "pipe device folder huge cycle" "pipe socket device folder huge cycle dangling outside empty")}

command_of () { # command_of COMMAND: run a command of the table as the victim
    case $1 in
    'show 1') set -- show "$e" 1 ;;
    'logs 1') set -- logs "$e" 1 ;;
    'export h5') set -- export "$e" --format=h5 --output="$victim_home/x.h5" ;;
    export) set -- export "$e" --output="$victim_home/x.csv" ;;
    scale) set -- scale 1 "$e" ;;
    wait) set -- wait --timeout=1 "$e" ;;
    continue) set -- continue --trials=3 --local "$e" ;;
    *) set -- "$1" "$e" ;;
    esac
    victim timeout "$limit" dl "$@" >out 2>&1 </dev/null
}

limit=${DL_TEST_LIMIT:-30}
case_of kind
printf '%s\n' "$places" | while IFS=: read -r place commands; do
    for kind in $kinds; do
        bad=
        printf 'ls,show,%s\n' "$commands" | tr , '\n' >todo
        while read -r command; do
            case $command/$kind in
            continue/pipe | continue/cycle | continue/outside) ;;
            continue/*) continue ;;      # slow, so try only three kinds
            'logs 1/huge') continue ;; # would print all of it
            esac
            case_of kind
            attacker sh -c "umask 0; mkdir -p '$(dirname "$e/$place")'; rm -rf '$e/$place'"
            (umask 0 && as_kind "$kind" "$e/$place")
            chown -h "$attacker_id" "$e/$place"
            if [ "$command" = ls ]; then
                victim timeout "$limit" dl ls --dir "$group" >out 2>&1
            else
                command_of "$command"
            fi
            status=$?
            lines=$(grep -c '^dl: ' out)
            [ $status -lt 11 ] && [ "$lines" -le 3 ] && ! grep -qE 'Sanitizer|HDF5-DIAG' out && continue
            bad="$bad [$command: status $status, $lines lines]"
        done <todo
        holds "$place ($kind)" [ -z "$bad" ]
        [ -z "$bad" ] || echo "#$bad"
    done
    echo "$n $failed" >counts
done
read -r n failed <counts

# a monitor file with invalid names
case_of kind
attacker sh -c "umask 0; mkdir '$e/trials/0001/a.1/dl-monitor-1.0'; cp '$srcdir/tests/fuzz/corpus/usage/spelt' '$e/trials/0001/a.1/dl-monitor-1.0/n1.h5'"
for command in "monitor $e/trials/0001/a.1/dl-monitor-1.0" "report --output=$victim_home/x.html $e" "top --json $e/trials/0001/a.1"; do
    victim timeout "$limit" dl $command >out 2>&1
    status=$?
    holds "dl ${command%% *}: status $status" [ $status -lt 11 ]
done

# a file named "run", by which dl scale recognizes a run of dl elastic
case_of scale
attacker sh -c "echo 'ranks 1 min 1 max 9' >'$e/run'"
like "$(victim timeout "$limit" dl scale 3 "$e" 2>&1; ls "$e")" "^dl: $e is completed: there is nothing to scale" "dl scale: an experiment is not a run of dl elastic"
holds "and gets no file of such a run" [ ! -e "$e/target" ]

# output files: another user's pipe would block dl, and another user's file or pipe would leak the data
/usr/bin/python3 -c 'import struct
h = b"""{"w": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]}}"""
open("w.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"mine\n")'
dl ckpt import w.safetensors w.h5 >out 2>&1 && chmod 600 w.h5 && chown "$victim_id" w.h5
extract () {
    (cd "$group" && victim timeout "$limit" dl ckpt extract --format=raw "$work/w.h5" w 2>&1)
}
attacker mkfifo -m 666 "$group/w.raw"
attacker sh -c "echo \$\$ >'$attacker_home/pid'; exec cat '$group/w.raw' >'$attacker_home/got'" &
wait_for 300 grep -q . "$attacker_home/pid"
is "$(extract) $([ -f "$group/w.raw" ] && stat -c %u "$group/w.raw")" "w.raw $victim_id" "dl ckpt extract: replaces another user's pipe"
is "$(cat "$attacker_home/got")" "" "and writes nothing into it"
kill -9 "$(cat "$attacker_home/pid")" 2>/dev/null # it waits for a writer
attacker sh -c "umask 0; rm -f '$group/w.raw'; : >'$group/w.raw'; ln '$group/w.raw' '$group/his'"
is "$(extract) $(cat "$group/his")" "w.raw " "nor into that user's file"
attacker rm "$group/w.raw"
is "$(extract) $(cat "$group/w.raw")" "w.raw mine" "but writes into the user's own file"
victim mkfifo "$group/own.raw"
is "$(cd "$group" && { victim timeout "$limit" dl ckpt extract --format=raw --output=own.raw "$work/w.h5" w >out & } && timeout "$limit" cat own.raw)" mine "and into the user's own pipe"
victim mkfifo -m 400 "$group/shut"
is "$(cd "$group" && victim timeout "$limit" dl ckpt extract --format=raw --output=shut "$work/w.h5" w 2>&1; victim timeout "$limit" dl export --output=shut "$e" 2>&1)" "dl: shut: cannot write: Permission denied
dl: shut: cannot write: Permission denied" "both report the same for what they cannot open"
attacker mkfifo -m 666 "$group/x.csv"
victim timeout "$limit" dl export --output="$group/x.csv" "$e" >out 2>&1
is "$? $([ -f "$group/x.csv" ] && stat -c %u "$group/x.csv")" "0 $victim_id" "dl export --output: replaces another member's pipe"

# dl debug JOB ignores another user's folder; dl debug FOLDER requests no stacks in one, and does not block on its files
d=$group/dl-debug-12.0
attacker sh -c "umask 0; mkdir '$d' '$d/dump-3'; echo n1 1 >'$d/watch-0'; ln -s /dev/zero '$d/error.0.1'; ln -s /dev/zero '$d/dump-3/rank-0'
    truncate -s 1T '$d/nccl.0.log'; mkfifo '$d/error.1.1'; ln -s '$victim_home/secret' '$d/error.2.1'; echo 'E: real' >'$d/error.3.1'"
victim sh -c 'umask 77; echo secret >"$HOME/secret"'
is "$(cd "$group" && victim timeout "$limit" dl debug 12 2>&1; echo $?)" "dl: ./dl-debug-12: no such folder: name it, or run this in the job's working directory; the job needs --dl-debug
3" "dl debug JOB: ignores a folder of another user"
victim timeout "$limit" dl debug "$d" >out 2>&1
is "$?/$(grep -c '^rank ' out)/$(grep '^rank' out)" "0/1/rank 3 ended: E: real (error.3.1)" "dl debug FOLDER: reads only regular files"
is "$(cd "$d" && echo dump-*)/$(grep -c 'without requesting new ones' out)" "dump-3/1" "and nothing is created there"
done_testing
