# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
# Create an experiment of the victim in a folder that the group shares.  Each case of an attack gets a copy of it.
# Source this after users.sh.
putevent=$builddir/tests/launcher/putevent
group=$work/group
shared_folder "$group"
cat >"$work/s.conf" <<'CONF'
name = "s";
entrypoint = "echo trained; : {x}; dl log loss=1";
searcher = { name = "random"; metric = "loss"; max_trials = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
worker = { heartbeat = 1; lease = 3; grace = 2; };
resources = { workers = 1; };
checkpoint_policy = { save_trial_latest = 0; save_trial_best = 0; };
CONF
chmod 644 "$work/s.conf"

victim timeout 100 dl run --local --dir "$group" "$work/s.conf" >"$work/made" 2>&1 || bail_out "no experiment" "$work/made"

# files that dl gc considers checkpoints, by their names
victim sh -c "umask 002; for n in 1 2; do
    mkdir -p '$group/s-0001/trials/000'\$n/a.1/ckpt && cd '$group/s-0001/trials/000'\$n/a.1/ckpt && touch 00000001.h5 00000002.h5
done"

# Make a copy of the experiment with the same owner and the same record, as if it had been created there: case_of NAME.
# Sets $e to its folder.
case_of () {
    e=$group/$1-0001
    rm -rf "$e"
    cp -a "$group/s-0001" "$e"
    victim ln -sfn "$(basename "$(dirname "$(find "$victim_home/.local/state" -name pin | head -1)")")" \
        "$victim_home/.local/state/slurm-dl/path-$(printf %s "$e" | sha256sum | cut -c 1-64)"
}
