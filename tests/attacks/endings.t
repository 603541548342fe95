#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Python programs that exit without closing their objects, in many ways, do not crash.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
preload_sanitizers

for what in elastic current part comm run; do
    bad=
    for way in end leave local at_once cycle kept_cycle finalizer late_finalizer builtins_too thread daemon fork subinterpreter failure; do
        timeout 300 $python "$srcdir/tests/attacks/endings.py" $what $way >"$what.$way" 2>&1
        status=$?
        wanted=0
        [ $way != failure ] || wanted=1
        [ $status -eq $wanted ] && continue
        bad="$bad $way=$status"
        sed "s/^/# $what $way: /" "$what.$way" | tail -5
    done
    is "$bad" "" "$what: each way to end has its status"
done
done_testing
