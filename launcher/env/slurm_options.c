/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sbatch and srun: which there are, and those that `dl env` reads.
 */
#include "launcher/env/slurm_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/word.h"
#include "runtime/rank/plugin_options.h"

enum argument { NONE, NEEDED, MAY };

struct slurm_option {
    const char *name;
    char letter;
    enum argument argument;
    enum ask_key key;
};

/* sbatch(1), srun(1), salloc(1) of 22.05, and what 23.02 to 25.11 add. */
static const struct slurm_option table[] = {
    { "accel-bind", 0, NEEDED, ASK_OTHER },
    { "account", 'A', NEEDED, ASK_OTHER },
    { "acctg-freq", 0, NEEDED, ASK_OTHER },
    { "array", 'a', NEEDED, ASK_OTHER },
    { "batch", 0, NEEDED, ASK_OTHER },
    { "bb", 0, NEEDED, ASK_OTHER },
    { "bbf", 0, NEEDED, ASK_OTHER },
    { "bcast", 0, MAY, ASK_OTHER },
    { "bcast-exclude", 0, NEEDED, ASK_OTHER },
    { "begin", 'b', NEEDED, ASK_OTHER },
    { "bell", 0, NONE, ASK_OTHER },
    { "chdir", 'D', NEEDED, ASK_OTHER },
    { "cluster-constraint", 0, NEEDED, ASK_OTHER },
    { "clusters", 'M', NEEDED, ASK_OTHER },
    { "comment", 0, NEEDED, ASK_OTHER },
    { "compress", 0, MAY, ASK_OTHER },
    { "consolidate-segments", 0, NONE, ASK_OTHER },
    { "constraint", 'C', NEEDED, ASK_OTHER },
    { "container", 0, NEEDED, ASK_OTHER },
    { "container-id", 0, NEEDED, ASK_OTHER },
    { "contiguous", 0, NONE, ASK_OTHER },
    { "core-spec", 'S', NEEDED, ASK_OTHER },
    { "cores-per-socket", 0, NEEDED, ASK_OTHER },
    { "cpu-bind", 0, NEEDED, ASK_OTHER },
    { "cpu-freq", 0, NEEDED, ASK_OTHER },
    { "cpus-per-gpu", 0, NEEDED, ASK_OTHER },
    { "cpus-per-task", 'c', NEEDED, ASK_CPUS },
    { "deadline", 0, NEEDED, ASK_OTHER },
    { "delay-boot", 0, NEEDED, ASK_OTHER },
    { "dependency", 'd', NEEDED, ASK_OTHER },
    { "disable-status", 'X', NONE, ASK_OTHER },
    { "distribution", 'm', NEEDED, ASK_DISTRIBUTION },
    { "epilog", 0, NEEDED, ASK_OTHER },
    { "error", 'e', NEEDED, ASK_OTHER },
    { "exact", 0, NONE, ASK_OTHER },
    { "exclude", 'x', NEEDED, ASK_OTHER },
    { "exclusive", 0, MAY, ASK_OTHER },
    { "expedited-requeue", 0, NONE, ASK_OTHER },
    { "export", 0, NEEDED, ASK_OTHER },
    { "export-file", 0, NEEDED, ASK_OTHER },
    { "external", 0, NONE, ASK_OTHER },
    { "external-launcher", 0, NONE, ASK_OTHER },
    { "extra-node-info", 'B', NEEDED, ASK_OTHER },
    { "get-user-env", 0, MAY, ASK_OTHER },
    { "gid", 0, NEEDED, ASK_OTHER },
    { "gpu-bind", 0, NEEDED, ASK_GPU_BIND },
    { "gpu-freq", 0, NEEDED, ASK_OTHER },
    { "gpus", 'G', NEEDED, ASK_GPUS },
    { "gpus-per-node", 0, NEEDED, ASK_GPUS_PER_NODE },
    { "gpus-per-socket", 0, NEEDED, ASK_OTHER },
    { "gpus-per-task", 0, NEEDED, ASK_GPUS_PER_TASK },
    { "gres", 0, NEEDED, ASK_GRES },
    { "gres-flags", 0, NEEDED, ASK_OTHER },
    { "help", 'h', NONE, ASK_OTHER },
    { "het-group", 0, NEEDED, ASK_HET_GROUP },
    { "hint", 0, NEEDED, ASK_OTHER },
    { "hold", 'H', NONE, ASK_OTHER },
    { "ignore-pbs", 0, NONE, ASK_OTHER },
    { "immediate", 'I', MAY, ASK_OTHER },
    { "input", 'i', NEEDED, ASK_OTHER },
    { "interactive", 0, NONE, ASK_OTHER },
    { "job-name", 'J', NEEDED, ASK_OTHER },
    { "jobid", 0, NEEDED, ASK_OTHER },
    { "kill-command", 'K', MAY, ASK_OTHER },
    { "kill-on-bad-exit", 'K', MAY, ASK_OTHER },
    { "kill-on-invalid-dep", 0, NEEDED, ASK_OTHER },
    { "label", 'l', NONE, ASK_OTHER },
    { "licenses", 'L', NEEDED, ASK_OTHER },
    { "mail-type", 0, NEEDED, ASK_OTHER },
    { "mail-user", 0, NEEDED, ASK_OTHER },
    { "mcs-label", 0, NEEDED, ASK_OTHER },
    { "mem", 0, NEEDED, ASK_OTHER },
    { "mem-bind", 0, NEEDED, ASK_OTHER },
    { "mem-per-cpu", 0, NEEDED, ASK_OTHER },
    { "mem-per-gpu", 0, NEEDED, ASK_OTHER },
    { "mincpus", 0, NEEDED, ASK_OTHER },
    { "mpi", 0, NEEDED, ASK_MPI },
    { "msg-timeout", 0, NEEDED, ASK_OTHER },
    { "multi-prog", 0, NONE, ASK_OTHER },
    { "network", 0, NEEDED, ASK_OTHER },
    { "nice", 0, MAY, ASK_OTHER },
    { "no-allocate", 'Z', NONE, ASK_OTHER },
    { "no-bell", 0, NONE, ASK_OTHER },
    { "no-kill", 'k', MAY, ASK_OTHER },
    { "no-requeue", 0, NONE, ASK_OTHER },
    { "no-shell", 0, NONE, ASK_OTHER },
    { "nodefile", 'F', NEEDED, ASK_OTHER },
    { "nodelist", 'w', NEEDED, ASK_NODELIST },
    { "nodes", 'N', NEEDED, ASK_NODES },
    { "ntasks", 'n', NEEDED, ASK_NTASKS },
    { "ntasks-per-core", 0, NEEDED, ASK_OTHER },
    { "ntasks-per-gpu", 0, NEEDED, ASK_OTHER },
    { "ntasks-per-node", 0, NEEDED, ASK_PER_NODE },
    { "ntasks-per-socket", 0, NEEDED, ASK_OTHER },
    { "nvmps", 0, NONE, ASK_OTHER },
    { "oom-kill-step", 0, MAY, ASK_OTHER },
    { "open-mode", 0, NEEDED, ASK_OTHER },
    { "output", 'o', NEEDED, ASK_OTHER },
    { "overcommit", 'O', NONE, ASK_OTHER },
    { "overlap", 0, NONE, ASK_OTHER },
    { "oversubscribe", 's', NONE, ASK_OTHER },
    { "pack-group", 0, NEEDED, ASK_OTHER },
    { "parsable", 0, NONE, ASK_OTHER },
    { "partition", 'p', NEEDED, ASK_OTHER },
    { "power", 0, NEEDED, ASK_OTHER },
    { "prefer", 0, NEEDED, ASK_OTHER },
    { "preserve-env", 'E', NONE, ASK_OTHER },
    { "priority", 0, NEEDED, ASK_OTHER },
    { "profile", 0, NEEDED, ASK_OTHER },
    { "prolog", 0, NEEDED, ASK_OTHER },
    { "propagate", 0, MAY, ASK_OTHER },
    { "pty", 0, NONE, ASK_OTHER },
    { "qos", 'q', NEEDED, ASK_OTHER },
    { "quiet", 'Q', NONE, ASK_OTHER },
    { "quit-on-interrupt", 0, NONE, ASK_OTHER },
    { "reboot", 0, NONE, ASK_OTHER },
    { "relative", 'r', NEEDED, ASK_OTHER },
    { "requeue", 0, NONE, ASK_OTHER },
    { "reservation", 0, NEEDED, ASK_OTHER },
    { "resources", 0, NEEDED, ASK_OTHER },
    { "resv-ports", 0, MAY, ASK_OTHER },
    { "segment", 0, NEEDED, ASK_OTHER },
    { "send-libs", 0, MAY, ASK_OTHER },
    { "signal", 0, NEEDED, ASK_OTHER },
    { "slurmd-debug", 0, NEEDED, ASK_OTHER },
    { "sockets-per-node", 0, NEEDED, ASK_OTHER },
    { "spread-job", 0, NONE, ASK_OTHER },
    { "spread-segments", 0, NONE, ASK_OTHER },
    { "stepmgr", 0, NONE, ASK_OTHER },
    { "switches", 0, NEEDED, ASK_OTHER },
    { "task-epilog", 0, NEEDED, ASK_OTHER },
    { "task-prolog", 0, NEEDED, ASK_OTHER },
    { "test-only", 0, NONE, ASK_OTHER },
    { "thread-spec", 0, NEEDED, ASK_OTHER },
    { "threads", 'T', NEEDED, ASK_OTHER },
    { "threads-per-core", 0, NEEDED, ASK_OTHER },
    { "time", 't', NEEDED, ASK_OTHER },
    { "time-min", 0, NEEDED, ASK_OTHER },
    { "tmp", 0, NEEDED, ASK_OTHER },
    { "tres-bind", 0, NEEDED, ASK_GPU_BIND },
    { "tres-per-task", 0, NEEDED, ASK_OTHER },
    { "uid", 0, NEEDED, ASK_OTHER },
    { "unbuffered", 'u', NONE, ASK_OTHER },
    { "usage", 0, NONE, ASK_OTHER },
    { "use-min-nodes", 0, NONE, ASK_OTHER },
    { "verbose", 'v', NONE, ASK_OTHER },
    { "version", 'V', NONE, ASK_OTHER },
    { "wait", 'W', MAY, ASK_OTHER },
    { "wait-all-nodes", 0, NEEDED, ASK_OTHER },
    { "wckey", 0, NEEDED, ASK_OTHER },
    { "whole", 0, NONE, ASK_OTHER },
    { "wrap", 0, NEEDED, ASK_OTHER },
    { "x11", 0, MAY, ASK_OTHER },
};

/* Only dl env has them; dl-env(1). */
static const struct slurm_option own[] = {
    { "job", 0, NEEDED, ASK_JOB },
    { "resv-ports", 0, NEEDED, ASK_RESV_PORTS },
    { "topology", 0, NEEDED, ASK_TOPOLOGY },
    { "cpu-list", 0, NEEDED, ASK_CPU_LIST },
    { "nccl-dir", 0, NEEDED, ASK_NCCL_DIR },
    { "one-machine", 0, NONE, ASK_ONE_MACHINE },
};

/* The plugin's options that dl env reads. */
static const enum ask_key plugin_keys[PLUGIN_OPTIONS] = {
    [PLUGIN_FRAMEWORK] = ASK_DL,
    [PLUGIN_ROLES] = ASK_ROLES,
    [PLUGIN_BIND] = ASK_BIND,
    [PLUGIN_NCCL] = ASK_NCCL,
};
enum {
    ROWS = sizeof (table) / sizeof (*table),
    OWN = sizeof (own) / sizeof (*own),
    ALL = ROWS + PLUGIN_OPTIONS,
};

/* Option 'i' of sbatch and srun, or after these of the plugin. */
static struct slurm_option option_at (size_t i)
{
    const struct plugin_option *o;

    if (i < ROWS)
        return table[i];
    o = &plugin_options[i - ROWS];
    return (struct slurm_option){
        .name = o->name,
        .argument = o->bare ? MAY : NEEDED,
        .key = o->readers & PLUGIN_BY_ENV ? plugin_keys[i - ROWS] : ASK_OTHER,
    };
}

static bool is_name (const struct slurm_option *o, const char *name, size_t len)
{
    return strlen (o->name) == len && !strncmp (o->name, name, len);
}

static bool find_own (const char *name, size_t len, struct slurm_option *o)
{
    for (size_t i = 0; i < OWN; i++)
        if (is_name (&own[i], name, len)) {
            *o = own[i];
            return true;
        }
    return false;
}

static bool find (const char *name, size_t len, struct slurm_option *o)
{
    for (size_t i = 0; i < ALL; i++) {
        *o = option_at (i);
        if (is_name (o, name, len))
            return true;
    }
    return false;
}

/* getopt_long takes the beginning of a name, if it is that of one only. */
static bool find_short (const char *name, size_t len, struct slurm_option *o)
{
    int found = 0;

    for (size_t i = 0; i < ALL; i++) {
        const struct slurm_option one = option_at (i);
        if (strncmp (one.name, name, len))
            continue;
        *o = one;
        found++;
    }
    return found == 1;
}

static const struct slurm_option *find_letter (char letter)
{
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].letter == letter)
            return &table[i];
    return NULL;
}

static int refuse (const char *where,
                   const char *word,
                   int len,
                   const char *why,
                   const char *meant,
                   struct slurmdl_error *err)
{
    errno = EINVAL;
    return errorf (err,
                   "%s%s%.*s: %s%s%s%s",
                   where ? where : "",
                   where ? ": " : "",
                   len,
                   word,
                   why,
                   DID_YOU_MEAN (meant, "--", "", ""));
}

static int unknown (const char *where,
                    const char *word,
                    size_t len,
                    struct slurmdl_error *err)
{
    const char *words[ALL + 1] = { 0 };
    char name[64];

    snprintf (name, sizeof (name), "%.*s", (int)len, word + 2);
    for (size_t i = 0; i < ALL; i++)
        words[i] = option_at (i).name;
    return refuse (where,
                   word,
                   (int)len + 2,
                   "unknown option of sbatch, srun and slurm-dl",
                   nearest_word (name, words),
                   err);
}

static int keep (struct ask *a,
                 const struct slurm_option *o,
                 const char *value,
                 const char *where)
{
    if (o->key == ASK_OTHER)
        return 0;
    free (a->value[o->key]);
    free (a->where[o->key]);
    a->value[o->key] = strdup (value);
    if (where)
        a->where[o->key] = strdup (where);
    else if (asprintf (&a->where[o->key], "--%s", o->name) < 0)
        a->where[o->key] = NULL;
    return a->value[o->key] && a->where[o->key] ? 0 : -1;
}

static int take (struct ask *a,
                 const struct slurm_option *o,
                 const char *attached,
                 char *const *words,
                 const char *where,
                 struct slurmdl_error *err)
{
    bool next = !attached && o->argument == NEEDED;

    if (next && !words[1])
        return refuse (where, words[0], 64, "a value is missing", NULL, err);
    if (attached && o->argument == NONE)
        return refuse (where, words[0], 64, "it takes no value", NULL, err);
    if (keep (a, o, next ? words[1] : attached ? attached : "", where) < 0)
        return errorf (err, "out of memory");
    return 1 + next;
}

static int take_letters (struct ask *a,
                         char *const *words,
                         const char *where,
                         struct slurmdl_error *err)
{
    for (const char *c = words[0] + 1; *c; c++) {
        const struct slurm_option *o = find_letter (*c);
        if (!o)
            return refuse (
                where, words[0], 64, "no option of sbatch and srun", NULL, err);
        if (o->argument == NONE && c[1])
            continue;
        return take (
            a, o, c[1] ? c + 1 + (c[1] == '=') : NULL, words, where, err);
    }
    return 1;
}

int ask_take (struct ask *a,
              char *const *words,
              const char *where,
              struct slurmdl_error *err)
{
    const char *word = words[0];
    struct slurm_option o;
    size_t len;

    if (*word != '-' || !word[1] || !strcmp (word, "--"))
        return 0;
    if (word[1] != '-')
        return take_letters (a, words, where, err);
    len = strcspn (word + 2, "=");
    if (!(!where && find_own (word + 2, len, &o)) && !find (word + 2, len, &o)
        && !find_short (word + 2, len, &o))
        return unknown (where, word, len, err);
    return take (
        a, &o, word[2 + len] ? word + 3 + len : NULL, words, where, err);
}

int ask_copy (struct ask *to, const struct ask *from)
{
    *to = (struct ask){ { NULL }, { NULL } };
    for (int i = 0; i < ASK_KEYS; i++)
        if (from->value[i]) {
            to->value[i] = strdup (from->value[i]);
            to->where[i] = strdup (from->where[i]);
            if (!to->value[i] || !to->where[i])
                return -1;
        }
    return 0;
}

int ask_merge (struct ask *to, const struct ask *from)
{
    for (int i = 0; i < ASK_KEYS; i++) {
        if (!from->value[i])
            continue;
        free (to->value[i]);
        free (to->where[i]);
        to->value[i] = strdup (from->value[i]);
        to->where[i] = strdup (from->where[i]);
        if (!to->value[i] || !to->where[i])
            return -1;
    }
    return 0;
}

void ask_free (struct ask *a)
{
    for (int i = 0; i < ASK_KEYS; i++) {
        free (a->value[i]);
        free (a->where[i]);
    }
    *a = (struct ask){ { NULL }, { NULL } };
}
