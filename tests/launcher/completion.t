#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completion in bash, zsh and fish: commands, options, experiments, trials.
. "$srcdir/tests/lib.sh"
mkdir -p exps/digits-0001/trials/0001 exps/digits-0001/trials/0012 exps/other-0001/trials
touch exps/digits-0001/experiment.conf exps/other-0001/experiment.conf
DL_DIR=$work/exps
export DL_DIR

# ---- the words
is "$(dl --complete show digits-0001 | grep -v '^--' | tr '\n' ' ')" "1 12 " "the trials of an experiment"
is "$(dl --complete show digits | grep -v '^--' | tr '\n' ' ')" "1 12 " "also of one by its short name"
is "$(dl --complete show | grep -v '^--' | tr '\n' ' ')" "digits-0001 other-0001 " "experiments"
is "$(DL_DIR=/ dl --complete show --dir="$work/exps" | grep -v '^--' | tr '\n' ' ')" "digits-0001 other-0001 " "experiments below --dir"
is "$(DL_DIR=/ dl --complete show --dir = "$work/exps" --trials = 3 digits-0001 | grep -v '^--' | tr '\n' ' ')" "1 12 " "also as bash passes it"
is "$(dl --complete rm digits-0001 | grep -v '^--' | tr '\n' ' ')" "digits-0001 other-0001 " "several experiments"
is "$(dl --complete scale 4 | grep -v '^--' | tr '\n' ' ')" "digits-0001 other-0001 " "an experiment after a number"
is "$(dl --complete pause digits-0001 | grep -vc '^--')" 0 "one experiment only"
is "$(dl --complete-help show | grep -- '--csv' | tr '\t' '|')" "--csv|print CSV" "an option with its description"
is "$(dl --complete-help | grep '^show' | cut -f 2)" "$(dl show --help | sed -n 2p)" "a command with its description"
is "$(dl --complete-help show digits-0001 | grep -v '^--' | head -n 1 | tr '\t' '|')" "1|trial" "a trial"

# ---- the shells
cat >ask.bash <<'EOF2'
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt () { :; }
_dl
printf '%s ' "${COMPREPLY[@]}"
EOF2
ask () { bash ask.bash "$srcdir/etc/completion/dl" dl "$@"; }
is "$(ask sho)" "show " "bash: a command"
is "$(ask show dig)" "digits-0001 " "bash: an experiment"
is "$(ask show digits-0001 1)" "1 12 " "bash: its trials"
is "$(ask show --col)" "--columns= " "bash: an option"
if command -v zsh >/dev/null; then
    zsh -n "$srcdir/etc/completion/_dl"
    ok $? "zsh: its syntax"
    # zsh completes only on a terminal
    cat >ask.py <<'EOF2'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", ZDOTDIR=os.getcwd())
    os.execvp("zsh", ["zsh", "-f", "-i"])
def read(seconds):
    out, end = b"", time.time() + seconds
    while time.time() < end and select.select([fd], [], [], 0.2)[0]:
        out += os.read(fd, 65536)
    return out
def wait(word, limit=200):
    out, end = b"", time.time() + limit
    while word not in out and time.time() < end:
        out += read(1)
    return out
os.write(fd, b"PS1='READY> '; fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-colors ''; echo SET''UP\n" % sys.argv[1].encode())
wait(b"SETUP")
os.write(fd, sys.argv[2].encode() + b"\t")
print(wait(sys.argv[3].encode(), 200).decode(errors="replace"))
os.kill(pid, 9)
EOF2
    like "$(timeout 500 python3 ask.py "$srcdir/etc/completion" 'dl show dig' digits-0001)" 'dl show digits-0001' "zsh: an experiment"
    like "$(timeout 500 python3 ask.py "$srcdir/etc/completion" 'dl show --col' --columns= )" 'columns=' "zsh: an option"
else
    skip "zsh" "not installed"
fi
if command -v fish >/dev/null; then
    fish_says () { HOME=$work fish --no-config -c "source $srcdir/etc/completion/dl.fish; complete -C '$1'" | tr '\t' '|'; }
    like "$(fish_says 'dl sh')" "^show\|" "fish: a command"
    like "$(fish_says 'dl show dig')" '^digits-0001\|experiment$' "fish: an experiment"
    like "$(fish_says 'dl show digits-0001 1')" '^12\|trial$' "fish: its trials"
else
    skip "fish" "not installed"
fi
done_testing
