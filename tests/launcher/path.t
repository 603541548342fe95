#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PATH has a folder that the user cannot enter.  For a program that exists nowhere, execvp() then fails with EACCES, and dl
# must still report that there is no such program.
. "$srcdir/tests/lib.sh"
[ "$(id -u)" -ne 0 ] || { # root can enter every folder
    chmod 755 "$work"
    as_ordinary env TMPDIR=/tmp sh "$srcdir/tests/launcher/path.t"
    exit
}
export HOME="$work"
mkdir bin closed
for tool in env sh cat sed; do ln -s "$(command -v $tool)" bin/; done
chmod 000 closed
dl=$builddir/launcher/dl
hidden () { # hidden COMMAND...: run it with only the inaccessible folder and bin/ in PATH
    timeout 300 env PATH="$work/closed:$work/bin" "$@"
}

# ---- mail, with sendmail as the fallback
cat >conf <<'END'
entrypoint = "sh -c 'echo loss=1'"; metrics = { pattern = "loss={loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
END
{ echo 'name = "told"; notify = { mail = "me@example.org"; };'; cat conf; } >told.conf
if command -v /usr/sbin/sendmail >/dev/null || command -v /usr/lib/sendmail >/dev/null; then
    skip "neither" "this machine has a sendmail"
else
    hidden "$dl" run --local told.conf >out 2>&1
    like "$(cat told-0001/workers/* out 2>/dev/null)" \
        "dl: notify: cannot send mail: neither 'mail' nor 'sendmail' could be run \(Permission denied\)" "neither exists"
    timeout 300 env PATH="$work/bin" "$dl" run --local told.conf >out 2>&1
    like "$(cat told-0002/workers/* out 2>/dev/null)" \
        "dl: notify: cannot send mail: neither 'mail' nor 'sendmail' could be run \(No such file or directory\)" \
        "nor without such a folder"
fi
printf '#!/bin/sh\ncat >"%s/sent"\n' "$work" >bin/sendmail
chmod +x bin/sendmail
hidden "$dl" run --local told.conf >out 2>&1
like "$(cat sent)" '^Subject: dl: told-000[0-9]: end' "sendmail is tried if there is no mail"
rm sent
printf 'no program\n' >bin/mail
hidden "$dl" run --local told.conf >out 2>&1
like "$(cat sent)" '^Subject: dl: told-000[0-9]: end' "and if mail is not executable"
rm -f sent
printf '#!/nonexistent/interpreter\n' >bin/mail
chmod +x bin/mail
hidden "$dl" run --local told.conf >out 2>&1
like "$(cat sent)" '^Subject: dl: told-000[0-9]: end' "or has no interpreter"
rm -f sent
printf '#!/bin/sh\ncat >/dev/null\nexit 67\n' >bin/mail
hidden "$dl" run --local told.conf >out 2>&1
like "$(cat told-000*/workers/* out 2>/dev/null)" 'dl: notify: mail: exit status 67' "a mail that fails is not sent in another way"
is "$([ -e sent ] && echo sent)" "" "so sendmail is not tried"
{ echo 'name = "hook"; notify = { webhook = "url"; };'; cat conf; } >hook.conf
(umask 077 && echo "https://hooks.example/T0/secret-word" >url)
hidden "$dl" run --local hook.conf >out 2>&1
like "$(cat hook-0001/workers/* out 2>/dev/null)" "dl: notify: cannot call the webhook: 'curl' could not be run \(Permission denied\)" "no curl"
{ echo 'name = "shell"; notify = { command = "nosuchprogram"; };'; cat conf; } >shell.conf
hidden "$dl" run --local shell.conf >out 2>&1
like "$(cat shell-0001/workers/* out 2>/dev/null)" \
    'dl: notify: the command: exit status 12[67]: a program in it was not found, or could not be run' "a command of the user's"

# ---- Slurm's programs, gnuplot, Python
{ echo 'name = "slurm";'; cat conf; } >slurm.conf
like "$(hidden "$dl" run slurm.conf 2>&1)" 'sbatch: No such file or directory \(without Slurm use --local\)' "dl run without Slurm"
runs 6 "with its status" hidden "$dl" run slurm.conf
like "$(hidden "$dl" plot told-0001 2>&1)" '^dl: dl plot needs gnuplot: install gnuplot-nox' "dl plot without gnuplot"
like "$(hidden env DL_PYTHON=nosuchprogram "$dl" import told.conf 2>&1)" 'dl import needs Python' "dl import without Python"

# ---- the command of a trial
cat >gone.conf <<'END'
name = "gone"; entrypoint = ["nosuchprogram"]; max_restarts = 0; environment = { variables = { PATH = "/"; }; };
END
sed 1d conf >>gone.conf
like "$(hidden "$dl" run --local gone.conf 2>&1)" "exit status 127: there is no such command" "a trial's command that does not exist"
printf 'no program\n' >bin/forbidden
sed 's/nosuchprogram/forbidden/; s/gone/forbidden/' gone.conf >forbidden.conf
like "$(hidden "$dl" run --local forbidden.conf 2>&1)" "exit status 126: the command cannot be run" "and one that is not executable"

# ---- the Python package calls dl
. "$srcdir/tests/python/site.sh"
if [ -f "$builddir/contrib/python/.libs/_slurmdl.so" ] && has numpy h5py >/dev/null 2>&1; then
    need_package numpy h5py
    like "$(hidden $python -c 'import slurmdl; slurmdl.Experiment("told")' 2>&1)" \
        "Error: there is no program 'dl' in PATH: install slurm-dl" "slurmdl.Experiment without dl"
else
    skip "slurmdl.Experiment" "no Python package"
fi
chmod 755 closed
done_testing
