#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl elastic --local: killed ranks, dl scale up and down.  tests/cluster/elasticrun.t tests jobs.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/launcher/elastic.sh"

# ---- exit statuses, and what is left at the end
runs 0 "two ranks train to the end" dl elastic --local --nodes=2 "$ranks" rank 50 1000
is "$(grep -c 'the weights are right' out)" 2 "to the correct weights"
is "$(ls -d elastic.* 2>/dev/null)" "" "and their folder is removed"
runs 8 "dl gives up ranks that always fail" dl elastic --local --nodes=2 --restarts=1 sh -c 'exit 3'
is "$(grep -c 'ended with status 3' out) $(grep -c '; restarting in 1 s' out)" "4 2" "after restarting them"
like "$(cat out)" 'place 2: ended with status 3; not restarted after 2 failures in a row' "with a line for each"
like "$(cat out)" 'fewer than --min=1 nodes are left' "and it says so"
runs 1 "a rank that exits with 78 ends all" dl elastic --local --nodes=2 sh -c 'exit 78'
timeout 300 dl elastic --nodes=2 true >out 2>&1
is "$? $(grep -c 'not in a job' out)" "2 1" "without a job it says what to do"
runs 2 "fewer than --min are refused" dl elastic --local --nodes=2 --min=3 true

# ---- a rank is killed, the spare takes its place, and the killed one restarts
rm -f out
dl elastic --local --nodes=3 --max=4 --spares=1 "$ranks" rank 1000000 2000 "$work/enough" >out 2>&1 &
dl=$!
await_world 3
wait_for 300 sh -c 'ls elastic.*/ask.*'
before=$(grep -c 'has 3 ranks' out)
# The spare, whichever unit joined last, has written an "ask" file: kill another unit.
unit=1
grep -aqF 1.1 elastic.*/ask.* && unit=2
kill_rank $unit.1 "$ranks"
ok $? "a rank is killed"
await_world 3 "" $((before + 1))
ok $? "a spare rank takes its place"
holds "dl reports what ended" wait_for 300 grep -q "place $((unit + 1)): ended by signal 9; restarting in 1 s" out
run=$(sed -n '1s/.*\(elastic\.[0-9]*\):.*/\1/p' out)
timeout 300 dl scale 9 "$run" >scale 2>&1
is "$? $(cat scale)" "2 dl: $run: must have from 1 to 4 nodes" "dl scale beyond --max is refused"
timeout 300 dl scale 4 "$run" >scale 2>&1
is "$? $(cat scale)" "0 $run: 4 nodes" "dl scale"
await_world 4 0
ok $? "adds ranks"
timeout 300 dl scale 2 "$run" >scale 2>&1
holds "and removes some, which lose nothing" wait_for 300 grep -q 'has 2 ranks, 0 lost, 2 left' out
touch enough
wait $dl
is $? 0 "it trains to the end"
dl=
sed 's/^/# /' out
is "$(grep -c 'the weights are right, 0 times lost' out)" 2 "with no commit lost"
is "$(grep -c 'wrong\|failed:' out)" 0 "and no error"

# ---- SIGTERM ends dl elastic and its ranks
rm -f out
dl elastic --local --nodes=2 "$ranks" rank 100000 2000 >out 2>&1 &
dl=$!
await_world 2
kill -TERM $dl
wait $dl
is $? 4 "SIGTERM ends it"
dl=
kill_rank 0.1 "$ranks"
is $? 1 "and its ranks"

# ---- the example
runs 0 "the digits" dl elastic --local --nodes=3 "$builddir/contrib/examples/digits/elastic" digits.csv.gz 6
like "$(cat out)" '^epoch 6 error 0\.[01][0-9]*, 3 ranks' "are learned"
done_testing
