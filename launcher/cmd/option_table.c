/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands.  Nothing else lists them. */
#include "launcher/cmd/options.h"

#include <stddef.h>

#include "launcher/cmd/commands.h"
#include "launcher/debug/debug.h"
#include "launcher/flow/flow.h"
#include "launcher/job/job.h"
#include "launcher/model/model.h"
#include "launcher/monitor/monitor.h"
#include "launcher/node/node.h"
#include "launcher/report/report.h"

/* A row fills a field of the command's own struct.  --dir is stored in struct
 * command_line.
 */
#define AT(command, field) offsetof (struct command##_options, field)

#define OPTIONS(command, ...)                                                                      \
    const struct option_set options_##command = { sizeof (struct command##_options),               \
                                                  (const struct opt[]){ __VA_ARGS__, { 0 } } }

/* ---- options that several commands share ---- */

/* clang-format off */
#define DIR { "dir", "DIR", "DL_DIR", "folder of the experiments (default: .)", OPT_DIR }
#define JSON(command) { "json", NULL, NULL, "print JSON", OPT_FLAG, AT (command, json) }
#define START(command) \
    { "local", NULL, NULL, "run the workers as processes on this machine, without Slurm", OPT_FLAG, AT (command, start.local) }, \
    { "detach", NULL, NULL, "return once the job is submitted; show no progress", OPT_FLAG, AT (command, start.detach) }, \
    { "workers", "N", NULL, "start N workers; overrides FILE", OPT_COUNT, AT (command, start.workers) }
#define TRUST(command) { "trust", NULL, NULL, "do not ask before running another user's or a changed experiment", OPT_FLAG, AT (command, trust) }
#define OWN_DATA(command) { "trust", NULL, NULL, "trust a copy of another user's data as your own", OPT_FLAG, AT (command, trust) }
#define SET(command, field) { "set", "KEY=VALUE", NULL, "replace a key of the file, or add it", OPT_LIST, AT (command, field) }
#define CHANGE(command, field) { "set", "KEY=VALUE", NULL, "change what future jobs request: resources.time, memory, max_memory, partition, account, qos, sbatch_args", OPT_LIST, AT (command, field) }
#define DRY_RUN(command, field) { "dry-run", NULL, NULL, "check the file and print what would run", OPT_FLAG, AT (command, field) }

/* ---- the options of each command ---- */

OPTIONS (run,
    DIR,
    START (run),
    SET (run, start.sets),
    DRY_RUN (run, start.dry_run),
    { "no-workers", NULL, NULL, "only create the experiment; 'dl worker' starts workers", OPT_FLAG, AT (run, start.no_workers) });

OPTIONS (try,
    SET (try, sets),
    { "length", "L", NULL, "length of the trial (default: 1)", OPT_COUNT, AT (try, length) });

OPTIONS (preview,
    SET (preview, sets),
    { "seconds", "S", NULL, "assume that a trial trains one unit of length in S seconds", OPT_REAL, AT (preview, seconds) },
    JSON (preview));

OPTIONS (fork,
    DIR,
    START (fork),
    TRUST (fork),
    SET (fork, start.sets),
    DRY_RUN (fork, start.dry_run),
    { "file", "FILE", NULL, "run the search of FILE from the trial's checkpoint", OPT_STRING, AT (fork, file) },
    { "seeds", "N", NULL, "train the configuration of TRIAL (default: the best) from scratch with N seeds", OPT_COUNT, AT (fork, seeds) });

OPTIONS (import,
    { "output", "FILE", NULL, "write FILE (-: standard output), not a file beside the input", OPT_STRING, AT (import, output), 'o' },
    { "from", "FORMAT", NULL, "format of the file, if its contents do not show it", OPT_STRING, AT (import, from) },
    { "entrypoint", "COMMAND", NULL, "command of the trials, if the file does not name it", OPT_STRING, AT (import, entrypoint) },
    { "coverage", NULL, NULL, "write nothing; print how much of each file is converted", OPT_FLAG, AT (import, coverage) });

OPTIONS (flow,
    DIR,
    { "local", NULL, NULL, "run the steps as processes on this machine", OPT_FLAG, AT (flow, local) },
    { "workers", "N", NULL, "with --local: run N tasks at once (default: the number of cores, at most 4)", OPT_COUNT, AT (flow, workers) },
    { "every", "TIME", NULL, "run: repeat the flow at this interval, e.g. 12h or 1-00:00:00", OPT_STRING, AT (flow, every) },
    { "output", "FILE", NULL, "graph: draw FILE.svg, .png or .pdf with graphviz", OPT_STRING, AT (flow, output), 'o' },
    DRY_RUN (flow, dry_run),
    JSON (flow));

OPTIONS (elastic,
    { "dir", "DIR", "DL_DIR", "folder, visible to all nodes, for the folder of the run (default: .)", OPT_DIR },
    { "min", "N", NULL, "keep going while at least N nodes are left (default: 1)", OPT_INT, AT (elastic, min) },
    { "max", "N", NULL, "use at most N nodes (default: all of the job)", OPT_INT, AT (elastic, max) },
    { "nodes", "N", NULL, "start with N nodes (default: all but the spare ones)", OPT_INT, AT (elastic, nodes) },
    { "spares", "N", NULL, "keep N more nodes waiting to replace lost ones", OPT_INT, AT (elastic, spares) },
    { "ntasks-per-node", "K", NULL, "ranks on each node (default: 1)", OPT_INT, AT (elastic, ranks_per_node) },
    { "restarts", "N", NULL, "restart on a node until it has failed N + 1 times in a row (default: 3)", OPT_INT, AT (elastic, restarts), 0, 3 },
    { "srun", "OPTION", NULL, "pass OPTION to srun, e.g. --srun=--dl=torch (repeatable)", OPT_LIST, AT (elastic, srun_options) },
    { "local", NULL, NULL, "start --nodes processes on this machine", OPT_FLAG, AT (elastic, local) });

OPTIONS (job,
    DIR,
    { "name", "NAME", NULL, "name of the job (default: the name of the program)", OPT_STRING, AT (job, name) },
    { "nodes", "N", NULL, "number of nodes (default: all of the allocation, or 1)", OPT_COUNT, AT (job, nodes) },
    { "ntasks-per-node", "K", NULL, "processes on each node (default: as in the allocation, or 1)", OPT_COUNT, AT (job, ranks) },
    { "framework", "NAME", NULL, "set this framework's rank environment, like --dl=NAME", OPT_STRING, AT (job, framework) },
    { "local", NULL, NULL, "run it as processes on this machine, without Slurm", OPT_FLAG, AT (job, start.local) },
    { "detach", NULL, NULL, "return once the job is submitted; show no progress", OPT_FLAG, AT (job, start.detach) },
    SET (job, start.sets),
    DRY_RUN (job, start.dry_run));

const struct option_set options_shell = { 0, (const struct opt[]){ { 0 } } };

OPTIONS (notebook,
    { "idle", "MINUTES", NULL, "end it after MINUTES without activity (default: 60; 0: never)", OPT_INT, AT (notebook, idle), 0, -1 },
    { "jupyter", "PROGRAM", NULL, "run this jupyter-lab or jupyter-notebook, for example venv/bin/jupyter-lab", OPT_STRING, AT (notebook, jupyter) },
    { "network", NULL, NULL, "listen on the node's address, if you cannot ssh to nodes; the token is sent in clear text", OPT_FLAG, AT (notebook, network) });

const struct option_set options_tensorboard = { 0, (const struct opt[]){ DIR, { 0 } } };

OPTIONS (search_server,
    { "searcher", "NAME", NULL, "searcher to use; overrides the first line of input", OPT_STRING, AT (search_server, searcher) });

OPTIONS (worker,
    DIR,
    TRUST (worker),
    { "slot", "NAME", NULL, "name of the slot that the worker occupies", OPT_STRING, AT (worker, slot) });

OPTIONS (ls,
    DIR,
    { "all", NULL, NULL, "include archived experiments", OPT_FLAG, AT (ls, all) },
    { "label", "NAME", NULL, "list only experiments with this label", OPT_STRING, AT (ls, label) },
    JSON (ls));

OPTIONS (watch,
    DIR,
    { "seconds", "S", NULL, "refresh every S seconds (default: 1)", OPT_REAL, AT (watch, seconds) });

OPTIONS (best,
    DIR,
    { "export", "DIR", NULL, "copy the checkpoint, the parameters and a manifest to DIR", OPT_STRING, AT (best, export_dir) },
    OWN_DATA (best),
    JSON (best));

OPTIONS (failures,
    DIR,
    { "lines", "N", NULL, "for each cause, print the last N lines of a log (default: 3)", OPT_INT, AT (failures, lines), 'n', -1 },
    JSON (failures));

OPTIONS (goodput,
    DIR,
    { "csv", NULL, NULL, "print CSV", OPT_FLAG, AT (goodput, csv) },
    JSON (goodput));

OPTIONS (compare,
    DIR,
    JSON (compare));

OPTIONS (plot,
    DIR,
    { "output", "FILE", NULL, "write FILE.svg, .png or .pdf instead", OPT_STRING, AT (plot, output), 'o' },
    { "term", "TERMINAL", NULL, "draw for a dumb, block, sixel or kitty terminal (default: detected)", OPT_STRING, AT (plot, terminal) },
    { "trials", "N", NULL, "curves: draw the N best trials (default: 6)", OPT_COUNT, AT (plot, trials) });

OPTIONS (top,
    DIR,
    { "watch", NULL, NULL, "refresh the table until q or ^C", OPT_FLAG, AT (top, watch) },
    { "seconds", "S", NULL, "with --watch: refresh every S seconds (default: 5)", OPT_REAL, AT (top, seconds) },
    JSON (top));

OPTIONS (show,
    DIR,
    { "trials", "N", NULL, "show only the first N trials", OPT_COUNT, AT (show, trials) },
    { "columns", "NAME,...", NULL, "show only these columns (names as in dl export)", OPT_STRING, AT (show, columns) },
    { "where", "EXPR", NULL, "show only matching trials, e.g. 'lr<0.1 && state==failed'", OPT_STRING, AT (show, where) },
    { "sort", "NAME", NULL, "sort by a column, -NAME: descending (default: best first)", OPT_STRING, AT (show, sort) },
    { "csv", NULL, NULL, "print CSV", OPT_FLAG, AT (show, csv) },
    { "provenance", NULL, NULL, "print its origin: command, code, packages, machine", OPT_FLAG, AT (show, provenance) },
    { "values", NULL, NULL, "print every value of TRIAL's metrics", OPT_FLAG, AT (show, values) },
    JSON (show));

OPTIONS (logs,
    DIR,
    { "follow", NULL, NULL, "keep printing new output until the trial ends (-f)", OPT_FLAG, AT (logs, follow), 'f' },
    { "lines", "N", NULL, "print only the last N lines (-n N)", OPT_INT, AT (logs, lines), 'n', -1 },
    { "attempt", "K", NULL, "print attempt K instead of the last one", OPT_COUNT, AT (logs, attempt) });

OPTIONS (wait,
    DIR,
    { "timeout", "S", NULL, "wait at most S seconds", OPT_REAL, AT (wait, timeout), 0, -1 });

OPTIONS (monitor,
    { "summary", NULL, NULL, "print only the lines that srun prints at the end of a step", OPT_FLAG, AT (monitor, summary) },
    JSON (monitor));

OPTIONS (debug,
    { "last", NULL, NULL, "print the last stacks instead of collecting new ones", OPT_FLAG, AT (debug, last) });

OPTIONS (resume,
    DIR,
    START (resume),
    TRUST (resume),
    CHANGE (resume, start.sets),
    { "wait", NULL, NULL, "wait for the end, even if other workers are running", OPT_FLAG, AT (resume, wait) });

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
    { "trials", "N", NULL, "train until there are N trials in total", OPT_COUNT, AT (continue, trials) },
    { "length", "L", NULL, "train the trials to a total length of L", OPT_COUNT, AT (continue, length) });

const struct option_set options_sweep = { 0, (const struct opt[]){ DIR, { 0 } } };

OPTIONS (scale,
    DIR,
    TRUST (scale));

OPTIONS (mark,
    DIR,
    { "undo", NULL, NULL, "undo it: remove the label, show it again, allow the node", OPT_FLAG, AT (mark, undo) });

OPTIONS (export,
    DIR,
    { "format", "FORMAT", NULL, "csv (the default), json, h5, tensorboard, wandb, mlflow, optuna or parquet", OPT_STRING, AT (export, format) },
    { "output", "FILE", NULL, "write to FILE instead of standard output; for other tools, a folder", OPT_STRING, AT (export, output) },
    { "follow", NULL, NULL, "keep exporting new data until the experiment ends", OPT_FLAG, AT (export, follow), 'f' },
    { "seconds", "S", NULL, "with --follow: export every S seconds (default: 5)", OPT_REAL, AT (export, seconds) },
    { "safe-csv", NULL, NULL, "escape text that a spreadsheet would take for a formula", OPT_FLAG, AT (export, safe_csv) });

OPTIONS (report,
    DIR,
    { "output", "FILE", NULL, "write FILE instead of EXPERIMENT.html", OPT_STRING, AT (report, output), 'o' },
    { "watch", NULL, NULL, "rewrite the file until the experiments have ended", OPT_FLAG, AT (report, watch) },
    { "seconds", "S", NULL, "with --watch: rewrite every S seconds (default: 15)", OPT_REAL, AT (report, seconds) });

OPTIONS (ckpt,
    { "format", "FORMAT", NULL, "extract: npy (the default) or raw", OPT_STRING, AT (ckpt, format) },
    { "output", "FILE", NULL, "extract: the file to write (default: the tensor's name)", OPT_STRING, AT (ckpt, output) },
    { "only", "PREFIX", NULL, "export: only tensors whose names have this PREFIX, which is removed", OPT_STRING, AT (ckpt, prefix) },
    { "step", "N", NULL, "import: the checkpoint's step (default: as exported, or 0)", OPT_INT, AT (ckpt, step), 0, -1 },
    OWN_DATA (ckpt),
    JSON (ckpt));

OPTIONS (model,
    DIR,
    { "models", "DIR", "DL_MODELS", "folder of the registry (default: models, in the folder of the experiments)", OPT_STRING, AT (model, models) },
    { "step", "N", NULL, "register: the checkpoint of step N (default: the best one)", OPT_INT, AT (model, step), 0, -1 },
    { "force", NULL, NULL, "rm: also remove versions that have a stage", OPT_FLAG, AT (model, force) },
    OWN_DATA (model),
    JSON (model));

OPTIONS (gc,
    DIR,
    { "dry-run", NULL, NULL, "print what would be removed", OPT_FLAG, AT (gc, dry_run) });

OPTIONS (reproduce,
    DIR,
    TRUST (reproduce),
    { "dry-run", NULL, NULL, "only print the command", OPT_FLAG, AT (reproduce, dry_run) });

OPTIONS (rm,
    DIR,
    { "force", NULL, NULL, "remove it even if it has not ended or cannot be read", OPT_FLAG, AT (rm, force) });

OPTIONS (log,
    { "step", "N", NULL, "step of the metrics (default: the previous step + 1)", OPT_INT, AT (log, step), 0, -1 });

OPTIONS (check,
    { "full", NULL, NULL, "also measure GPUs, memory, disk and network", OPT_FLAG, AT (check, full) },
    { "table", NULL, NULL, "also print the placement of the ranks", OPT_FLAG, AT (check, table) },
    { "gpus", "N", NULL, "expected number of GPUs (default: from Slurm)", OPT_INT, AT (check, gpus), 0, -1 },
    JSON (check));

OPTIONS (doctor,
    { "run", NULL, NULL, "start one task, and check what the plugin does", OPT_FLAG, AT (doctor, run) },
    { "root", "DIR", NULL, "check the copy of a host in DIR", OPT_STRING, AT (doctor, root) },
    { "config", "FILE", NULL, "recorded output of scontrol show config", OPT_STRING, AT (doctor, config) },
    { "nodes", "N", NULL, "check N nodes, in a step", OPT_WORD, AT (doctor, srun_options) },
    { "nodelist", "HOSTS", NULL, "check these nodes", OPT_WORD, AT (doctor, srun_options) },
    { "partition", "NAME", NULL, "check nodes of this partition", OPT_WORD, AT (doctor, srun_options) },
    JSON (doctor));

OPTIONS (env,
    { "nodes", "N", NULL, "number of nodes in the step", OPT_WORD, AT (env, facts) },
    { "nodelist", "HOSTS", NULL, "names of the nodes", OPT_WORD, AT (env, facts) },
    { "ntasks", "N", NULL, "number of tasks in total", OPT_WORD, AT (env, facts) },
    { "ntasks-per-node", "K", NULL, "number of tasks on each node, or a list, e.g. 4(x2),3", OPT_WORD, AT (env, facts) },
    { "distribution", "HOW", NULL, "block, cyclic, plane=SIZE or arbitrary", OPT_WORD, AT (env, facts) },
    { "cpus-per-task", "N", NULL, "cores per task", OPT_WORD, AT (env, facts) },
    { "gpus-per-node", "N", NULL, "GPUs per node", OPT_WORD, AT (env, facts) },
    { "gpus-per-task", "N", NULL, "GPUs per task, which sees no others", OPT_WORD, AT (env, facts) },
    { "mpi", "TYPE", NULL, "none, pmi2 or pmix", OPT_WORD, AT (env, facts) },
    /* these must match runtime/rank/plugin_options.c */
    { "dl", "FRAMEWORK", NULL, "set each rank's environment for torch, tf, jax, ...", OPT_WORD, AT (env, facts) },
    { "dl-roles", "ROLE:N[,ROLE:N]...", NULL, "roles of the ranks in their order, e.g. chief:1,ps:2,worker:*", OPT_WORD, AT (env, facts) },
    { "dl-bind", "WHERE", NULL, "bind each rank to cores near its GPU: closest, socket, spread, none", OPT_WORD, AT (env, facts) },
    { "dl-nccl", "PROFILE", NULL, "set the site's network variables: auto, none or a profile", OPT_WORD, AT (env, facts) },
    { "job", "JOB[.STEP]", NULL, "job number, from which ports are derived", OPT_WORD, AT (env, facts) },
    { "resv-ports", "LIST", NULL, "ports that Slurm has reserved, e.g. 41004-41006", OPT_WORD, AT (env, facts) },
    { "topology", "DIR", NULL, "folder with copies of a node's /sys, /proc and /dev", OPT_WORD, AT (env, facts) },
    { "cpu-list", "LIST", NULL, "CPUs of the step on each node of --topology", OPT_WORD, AT (env, facts) },
    { "nccl-dir", "DIR", NULL, "folder of the site's network profiles", OPT_WORD, AT (env, facts) },
    { "one-machine", NULL, NULL, "treat all nodes as this machine (contrib/minicluster)", OPT_WORD, AT (env, facts) },
    { "rank", "R", NULL, "print rank R's variables as NAME=VALUE lines, for env -S and eval", OPT_INT, AT (env, rank), 0, -1 },
    JSON (env));
/* clang-format on */
