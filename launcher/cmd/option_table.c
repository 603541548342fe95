/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands: the only list of them. */
#include "launcher/cmd/option_table.h"

#include "launcher/sys/settings.h"

#define AT(field) offsetof (struct settings, field)

/* ---- groups: those that several commands have, and those of one ---- */

/* clang-format off */
static const struct opt dir[] = {
    { "dir", "DIR", "DL_DIR", "folder that holds the experiments (default: .)", OPT_STRING, AT (dir) },
    { 0 },
};

static const struct opt json[] = {
    { "json", NULL, NULL, "print JSON", OPT_FLAG, AT (json) },
    { 0 },
};

static const struct opt start[] = {
    { "local", NULL, NULL, "work in processes on this machine instead of Slurm", OPT_FLAG, AT (local) },
    { "detach", NULL, NULL, "return when the job is submitted, show no progress", OPT_FLAG, AT (detach) },
    { "workers", "N", NULL, "start N workers, whatever FILE says", OPT_COUNT, AT (workers) },
    { 0 },
};

static const struct opt trust[] = {
    { "trust", NULL, NULL, "run what another user's experiment.conf says, or one that has changed", OPT_FLAG, AT (trust) },
    { 0 },
};

static const struct opt own_copy[] = {
    { "trust", NULL, NULL, "of a copy of another user's data: it counts as your own", OPT_FLAG, AT (trust) },
    { 0 },
};

static const struct opt set[] = {
    { "set", "KEY=VALUE", NULL, "replace a key of the file, or add it", OPT_LIST, AT (sets) },
    { 0 },
};

static const struct opt change[] = {
    { "set", "KEY=VALUE", NULL, "change what Slurm is asked for from now on: resources.time, memory, max_memory, partition, account, qos, sbatch_args", OPT_LIST, AT (sets) },
    { 0 },
};

static const struct opt dry_run[] = {
    { "dry-run", NULL, NULL, "check the file and say what would run", OPT_FLAG, AT (dry_run) },
    { 0 },
};

static const struct opt undo[] = {
    { "undo", NULL, NULL, "undo: remove the label, show again, allow the machine", OPT_FLAG, AT (undo) },
    { 0 },
};

static const struct opt of_run[] = {
    { "no-workers", NULL, NULL, "only make the experiment; 'dl worker' works at it", OPT_FLAG, AT (no_workers) },
    { 0 },
};

static const struct opt of_preview[] = {
    { "seconds", "S", NULL, "one unit of length of one trial takes S seconds", OPT_REAL, AT (seconds) },
    { 0 },
};

static const struct opt of_fork[] = {
    { "file", "FILE", NULL, "search as FILE says, from the trial's checkpoint", OPT_STRING, AT (file) },
    { "seeds", "N", NULL, "train the configuration of TRIAL (default: the best) with N seeds, from the beginning", OPT_COUNT, AT (seeds) },
    { 0 },
};

static const struct opt of_import[] = {
    { "output", "FILE", NULL, "write FILE instead of one beside the imported file; -: standard output", OPT_STRING, AT (output), 'o' },
    { "from", "FORMAT", NULL, "what kind of file it is, where that cannot be seen", OPT_STRING, AT (format) },
    { "entrypoint", "COMMAND", NULL, "the program, where the file does not name it", OPT_STRING, AT (entrypoint) },
    { "coverage", NULL, NULL, "write nothing; say how much of each file is taken over", OPT_FLAG, AT (coverage) },
    { 0 },
};

static const struct opt of_flow[] = {
    { "local", NULL, NULL, "run the steps as processes of this machine", OPT_FLAG, AT (local) },
    { "workers", "N", NULL, "with --local: N tasks at once (default: its cores, at most 4)", OPT_COUNT, AT (workers) },
    { "every", "TIME", NULL, "of run: again and again, as 12h or 1-00:00:00", OPT_STRING, AT (every) },
    { "output", "FILE", NULL, "of graph: write FILE.svg, .png or .pdf by graphviz", OPT_STRING, AT (output), 'o' },
    { 0 },
};

static const struct opt of_elastic[] = {
    { "dir", "DIR", "DL_DIR", "folder that all nodes see; the run's is made in it (default: .)", OPT_STRING, AT (dir) },
    { "min", "N", NULL, "go on as long as there are N nodes (default: 1)", OPT_INT, AT (min) },
    { "max", "N", NULL, "have N nodes at most (default: all of the job)", OPT_INT, AT (max) },
    { "nodes", "N", NULL, "begin with N nodes (default: all but the spare ones)", OPT_INT, AT (size) },
    { "spares", "N", NULL, "so many more wait to take the place of one that is lost", OPT_INT, AT (spares) },
    { "ntasks-per-node", "K", NULL, "ranks of a node (default: 1)", OPT_INT, AT (ranks) },
    { "restarts", "N", NULL, "begin again on a node until it has failed N + 1 times in a row (default: 3)", OPT_INT, AT (restarts) },
    { "srun", "OPTION", NULL, "one more option for srun, as --srun=--dl=torch (may be given several times)", OPT_LIST, AT (sets) },
    { "local", NULL, NULL, "start --nodes processes on this machine", OPT_FLAG, AT (local) },
    { 0 },
};

static const struct opt of_notebook[] = {
    { "idle", "MINUTES", NULL, "end it when so long nothing was done and nothing runs (default: 60; 0: never)", OPT_INT, AT (minutes) },
    { "jupyter", "PROGRAM", NULL, "run this jupyter-lab or jupyter-notebook, as venv/bin/jupyter-lab", OPT_STRING, AT (file) },
    { "network", NULL, NULL, "listen on the node's address, for clusters without ssh to nodes; the token is then sent in the clear", OPT_FLAG, AT (network) },
    { 0 },
};

static const struct opt of_search_server[] = {
    { "searcher", "NAME", NULL, "search with NAME, whatever the first line says", OPT_STRING, AT (searcher) },
    { 0 },
};

static const struct opt of_worker[] = {
    { "slot", "NAME", NULL, "name of the place that the worker fills", OPT_STRING, AT (slot) },
    { 0 },
};

static const struct opt of_ls[] = {
    { "all", NULL, NULL, "include archived experiments", OPT_FLAG, AT (all) },
    { "label", "NAME", NULL, "list only experiments with this label", OPT_STRING, AT (label) },
    { 0 },
};

static const struct opt of_watch[] = {
    { "seconds", "S", NULL, "look every S seconds (default: 1)", OPT_REAL, AT (seconds) },
    { 0 },
};

static const struct opt of_best[] = {
    { "export", "DIR", NULL, "copy the checkpoint, the parameters and a manifest to DIR", OPT_STRING, AT (output) },
    { 0 },
};

static const struct opt of_failures[] = {
    { "lines", "N", NULL, "the last N lines of a log of each cause (default: 3)", OPT_INT, AT (lines), 'n' },
    { 0 },
};

static const struct opt of_plot[] = {
    { "output", "FILE", NULL, "write FILE.svg, .png or .pdf instead", OPT_STRING, AT (output), 'o' },
    { "term", "TERMINAL", NULL, "dumb, block, sixel or kitty, whatever the terminal seems to be", OPT_STRING, AT (format) },
    { "trials", "N", NULL, "of curves: those of the N best trials (default: 6)", OPT_COUNT, AT (trials) },
    { 0 },
};

static const struct opt of_top[] = {
    { "watch", NULL, NULL, "renew the table until q or ^C", OPT_FLAG, AT (watch) },
    { "seconds", "S", NULL, "with --watch: every S seconds (default: 5)", OPT_REAL, AT (seconds) },
    { 0 },
};

static const struct opt of_show[] = {
    { "trials", "N", NULL, "show the first N of them only", OPT_COUNT, AT (trials) },
    { "columns", "NAME,...", NULL, "only these columns, as dl export names them", OPT_STRING, AT (columns) },
    { "where", "EXPR", NULL, "only trials with, say, 'lr<0.1 && state==failed'", OPT_STRING, AT (where) },
    { "sort", "NAME", NULL, "in the order of a column, -NAME: downwards (default: best first)", OPT_STRING, AT (sort) },
    { "csv", NULL, NULL, "print CSV", OPT_FLAG, AT (csv) },
    { "provenance", NULL, NULL, "where it comes from: command, code, packages, machine", OPT_FLAG, AT (provenance) },
    { "values", NULL, NULL, "of TRIAL: each value of its metrics", OPT_FLAG, AT (values) },
    { 0 },
};

static const struct opt of_logs[] = {
    { "follow", NULL, NULL, "print what comes until the trial has ended (-f)", OPT_FLAG, AT (follow), 'f' },
    { "lines", "N", NULL, "the last N lines only (-n N)", OPT_INT, AT (lines), 'n' },
    { "attempt", "K", NULL, "of attempt K instead of the last one", OPT_COUNT, AT (attempt) },
    { 0 },
};

static const struct opt of_resume[] = {
    { "wait", NULL, NULL, "wait for the end, also where other workers are at work", OPT_FLAG, AT (wait) },
    { 0 },
};

static const struct opt of_wait[] = {
    { "timeout", "S", NULL, "wait for S seconds at most", OPT_REAL, AT (timeout) },
    { 0 },
};

static const struct opt of_monitor[] = {
    { "summary", NULL, NULL, "only the lines that srun prints at the end of step JOB.STEP", OPT_FLAG, AT (summary) },
    { 0 },
};

static const struct opt of_debug[] = {
    { "last", NULL, NULL, "print the last stacks; request no new ones", OPT_FLAG, AT (last) },
    { 0 },
};

static const struct opt of_continue[] = {
    { "trials", "N", NULL, "go on until there are N trials in all", OPT_COUNT, AT (trials) },
    { "length", "L", NULL, "train the trials to the length L in all", OPT_COUNT, AT (length) },
    { 0 },
};

static const struct opt of_try[] = {
    { "length", "L", NULL, "the length of the trial (default: 1)", OPT_COUNT, AT (length) },
    { 0 },
};

static const struct opt of_export[] = {
    { "format", "FORMAT", NULL, "csv (the default), json, h5, tensorboard, wandb, mlflow, optuna or parquet", OPT_STRING, AT (format) },
    { "output", "FILE", NULL, "write FILE instead of standard output; for other tools, a folder", OPT_STRING, AT (output) },
    { "follow", NULL, NULL, "go on with what is new until the experiment has ended", OPT_FLAG, AT (follow), 'f' },
    { "seconds", "S", NULL, "with --follow: look every S seconds (default: 5)", OPT_REAL, AT (seconds) },
    { "safe-csv", NULL, NULL, "mark texts that a spreadsheet would take for formulas", OPT_FLAG, AT (safe_csv) },
    { 0 },
};

static const struct opt of_report[] = {
    { "output", "FILE", NULL, "write FILE instead of EXPERIMENT.html", OPT_STRING, AT (output), 'o' },
    { "watch", NULL, NULL, "renew the file until the experiments have ended", OPT_FLAG, AT (watch) },
    { "seconds", "S", NULL, "with --watch: every S seconds (default: 15)", OPT_REAL, AT (seconds) },
    { 0 },
};

static const struct opt of_ckpt[] = {
    { "format", "FORMAT", NULL, "of extract: npy (the default) or raw", OPT_STRING, AT (format) },
    { "output", "FILE", NULL, "of extract: the file to write (default: the tensor's name)", OPT_STRING, AT (output) },
    { "only", "PREFIX", NULL, "of export: the tensors whose names begin so, without it", OPT_STRING, AT (only) },
    { "step", "N", NULL, "of import: the checkpoint's step (default: as exported, or 0)", OPT_INT, AT (step) },
    { 0 },
};

static const struct opt of_model[] = {
    { "models", "DIR", "DL_MODELS", "folder of the registry (default: models beside the experiments)", OPT_STRING, AT (models) },
    { "step", "N", NULL, "of register: the checkpoint of step N (default: the best one)", OPT_INT, AT (step) },
    { "force", NULL, NULL, "of rm: also what has a stage", OPT_FLAG, AT (force) },
    { 0 },
};

static const struct opt of_gc[] = {
    { "dry-run", NULL, NULL, "say what would be removed", OPT_FLAG, AT (dry_run) },
    { 0 },
};

static const struct opt of_reproduce[] = {
    { "dry-run", NULL, NULL, "only print the command", OPT_FLAG, AT (dry_run) },
    { 0 },
};

static const struct opt of_rm[] = {
    { "force", NULL, NULL, "even if it has not ended or cannot be read", OPT_FLAG, AT (force) },
    { 0 },
};

static const struct opt of_log[] = {
    { "step", "N", NULL, "the metrics are those of step N (default: one further)", OPT_INT, AT (step) },
    { 0 },
};

static const struct opt of_check[] = {
    { "full", NULL, NULL, "measure GPUs, memory, disk and network, too", OPT_FLAG, AT (full) },
    { "table", NULL, NULL, "print the placement of the ranks, too", OPT_FLAG, AT (table) },
    { "gpus", "N", NULL, "how many GPUs there should be (default: as Slurm says)", OPT_INT, AT (gpus) },
    { 0 },
};

static const struct opt of_doctor[] = {
    { "run", NULL, NULL, "start one task, and see what the plugin does", OPT_FLAG, AT (run) },
    { "root", "DIR", NULL, "look at the copy of a host in DIR", OPT_STRING, AT (root) },
    { "config", "FILE", NULL, "recorded output of scontrol show config", OPT_STRING, AT (config) },
    { "nodes", "N", NULL, "look at N nodes, in a step of srun's", OPT_WORD, AT (words) },
    { "nodelist", "HOSTS", NULL, "look at these nodes", OPT_WORD, AT (words) },
    { "partition", "NAME", NULL, "nodes of this partition", OPT_WORD, AT (words) },
    { 0 },
};

static const struct opt of_env[] = {
    { "nodes", "N", NULL, "the step has N nodes", OPT_WORD, AT (words) },
    { "nodelist", "HOSTS", NULL, "names of the nodes", OPT_WORD, AT (words) },
    { "ntasks", "N", NULL, "and N tasks in all", OPT_WORD, AT (words) },
    { "ntasks-per-node", "K", NULL, "K on each node, or as 4(x2),3", OPT_WORD, AT (words) },
    { "distribution", "HOW", NULL, "block, cyclic, plane=SIZE or arbitrary", OPT_WORD, AT (words) },
    { "cpus-per-task", "N", NULL, "cores of a task", OPT_WORD, AT (words) },
    { "gpus-per-node", "N", NULL, "GPUs of a node", OPT_WORD, AT (words) },
    { "gpus-per-task", "N", NULL, "GPUs of a task, which sees no others", OPT_WORD, AT (words) },
    { "mpi", "TYPE", NULL, "none, pmi2 or pmix", OPT_WORD, AT (words) },
    /* as runtime/rank/plugin_options.c has them */
    { "dl", "FRAMEWORK", NULL, "set each rank's environment for torch, tf, jax, ...", OPT_WORD, AT (words) },
    { "dl-roles", "ROLE:N[,ROLE:N]...", NULL, "roles of the ranks in their order, as chief:1,ps:2,worker:*", OPT_WORD, AT (words) },
    { "dl-bind", "WHERE", NULL, "bind each rank to cores near its GPU: closest, socket, spread, none", OPT_WORD, AT (words) },
    { "dl-nccl", "PROFILE", NULL, "set the site's network variables: auto, none or a profile", OPT_WORD, AT (words) },
    { "job", "JOB[.STEP]", NULL, "number of the job, for ports", OPT_WORD, AT (words) },
    { "resv-ports", "LIST", NULL, "ports that Slurm reserves, as 41004-41006", OPT_WORD, AT (words) },
    { "topology", "DIR", NULL, "folder with a copy of a node's sys, proc and dev", OPT_WORD, AT (words) },
    { "cpu-list", "LIST", NULL, "CPUs of the step on each node of --topology", OPT_WORD, AT (words) },
    { "nccl-dir", "DIR", NULL, "folder of the site's network profiles", OPT_WORD, AT (words) },
    { "one-machine", NULL, NULL, "all nodes are this machine (contrib/minicluster)", OPT_WORD, AT (words) },
    { "rank", "R", NULL, "print NAME=VALUE lines of rank R, for env -S and eval", OPT_INT, AT (rank) },
    { 0 },
};

/* ---- the groups of each command ---- */

#define OPTIONS(command) const struct opt *const options_##command[]

OPTIONS (run) = { dir, start, set, dry_run, of_run, NULL };
OPTIONS (try) = { set, of_try, NULL };
OPTIONS (preview) = { set, of_preview, json, NULL };
OPTIONS (fork) = { dir, start, trust, set, dry_run, of_fork, NULL };
OPTIONS (import) = { of_import, NULL };
OPTIONS (flow) = { dir, of_flow, dry_run, json, NULL };
OPTIONS (elastic) = { of_elastic, NULL };
OPTIONS (shell) = { NULL };
OPTIONS (notebook) = { of_notebook, NULL };
OPTIONS (tensorboard) = { dir, NULL };
OPTIONS (search_server) = { of_search_server, NULL };
OPTIONS (worker) = { dir, trust, of_worker, NULL };
OPTIONS (ls) = { dir, of_ls, json, NULL };
OPTIONS (watch) = { dir, of_watch, NULL };
OPTIONS (best) = { dir, of_best, own_copy, json, NULL };
OPTIONS (failures) = { dir, of_failures, json, NULL };
OPTIONS (compare) = { dir, json, NULL };
OPTIONS (plot) = { dir, of_plot, NULL };
OPTIONS (top) = { dir, of_top, json, NULL };
OPTIONS (show) = { dir, of_show, json, NULL };
OPTIONS (logs) = { dir, of_logs, NULL };
OPTIONS (wait) = { dir, of_wait, NULL };
OPTIONS (monitor) = { of_monitor, json, NULL };
OPTIONS (debug) = { of_debug, NULL };
OPTIONS (resume) = { dir, start, trust, change, of_resume, NULL };
OPTIONS (retry) = { dir, start, trust, change, NULL };
OPTIONS (continue) = { dir, start, trust, change, of_continue, NULL };
OPTIONS (sweep) = { dir, NULL };
OPTIONS (scale) = { dir, trust, NULL };
OPTIONS (mark) = { dir, undo, NULL };
OPTIONS (export) = { dir, of_export, NULL };
OPTIONS (report) = { dir, of_report, NULL };
OPTIONS (ckpt) = { of_ckpt, own_copy, json, NULL };
OPTIONS (model) = { dir, of_model, own_copy, json, NULL };
OPTIONS (gc) = { dir, of_gc, NULL };
OPTIONS (reproduce) = { dir, trust, of_reproduce, NULL };
OPTIONS (rm) = { dir, of_rm, NULL };
OPTIONS (log) = { of_log, NULL };
OPTIONS (check) = { of_check, json, NULL };
OPTIONS (doctor) = { of_doctor, json, NULL };
OPTIONS (env) = { of_env, json, NULL };
/* clang-format on */
