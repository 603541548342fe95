/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands: the only list of them. */
#include "launcher/cmd/option_table.h"

#include <stddef.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/interactive.h"
#include "launcher/cmd/search_server.h"
#include "launcher/cmd/view.h"
#include "launcher/debug/debug.h"
#include "launcher/flow/flow.h"
#include "launcher/job/elastic_command.h"
#include "launcher/model/ckpt.h"
#include "launcher/model/model.h"
#include "launcher/monitor/monitor.h"
#include "launcher/node/node.h"
#include "launcher/report/report.h"

/* A row fills a field of the command's own struct; --dir is the command line's. */
#define AT(command, field) offsetof (struct command##_options, field)

#define OPTIONS(command, ...)                                                                      \
    const struct option_set options_##command = { sizeof (struct command##_options),               \
                                                  (const struct opt[]){ __VA_ARGS__, { 0 } } }

/* ---- options that several commands have ---- */

/* clang-format off */
#define DIR { "dir", "DIR", "DL_DIR", "folder that holds the experiments (default: .)", OPT_DIR }
#define JSON(command) { "json", NULL, NULL, "print JSON", OPT_FLAG, AT (command, json) }
#define START(command) \
    { "local", NULL, NULL, "work in processes on this machine instead of Slurm", OPT_FLAG, AT (command, start.local) }, \
    { "detach", NULL, NULL, "return when the job is submitted, show no progress", OPT_FLAG, AT (command, start.detach) }, \
    { "workers", "N", NULL, "start N workers, whatever FILE says", OPT_COUNT, AT (command, start.workers) }
#define TRUST(command) { "trust", NULL, NULL, "run what another user's experiment.conf says, or one that has changed", OPT_FLAG, AT (command, trust) }
#define OWN_DATA(command) { "trust", NULL, NULL, "of a copy of another user's data: it counts as your own", OPT_FLAG, AT (command, trust) }
#define SET(command, field) { "set", "KEY=VALUE", NULL, "replace a key of the file, or add it", OPT_LIST, AT (command, field) }
#define CHANGE(command, field) { "set", "KEY=VALUE", NULL, "change what Slurm is asked for from now on: resources.time, memory, max_memory, partition, account, qos, sbatch_args", OPT_LIST, AT (command, field) }
#define DRY_RUN(command, field) { "dry-run", NULL, NULL, "check the file and say what would run", OPT_FLAG, AT (command, field) }

/* ---- those of each command ---- */

OPTIONS (run,
    DIR,
    START (run),
    SET (run, start.sets),
    DRY_RUN (run, start.dry_run),
    { "no-workers", NULL, NULL, "only make the experiment; 'dl worker' works at it", OPT_FLAG, AT (run, start.no_workers) });

OPTIONS (try,
    SET (try, sets),
    { "length", "L", NULL, "the length of the trial (default: 1)", OPT_COUNT, AT (try, length) });

OPTIONS (preview,
    SET (preview, sets),
    { "seconds", "S", NULL, "one unit of length of one trial takes S seconds", OPT_REAL, AT (preview, seconds) },
    JSON (preview));

OPTIONS (fork,
    DIR,
    START (fork),
    TRUST (fork),
    SET (fork, start.sets),
    DRY_RUN (fork, start.dry_run),
    { "file", "FILE", NULL, "search as FILE says, from the trial's checkpoint", OPT_STRING, AT (fork, file) },
    { "seeds", "N", NULL, "train the configuration of TRIAL (default: the best) with N seeds, from the beginning", OPT_COUNT, AT (fork, seeds) });

OPTIONS (import,
    { "output", "FILE", NULL, "write FILE instead of one beside the imported file; -: standard output", OPT_STRING, AT (import, output), 'o' },
    { "from", "FORMAT", NULL, "what kind of file it is, where that cannot be seen", OPT_STRING, AT (import, from) },
    { "entrypoint", "COMMAND", NULL, "the program, where the file does not name it", OPT_STRING, AT (import, entrypoint) },
    { "coverage", NULL, NULL, "write nothing; say how much of each file is taken over", OPT_FLAG, AT (import, coverage) });

OPTIONS (flow,
    DIR,
    { "local", NULL, NULL, "run the steps as processes of this machine", OPT_FLAG, AT (flow, local) },
    { "workers", "N", NULL, "with --local: N tasks at once (default: its cores, at most 4)", OPT_COUNT, AT (flow, workers) },
    { "every", "TIME", NULL, "of run: again and again, as 12h or 1-00:00:00", OPT_STRING, AT (flow, every) },
    { "output", "FILE", NULL, "of graph: write FILE.svg, .png or .pdf by graphviz", OPT_STRING, AT (flow, output), 'o' },
    DRY_RUN (flow, dry_run),
    JSON (flow));

OPTIONS (elastic,
    { "dir", "DIR", "DL_DIR", "folder that all nodes see; the run's is made in it (default: .)", OPT_DIR },
    { "min", "N", NULL, "go on as long as there are N nodes (default: 1)", OPT_INT, AT (elastic, min) },
    { "max", "N", NULL, "have N nodes at most (default: all of the job)", OPT_INT, AT (elastic, max) },
    { "nodes", "N", NULL, "begin with N nodes (default: all but the spare ones)", OPT_INT, AT (elastic, nodes) },
    { "spares", "N", NULL, "so many more wait to take the place of one that is lost", OPT_INT, AT (elastic, spares) },
    { "ntasks-per-node", "K", NULL, "ranks of a node (default: 1)", OPT_INT, AT (elastic, ranks_per_node) },
    { "restarts", "N", NULL, "begin again on a node until it has failed N + 1 times in a row (default: 3)", OPT_INT, AT (elastic, restarts), 0, 3 },
    { "srun", "OPTION", NULL, "one more option for srun, as --srun=--dl=torch (may be given several times)", OPT_LIST, AT (elastic, srun_options) },
    { "local", NULL, NULL, "start --nodes processes on this machine", OPT_FLAG, AT (elastic, local) });

OPTIONS (job,
    DIR,
    { "name", "NAME", NULL, "name of the job (default: that of the program)", OPT_STRING, AT (job, name) },
    { "nodes", "N", NULL, "nodes of the job (default: all of the allocation, else 1)", OPT_COUNT, AT (job, nodes) },
    { "ntasks-per-node", "K", NULL, "processes on each node (default: as the allocation says, else 1)", OPT_COUNT, AT (job, ranks) },
    { "framework", "NAME", NULL, "set the rank environment of this framework, as --dl=NAME does", OPT_STRING, AT (job, framework) },
    { "local", NULL, NULL, "work in processes on this machine instead of Slurm", OPT_FLAG, AT (job, start.local) },
    { "detach", NULL, NULL, "return when the job is submitted, show no progress", OPT_FLAG, AT (job, start.detach) },
    SET (job, start.sets),
    DRY_RUN (job, start.dry_run));

const struct option_set options_shell = { 0, (const struct opt[]){ { 0 } } };

OPTIONS (notebook,
    { "idle", "MINUTES", NULL, "end it when so long nothing was done and nothing runs (default: 60; 0: never)", OPT_INT, AT (notebook, idle), 0, -1 },
    { "jupyter", "PROGRAM", NULL, "run this jupyter-lab or jupyter-notebook, as venv/bin/jupyter-lab", OPT_STRING, AT (notebook, jupyter) },
    { "network", NULL, NULL, "listen on the node's address, for clusters without ssh to nodes; the token is then sent in the clear", OPT_FLAG, AT (notebook, network) });

const struct option_set options_tensorboard = { 0, (const struct opt[]){ DIR, { 0 } } };

OPTIONS (search_server,
    { "searcher", "NAME", NULL, "search with NAME, whatever the first line says", OPT_STRING, AT (search_server, searcher) });

OPTIONS (worker,
    DIR,
    TRUST (worker),
    { "slot", "NAME", NULL, "name of the place that the worker fills", OPT_STRING, AT (worker, slot) });

OPTIONS (ls,
    DIR,
    { "all", NULL, NULL, "include archived experiments", OPT_FLAG, AT (ls, all) },
    { "label", "NAME", NULL, "list only experiments with this label", OPT_STRING, AT (ls, label) },
    JSON (ls));

OPTIONS (watch,
    DIR,
    { "seconds", "S", NULL, "look every S seconds (default: 1)", OPT_REAL, AT (watch, seconds) });

OPTIONS (best,
    DIR,
    { "export", "DIR", NULL, "copy the checkpoint, the parameters and a manifest to DIR", OPT_STRING, AT (best, export_dir) },
    OWN_DATA (best),
    JSON (best));

OPTIONS (failures,
    DIR,
    { "lines", "N", NULL, "the last N lines of a log of each cause (default: 3)", OPT_INT, AT (failures, lines), 'n', -1 },
    JSON (failures));

OPTIONS (compare,
    DIR,
    JSON (compare));

OPTIONS (plot,
    DIR,
    { "output", "FILE", NULL, "write FILE.svg, .png or .pdf instead", OPT_STRING, AT (plot, output), 'o' },
    { "term", "TERMINAL", NULL, "dumb, block, sixel or kitty, whatever the terminal seems to be", OPT_STRING, AT (plot, terminal) },
    { "trials", "N", NULL, "of curves: those of the N best trials (default: 6)", OPT_COUNT, AT (plot, trials) });

OPTIONS (top,
    DIR,
    { "watch", NULL, NULL, "renew the table until q or ^C", OPT_FLAG, AT (top, watch) },
    { "seconds", "S", NULL, "with --watch: every S seconds (default: 5)", OPT_REAL, AT (top, seconds) },
    JSON (top));

OPTIONS (show,
    DIR,
    { "trials", "N", NULL, "show the first N of them only", OPT_COUNT, AT (show, trials) },
    { "columns", "NAME,...", NULL, "only these columns, as dl export names them", OPT_STRING, AT (show, columns) },
    { "where", "EXPR", NULL, "only trials with, say, 'lr<0.1 && state==failed'", OPT_STRING, AT (show, where) },
    { "sort", "NAME", NULL, "in the order of a column, -NAME: downwards (default: best first)", OPT_STRING, AT (show, sort) },
    { "csv", NULL, NULL, "print CSV", OPT_FLAG, AT (show, csv) },
    { "provenance", NULL, NULL, "where it comes from: command, code, packages, machine", OPT_FLAG, AT (show, provenance) },
    { "values", NULL, NULL, "of TRIAL: each value of its metrics", OPT_FLAG, AT (show, values) },
    JSON (show));

OPTIONS (logs,
    DIR,
    { "follow", NULL, NULL, "print what comes until the trial has ended (-f)", OPT_FLAG, AT (logs, follow), 'f' },
    { "lines", "N", NULL, "the last N lines only (-n N)", OPT_INT, AT (logs, lines), 'n', -1 },
    { "attempt", "K", NULL, "of attempt K instead of the last one", OPT_COUNT, AT (logs, attempt) });

OPTIONS (wait,
    DIR,
    { "timeout", "S", NULL, "wait for S seconds at most", OPT_REAL, AT (wait, timeout), 0, -1 });

OPTIONS (monitor,
    { "summary", NULL, NULL, "only the lines that srun prints at the end of step JOB.STEP", OPT_FLAG, AT (monitor, summary) },
    JSON (monitor));

OPTIONS (debug,
    { "last", NULL, NULL, "print the last stacks; request no new ones", OPT_FLAG, AT (debug, last) });

OPTIONS (resume,
    DIR,
    START (resume),
    TRUST (resume),
    CHANGE (resume, start.sets),
    { "wait", NULL, NULL, "wait for the end, also where other workers are at work", OPT_FLAG, AT (resume, wait) });

OPTIONS (retry,
    DIR,
    START (retry),
    TRUST (retry),
    CHANGE (retry, start.sets));

OPTIONS (continue,
    DIR,
    START (continue),
    TRUST (continue),
    CHANGE (continue, start.sets),
    { "trials", "N", NULL, "go on until there are N trials in all", OPT_COUNT, AT (continue, trials) },
    { "length", "L", NULL, "train the trials to the length L in all", OPT_COUNT, AT (continue, length) });

const struct option_set options_sweep = { 0, (const struct opt[]){ DIR, { 0 } } };

OPTIONS (scale,
    DIR,
    TRUST (scale));

OPTIONS (mark,
    DIR,
    { "undo", NULL, NULL, "undo: remove the label, show again, allow the machine", OPT_FLAG, AT (mark, undo) });

OPTIONS (export,
    DIR,
    { "format", "FORMAT", NULL, "csv (the default), json, h5, tensorboard, wandb, mlflow, optuna or parquet", OPT_STRING, AT (export, format) },
    { "output", "FILE", NULL, "write FILE instead of standard output; for other tools, a folder", OPT_STRING, AT (export, output) },
    { "follow", NULL, NULL, "go on with what is new until the experiment has ended", OPT_FLAG, AT (export, follow), 'f' },
    { "seconds", "S", NULL, "with --follow: look every S seconds (default: 5)", OPT_REAL, AT (export, seconds) },
    { "safe-csv", NULL, NULL, "mark texts that a spreadsheet would take for formulas", OPT_FLAG, AT (export, safe_csv) });

OPTIONS (report,
    DIR,
    { "output", "FILE", NULL, "write FILE instead of EXPERIMENT.html", OPT_STRING, AT (report, output), 'o' },
    { "watch", NULL, NULL, "renew the file until the experiments have ended", OPT_FLAG, AT (report, watch) },
    { "seconds", "S", NULL, "with --watch: every S seconds (default: 15)", OPT_REAL, AT (report, seconds) });

OPTIONS (ckpt,
    { "format", "FORMAT", NULL, "of extract: npy (the default) or raw", OPT_STRING, AT (ckpt, format) },
    { "output", "FILE", NULL, "of extract: the file to write (default: the tensor's name)", OPT_STRING, AT (ckpt, output) },
    { "only", "PREFIX", NULL, "of export: the tensors whose names begin so, without it", OPT_STRING, AT (ckpt, prefix) },
    { "step", "N", NULL, "of import: the checkpoint's step (default: as exported, or 0)", OPT_INT, AT (ckpt, step), 0, -1 },
    OWN_DATA (ckpt),
    JSON (ckpt));

OPTIONS (model,
    DIR,
    { "models", "DIR", "DL_MODELS", "folder of the registry (default: models beside the experiments)", OPT_STRING, AT (model, models) },
    { "step", "N", NULL, "of register: the checkpoint of step N (default: the best one)", OPT_INT, AT (model, step), 0, -1 },
    { "force", NULL, NULL, "of rm: also what has a stage", OPT_FLAG, AT (model, force) },
    OWN_DATA (model),
    JSON (model));

OPTIONS (gc,
    DIR,
    { "dry-run", NULL, NULL, "say what would be removed", OPT_FLAG, AT (gc, dry_run) });

OPTIONS (reproduce,
    DIR,
    TRUST (reproduce),
    { "dry-run", NULL, NULL, "only print the command", OPT_FLAG, AT (reproduce, dry_run) });

OPTIONS (rm,
    DIR,
    { "force", NULL, NULL, "even if it has not ended or cannot be read", OPT_FLAG, AT (rm, force) });

OPTIONS (log,
    { "step", "N", NULL, "the metrics are those of step N (default: one further)", OPT_INT, AT (log, step), 0, -1 });

OPTIONS (check,
    { "full", NULL, NULL, "measure GPUs, memory, disk and network, too", OPT_FLAG, AT (check, full) },
    { "table", NULL, NULL, "print the placement of the ranks, too", OPT_FLAG, AT (check, table) },
    { "gpus", "N", NULL, "how many GPUs there should be (default: as Slurm says)", OPT_INT, AT (check, gpus), 0, -1 },
    JSON (check));

OPTIONS (doctor,
    { "run", NULL, NULL, "start one task, and see what the plugin does", OPT_FLAG, AT (doctor, run) },
    { "root", "DIR", NULL, "look at the copy of a host in DIR", OPT_STRING, AT (doctor, root) },
    { "config", "FILE", NULL, "recorded output of scontrol show config", OPT_STRING, AT (doctor, config) },
    { "nodes", "N", NULL, "look at N nodes, in a step of srun's", OPT_WORD, AT (doctor, srun_options) },
    { "nodelist", "HOSTS", NULL, "look at these nodes", OPT_WORD, AT (doctor, srun_options) },
    { "partition", "NAME", NULL, "nodes of this partition", OPT_WORD, AT (doctor, srun_options) },
    JSON (doctor));

OPTIONS (env,
    { "nodes", "N", NULL, "the step has N nodes", OPT_WORD, AT (env, facts) },
    { "nodelist", "HOSTS", NULL, "names of the nodes", OPT_WORD, AT (env, facts) },
    { "ntasks", "N", NULL, "and N tasks in all", OPT_WORD, AT (env, facts) },
    { "ntasks-per-node", "K", NULL, "K on each node, or as 4(x2),3", OPT_WORD, AT (env, facts) },
    { "distribution", "HOW", NULL, "block, cyclic, plane=SIZE or arbitrary", OPT_WORD, AT (env, facts) },
    { "cpus-per-task", "N", NULL, "cores of a task", OPT_WORD, AT (env, facts) },
    { "gpus-per-node", "N", NULL, "GPUs of a node", OPT_WORD, AT (env, facts) },
    { "gpus-per-task", "N", NULL, "GPUs of a task, which sees no others", OPT_WORD, AT (env, facts) },
    { "mpi", "TYPE", NULL, "none, pmi2 or pmix", OPT_WORD, AT (env, facts) },
    /* as runtime/rank/plugin_options.c has them */
    { "dl", "FRAMEWORK", NULL, "set each rank's environment for torch, tf, jax, ...", OPT_WORD, AT (env, facts) },
    { "dl-roles", "ROLE:N[,ROLE:N]...", NULL, "roles of the ranks in their order, as chief:1,ps:2,worker:*", OPT_WORD, AT (env, facts) },
    { "dl-bind", "WHERE", NULL, "bind each rank to cores near its GPU: closest, socket, spread, none", OPT_WORD, AT (env, facts) },
    { "dl-nccl", "PROFILE", NULL, "set the site's network variables: auto, none or a profile", OPT_WORD, AT (env, facts) },
    { "job", "JOB[.STEP]", NULL, "number of the job, for ports", OPT_WORD, AT (env, facts) },
    { "resv-ports", "LIST", NULL, "ports that Slurm reserves, as 41004-41006", OPT_WORD, AT (env, facts) },
    { "topology", "DIR", NULL, "folder with a copy of a node's sys, proc and dev", OPT_WORD, AT (env, facts) },
    { "cpu-list", "LIST", NULL, "CPUs of the step on each node of --topology", OPT_WORD, AT (env, facts) },
    { "nccl-dir", "DIR", NULL, "folder of the site's network profiles", OPT_WORD, AT (env, facts) },
    { "one-machine", NULL, NULL, "all nodes are this machine (contrib/minicluster)", OPT_WORD, AT (env, facts) },
    { "rank", "R", NULL, "print NAME=VALUE lines of rank R, for env -S and eval", OPT_INT, AT (env, rank), 0, -1 },
    JSON (env));
/* clang-format on */
