/* SPDX-License-Identifier: Apache-2.0 */
/* Check that the command of an experiment can run and uses the values it gets. */
#include "launcher/cmd/commands.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/hparams.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "searcher/space/space.h"

/* ---- what the entrypoint runs ---- */

/* Limits for what is read.  If a file or their number exceeds them, assume that it may
 * use any value.
 */
enum { TEXT_MOST = 1 << 20, TEXTS_MOST = 200 };

struct program_texts {
    const struct experiment *e;
    char **list;   /* contents; those of the experiment file come first */
    char **paths;  /* of the files, NULL-ended */
    char *first;   /* the first of them, and ... */
    char *scripts; /* ... its directory, where Python looks for modules */
    int n;
    bool unknown; /* the values may also be used elsewhere */
};

static const char metas[] = " \t\r\n;|&()<>\"'`=,";

static void read_python_imports (struct program_texts *t, const char *text, char *dir);
static void read_shell (struct program_texts *t, const char *text);

/* clang-format off */
/* Programs that run another program, which is one of their arguments. */
static const char *const runners[] = {
    "accelerate", "apptainer", "bash", "conda", "dash", "deepspeed", "env", "julia", "ksh", "mamba", "micromamba", "mpiexec",
    "mpirun", "nice", "node", "nohup", "numactl", "perl", "pipenv", "poetry", "python", "python2", "python3", "Rscript", "ruby",
    "sh", "singularity", "srun", "stdbuf", "taskset", "timeout", "torchrun", "uv", "xvfb-run", "zsh", NULL
};

/* Programs that do not use the values of the search. */
static const char *const plain[] = {
    ".", "!", ":", "[", "awk", "basename", "bc", "break", "cat", "cd", "chmod", "command", "continue", "cp", "cut", "date", "dd",
    "dirname", "dl", "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "expr", "false", "fi",
    "find", "for", "gawk", "grep", "gzip", "head", "hostname", "if", "in", "kill", "ln", "local", "ls", "mkdir", "mktemp",
    "module", "mv", "nvidia-smi", "od", "printf", "pwd", "read", "return", "rm", "rmdir", "sed", "seq", "set", "shift",
    "sleep", "sort", "source", "stat", "sync", "tail", "tar", "tee", "test", "then", "time", "touch", "tr", "trap", "true",
    "truncate", "ulimit", "umask", "uname", "uniq", "unset", "until", "wait", "wc", "while", "xargs", "{", "}", NULL
};

/* Python modules, standard and public, that do not use the values of the search. */
static const char *const libraries[] = {
    "PIL", "__future__", "abc", "absl", "accelerate", "albumentations", "argparse", "array", "ast", "asyncio", "atexit", "base64",
    "bisect", "builtins", "bz2", "catboost", "click", "codecs", "collections", "colorlog", "concurrent", "configargparse",
    "configparser", "contextlib", "copy", "csv", "ctypes", "cv2", "dataclasses", "datasets", "datetime", "decimal", "deepspeed",
    "diffusers", "difflib", "docopt", "einops", "enum", "errno", "evaluate", "fcntl", "filelock", "fire", "flax", "fractions",
    "functools", "gc", "getopt", "getpass", "glob", "gym", "gymnasium", "gzip", "h5py", "hashlib", "heapq", "http", "hydra",
    "importlib", "inspect", "io", "itertools", "jax", "joblib", "json", "jsonargparse", "keras", "lightgbm", "lightning",
    "logging", "loguru", "lzma", "math", "matplotlib", "mlflow", "mmap", "multiprocessing", "nltk", "numba", "numbers", "numpy",
    "omegaconf", "operator", "optax", "optuna", "os", "pandas", "pathlib", "peft", "pickle", "pkgutil", "platform", "polars",
    "pprint", "psutil", "pyarrow", "pytorch_lightning", "queue", "random", "re", "requests", "resource", "rich", "scipy",
    "seaborn", "secrets", "select", "sentencepiece", "shlex", "shutil", "signal", "skimage", "sklearn", "socket", "spacy",
    "sqlite3", "stable_baselines3", "statistics", "string", "struct", "subprocess", "sys", "tempfile", "tensorboard",
    "tensorboardX", "tensorflow", "textwrap", "threading", "time", "timeit", "timm", "tokenizers", "torch", "torchaudio",
    "torchmetrics", "torchtext", "torchvision", "tqdm", "traceback", "transformers", "trl", "types", "typer", "typing",
    "typing_extensions", "unittest", "urllib", "uuid", "wandb", "warnings", "weakref", "xgboost", "yaml", "zipfile", "zlib", NULL
};
/* clang-format on */

static char *read_program_text (const char *path, bool *is_binary)
{
    char *text = xmalloc (TEXT_MOST + 1);
    FILE *f = fopen (path, "re");
    size_t n = f ? fread (text, 1, TEXT_MOST, f) : 0;

    *is_binary = n == TEXT_MOST || memchr (text, '\0', n);
    text[n] = '\0';
    if (!f || *is_binary) {
        free (text);
        text = NULL;
    }
    if (f)
        fclose (f);
    return text;
}

static bool is_of_python (const char *path, const char *text)
{
    const char *line = strndupa (text, strcspn (text, "\n"));

    return text_ends_with (path, ".py") || (!strncmp (line, "#!", 2) && strstr (line, "python"));
}

static bool is_shell_script (const char *path, const char *text)
{
    const char *line = strndupa (text, strcspn (text, "\n"));

    return text_ends_with (path, ".sh")
           || (!strncmp (line, "#!", 2) && text_ends_with (line, "sh"));
}

static bool path_is_file (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 && S_ISREG (st.st_mode);
}

static void read_script (struct program_texts *t, const char *path)
{
    char whole[PATH_MAX], *dir;
    bool is_binary;
    char *text;

    if (!realpath (path, whole) || strings_contain ((const char *const *)t->paths, whole))
        return;
    text = read_program_text (whole, &is_binary);
    if (!text || t->n++ >= TEXTS_MOST) {
        t->unknown |= !text ? access (whole, X_OK) == 0 : true;
        free (text);
        return;
    }
    strings_add (&t->paths, whole);
    strings_add (&t->list, text);
    dir = xstrndup (whole, (size_t)(strrchr (whole, '/') - whole));
    if (!t->first) {
        t->first = xstrdup (whole);
        t->scripts = xstrdup (dir);
    }
    if (is_of_python (whole, text))
        read_python_imports (t, text, dir);
    else if (is_shell_script (whole, text))
        read_shell (t, text);
    free (dir);
    free (text);
}

/* ---- Python's imports ---- */

/* Read module "a.b" of a directory: a/b.py or a/b/__init__.py.  Returns whether it
 * exists.
 */
static bool read_module (struct program_texts *t, const char *dir, const char *name, size_t length)
{
    char path[PATH_MAX];
    int n = snprintf (path, sizeof (path) - 16, "%s/%.*s", dir, (int)length, name);
    bool found = false;

    if (n < 0 || (size_t)n >= sizeof (path) - 16)
        return false;
    for (char *c = path + strlen (dir) + 1; *c; c++)
        *c = *c == '.' ? '/' : *c;
    strcpy (path + n, "/__init__.py");
    if ((found = path_is_file (path)))
        read_script (t, path);
    strcpy (path + n, ".py");
    if (!found && (found = path_is_file (path)))
        read_script (t, path);
    path[n] = '\0';
    return found || access (path, F_OK) == 0;
}

/* As read_module(), and for "from pack import part" also read the parts. */
static bool read_from (struct program_texts *t, const char *dir, const char *name, size_t length,
                       const char *parts)
{
    bool found = length == 0 || read_module (t, dir, name, length);

    while (found && *(parts += strspn (parts, " \t(,\\")) && *parts != '\n' && *parts != '#') {
        size_t n = strcspn (parts, " \t,()\n\\#");
        if (n > 0) {
            char *both =
                xasprintf ("%.*s%s%.*s", (int)length, name, length ? "." : "", (int)n, parts);
            read_module (t, dir, both, strlen (both));
            free (both);
        }
        parts += n + (n == 0 && *parts);
    }
    return found;
}

static void read_import (struct program_texts *t, const char *name, const char *parts,
                         const char *dir)
{
    size_t length = strcspn (name, " \t,;\n#");
    char *above = xstrdup (dir), *top;

    if (*name == '.') { /* relative: in the same package */
        for (name++, length--; *name == '.'; name++, length--)
            if (strrchr (above, '/'))
                *strrchr (above, '/') = '\0';
        read_from (t, above, name, length, parts);
    } else if (!read_from (t, dir, name, length, parts)
               && !read_from (t, t->scripts, name, length, parts)
               && !read_from (t, t->e->dir, name, length, parts)) {
        top = xstrndup (name, strcspn (name, " \t.,;\n#"));
        t->unknown |= !strings_contain (libraries, top);
        free (top);
    }
    free (above);
}

static void read_python_imports (struct program_texts *t, const char *text, char *dir)
{
    for (const char *line = text; line; line = strchr (line, '\n')) {
        const char *parts;
        line += *line == '\n';
        line += strspn (line, " \t");
        if (!strncmp (line, "from ", 5)) {
            const char *name = line + 5 + strspn (line + 5, " \t");
            parts = name + strcspn (name, " \t\n");
            parts += strspn (parts, " \t");
            if (!strncmp (parts, "import", 6))
                read_import (t, name, parts + 6, dir);
        } else if (!strncmp (line, "import ", 7)) {
            const char *name = line + 7;
            while (*(name += strspn (name, " \t"))
                   && (isalpha ((unsigned char)*name) || *name == '_')) {
                read_import (t, name, "", dir);
                name += strcspn (name, ",\n;#");
                if (*name++ != ',')
                    break;
            }
        }
    }
}

/* ---- the shell's commands ---- */

/* Read the files among the words, and the modules after -m.  Returns whether there was
 * one, or a program given as an argument (-c).
 */
static bool read_words (struct program_texts *t, const char *text)
{
    bool found = false, module = false;
    char path[PATH_MAX];

    while (*(text += strspn (text, metas))) {
        size_t n = strcspn (text, metas);
        snprintf (path, sizeof (path), "%s%s%.*s", *text == '/' ? "" : t->e->dir,
                  *text == '/' ? "" : "/", (int)n, text);
        if (n == 2 && !strncmp (text, "-c", 2))
            found = true;
        if (module && !path_is_file (path))
            found |= read_module (t, t->e->dir, text, n);
        module = n == 2 && !strncmp (text, "-m", 2);
        if (path_is_file (path)) {
            read_script (t, path);
            found = true;
        }
        text += n;
    }
    return found;
}

static bool is_assignment (const char *word, size_t n)
{
    size_t name = strspn (word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return name > 0 && name < n && word[name] == '=';
}

/* Whether a command follows the word. */
static bool is_keyword (const char *word, size_t n)
{
    static const char *const list[] = { "!",    "do",   "elif",  "else",  "if",
                                        "then", "time", "until", "while", "{" };

    for (size_t i = 0; i < sizeof (list) / sizeof (*list); i++)
        if (strlen (list[i]) == n && !strncmp (list[i], word, n))
            return true;
    return false;
}

static void read_command_word (struct program_texts *t, const char *word, size_t n, bool found)
{
    char *name = xstrndup (word, n);
    const char *base = strrchr (name, '/') ? strrchr (name, '/') + 1 : name;
    char path[PATH_MAX];

    path_from (path, t->e->dir, name);
    if (strings_contain (runners, base) || !strncmp (base, "python3.", 8))
        t->unknown |= !found;
    else if (!strings_contain (plain, base) && !(strchr (name, '/') && path_is_file (path)))
        t->unknown = true;
    free (name);
}

/* Look at each word that stands where a shell expects a command. */
static void read_shell (struct program_texts *t, const char *text)
{
    bool first = true, argument = false, found = read_words (t, text);

    while (*text) {
        size_t n;
        text += strspn (text, " \t\r");
        if (*text == '#') {
            text += strcspn (text, "\n");
            continue;
        }
        if (strchr (";|&(\n`", *text) && *text) {
            first = true;
            text++;
            continue;
        }
        if (*text == '"' || *text == '\'') { /* an argument, unless it contains $(...) */
            const char *end = strchr (text + 1, *text);
            const char *inner = strstr (text, "$(");
            text = inner && end && inner < end && *text == '"' ? inner + 1 : end ? end + 1 : "";
            t->unknown |= (first || argument) && *text != '(';
            first = *text == '(';
            continue;
        }
        n = strcspn (text, " \t\r\n;|&()<>\"'`");
        if (n == 0) {
            text += *text != '\0';
            continue;
        }
        if (first && is_assignment (text, n)) {
            text += n;
            first = *text == ' ' || *text == '\t' || *text == '(';
            if (*text == '"' || *text == '\'') {
                const char *end = strchr (text + 1, *text);
                text = end ? end + 1 : "";
                first = true;
            }
            continue;
        }
        if (first && text[n] != ')' && *text != '$')
            read_command_word (t, text, n, found);
        else if (first && *text == '$' && text[1] != '(' && text[n] != ')')
            t->unknown = true;
        first = first && is_keyword (text, n);
        argument = n == 2 && !strncmp (text, "-c", 2); /* for example of a shell */
        text += n;
    }
}

static void texts_read (struct program_texts *t, const struct experiment *e)
{
    *t = (struct program_texts){ .e = e };
    for (char **v = e->variables; v && *v; v++)
        strings_add (&t->list, *v);
    if (e->entrypoint) {
        strings_add (&t->list, e->entrypoint);
        read_shell (t, e->entrypoint);
        return;
    }
    for (char **a = e->argv; a && *a; a++) {
        strings_add (&t->list, *a);
        if (a > e->argv && strchr (*a, ' '))
            read_shell (t, *a); /* sh -c */
    }
    if (e->argv && e->argv[0]) {
        bool found = false;
        for (char **a = e->argv; *a; a++) {
            bool module = a > e->argv && !strcmp (a[-1], "-m");
            found |= read_words (t, *a) || (module && read_module (t, e->dir, *a, strlen (*a)));
        }
        read_command_word (t, e->argv[0], strlen (e->argv[0]), found);
    }
}

static void texts_free (struct program_texts *t)
{
    strings_free (t->list);
    strings_free (t->paths);
    free (t->scripts);
    free (t->first);
}

static bool has_text (const struct program_texts *t, const char *text)
{
    for (char **c = t->list; c && *c; c++)
        if (strstr (*c, text))
            return true;
    return false;
}

/* Whether the program reads all values at once, so that their names do not appear in
 * it.
 */
static bool reads_all (const struct program_texts *t)
{
    static const char *const names[] = { "slurmdl",          "determined", "DL_HPARAMS",
                                         "hparams.json",     "\"DL_\"",    "'DL_'",
                                         "DL_HP_\"",         "DL_HP_'",    "DL_HP_{",
                                         "DL_HP_%",          "DL_HP_$",    "^DL_",
                                         "os.environ.items", NULL };

    for (const char *const *n = names; *n; n++)
        if (has_text (t, *n))
            return true;
    return false;
}

/* ---- values that nothing uses ---- */

static void where_text (const struct experiment *e, struct origin origin, char *buf, size_t size)
{
    if (origin.option)
        snprintf (buf, size, "--set %s", origin.option);
    else if (origin.line > 0)
        snprintf (buf, size, "%s:%d", e->file, origin.line);
    else
        snprintf (buf, size, "%s", e->file);
}

static bool program_decides (const struct experiment *e, const char *path)
{
    for (size_t i = 0; i < e->space->nparams; i++)
        if (e->space->params[i].when && !strcmp (e->space->params[i].when, path))
            return true;
    return false;
}

static const char *script_name (const struct program_texts *t)
{
    const char *slash = t->first ? strrchr (t->first, '/') : NULL;

    return slash ? slash + 1 : NULL;
}

/* Whether the text sets a shell variable of this name: "lr=1", "for lr in", "read lr".
 */
static bool is_assigned (const char *text, const char *name)
{
    size_t n = strlen (name);

    for (const char *at = text; (at = strstr (at, name)); at += n) {
        bool begins = at == text || strchr (" \t\n;|&({", at[-1]);
        if (begins
            && (at[n] == '=' || (at - text >= 4 && !strncmp (at - 4, "for ", 4))
                || (at - text >= 5 && !strncmp (at - 5, "read ", 5))))
            return true;
    }
    return false;
}

/* Whether the entrypoint uses "$lr" but does not set it. */
static bool has_dollar (const struct experiment *e, const char *path)
{
    const char *at = e->entrypoint;
    size_t n = strlen (path);

    if (!at || is_assigned (at, path))
        return false;
    for (char **v = e->variables; v && *v; v++)
        if (!strncmp (*v, path, n) && (*v)[n] == '=')
            return false;
    for (; (at = strchr (at, '$')); at++)
        if (!strncmp (at + 1, path, n) && !isalnum ((unsigned char)at[n + 1]) && at[n + 1] != '_')
            return true;
    return false;
}

static void warn_of_hparams (const struct experiment *e, const struct program_texts *t)
{
    char where[512], variable[256];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        bool dollar = !experiment_has_placeholder (e, h->path) && has_dollar (e, h->path);
        if (h->dim < 0 || experiment_has_placeholder (e, h->path))
            continue;
        hparams_variable (variable, sizeof (variable), h->path);
        where_text (e, dollar ? e->entrypoint_origin : h->origin, where, sizeof (where));
        if (dollar)
            complain (
                "%s: 'entrypoint': $%s is a shell variable; write {%s} for the hyperparameter",
                where, h->path, h->path);
        else if (!t->unknown && !reads_all (t) && !has_text (t, variable)
                 && !program_decides (e, h->path))
            complain ("%s: nothing uses the hyperparameter '%s': the entrypoint has no {%s}%s%s%s",
                      where, h->path, h->path, script_name (t) ? ", and " : "",
                      script_name (t) ? script_name (t) : "",
                      script_name (t) ? " reads neither its variable (DL_HP_*) nor slurmdl" : "");
    }
}

static bool texts_have_any (const struct program_texts *t, const char *const *texts)
{
    while (*texts && !has_text (t, *texts))
        texts++;
    return *texts;
}

static void warn_of_length (const struct experiment *e, const struct program_texts *t)
{
    static const char *const uses[] = { "{length}", "DL_LENGTH", "slurmdl", "determined", NULL };
    char where[512];

    if (!(experiment_needs (e) & HAS_RUNGS) || e->search->config.max_length < 2 || t->unknown
        || texts_have_any (t, uses))
        return;
    where_text (e, e->entrypoint_origin, where, sizeof (where));
    complain ("%s: searcher \"%s\" trains to several lengths, but the "
              "entrypoint has no {length}%s%s%s: every segment is a whole training",
              where, e->search->searcher, script_name (t) ? ", and " : "",
              script_name (t) ? script_name (t) : "",
              script_name (t) ? " does not read DL_LENGTH" : "");
}

static void warn_of_seed (const struct experiment *e, const struct program_texts *t)
{
    static const char *const uses[] = { "{seed}",   "DL_SEED", "{repeat}",   "DL_REPEAT", "{trial}",
                                        "DL_TRIAL", "slurmdl", "determined", NULL };
    char where[512];

    if (e->search->config.repeats < 2 || t->unknown || texts_have_any (t, uses))
        return;
    where_text (e, e->entrypoint_origin, where, sizeof (where));
    complain ("%s: 'searcher.repeats' is %ld, but the entrypoint has no {seed}%s%s%s: repeats "
              "differ only if the program chooses its own seed",
              where, e->search->config.repeats, script_name (t) ? ", and " : "",
              script_name (t) ? script_name (t) : "",
              script_name (t) ? " does not read DL_SEED" : "");
}

/* What pbt copies from another trial is not in the trial's own directory. */
static void warn_of_pbt (const struct experiment *e, const struct program_texts *t)
{
    static const char *const uses[] = { "{resume_dir}", "DL_RESUME_DIR", "DL_CHECKPOINT_DIR",
                                        "slurmdl",      "determined",    NULL };
    char where[512];

    if (!e->search->searcher || strcmp (e->search->searcher, "pbt") || t->unknown
        || texts_have_any (t, uses))
        return;
    where_text (e, e->entrypoint_origin, where, sizeof (where));
    complain ("%s: searcher \"pbt\" gives trials the checkpoints of better ones, but the "
              "entrypoint has no {resume_dir}%s%s%s: each trains from scratch",
              where, script_name (t) ? ", and " : "", script_name (t) ? script_name (t) : "",
              script_name (t) ? " does not read DL_RESUME_DIR" : "");
}

/* ---- the direction of the metric ---- */

/* clang-format off */
static const char *const larger[] = {
    "acc", "accuracy", "ap", "auc", "aupr", "auprc", "auroc", "bleu", "cider", "correlation", "dice", "em", "f1", "fmeasure",
    "fscore", "hits", "iou", "jaccard", "kappa", "likelihood", "mcc", "meteor", "miou", "mrr", "ndcg", "pearson", "pearsonr",
    "prauc", "psnr", "r2", "recall", "reward", "rewards", "rocauc", "rouge", "sensitivity", "spearman", "spearmanr",
    "specificity", "ssim", "throughput", "top1", "top5", "tpr", "winrate", NULL
};
static const char *const smaller[] = {
    "bce", "bpc", "bpd", "brier", "cer", "crossentropy", "crps", "ece", "eer", "err", "error", "errors", "fid", "fpr", "latency",
    "logloss", "loss", "losses", "lpips", "mae", "mape", "mase", "mse", "nll", "perplexity", "ppl", "regret", "rmse", "rmsle",
    "smape", "wer", NULL
};
/* These are sometimes used with another meaning, so look at them only if the user gave
 * no direction.
 */
static const char *const larger_mostly[] = {
    "map", "precision", "return", "returns", "score", "scores", "success", "win", NULL
};
static const char *const smaller_mostly[] = {
    "ce", "cost", "costs", "kl", "residual", NULL
};
/* Next to one of these words, the direction is unknown. */
static const char *const turned[] = {
    "aic", "bic", "bouldin", "delta", "diff", "energy", "gap", "inv", "inverse", "minus", "neg", "negative", "reciprocal",
    "seconds", "std", "time", "var", "variance", NULL
};
/* clang-format on */

struct direction {
    bool up, down, other;
};

static void judge_direction (struct direction *d, const char *word, bool given)
{
    d->up |= strings_contain (larger, word) || (!given && strings_contain (larger_mostly, word));
    d->down |=
        strings_contain (smaller, word) || (!given && strings_contain (smaller_mostly, word));
    d->other |= strings_contain (turned, word);
}

/* Judge a word in lower case, once as it is and once without digits at its end. */
static void judge_part (struct direction *d, const char *word, size_t n, bool given)
{
    char text[64];

    n = n < sizeof (text) ? n : sizeof (text) - 1;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)tolower ((unsigned char)word[i]);
    text[n] = '\0';
    judge_direction (d, text, given);
    while (n > 0 && isdigit ((unsigned char)text[n - 1]))
        text[--n] = '\0';
    judge_direction (d, text, given);
}

static size_t count_span (const char *at, int (*is) (int c))
{
    size_t n = 0;

    while (is ((unsigned char)at[n]))
        n++;
    return n;
}

enum metric_direction { DIRECTION_UNKNOWN, LARGER_IS_BETTER, SMALLER_IS_BETTER };

/* Return the direction that a metric's name suggests.  Finds words in "val_acc",
 * "valAcc", "val/mAP50" and "F1 (macro)".
 */
static enum metric_direction direction_of (const char *metric, bool given)
{
    struct direction d = { .other = metric[0] == '1' && !isalnum ((unsigned char)metric[1]) };

    for (const char *at = metric; *at;) {
        size_t n = count_span (at, isalnum), k = 0;
        judge_part (&d, at, n, given);
        while (k < n) {
            size_t part = count_span (at + k, isupper);
            part += count_span (at + k + part, islower);
            part += count_span (at + k + part, isdigit);
            judge_part (&d, at + k, part, given);
            k += part;
        }
        at += n ? n : 1;
    }
    return d.other || d.up == d.down ? DIRECTION_UNKNOWN
           : d.up                    ? LARGER_IS_BETTER
                                     : SMALLER_IS_BETTER;
}

static void warn_of_direction (const struct experiment *e)
{
    char where[512];

    for (size_t i = 0; i < e->metric->n; i++) {
        enum metric_direction suggested =
            direction_of (e->metric->names[i], e->metric->smaller_is_given);
        bool is_larger = e->search->config.larger[i];
        if (suggested == DIRECTION_UNKNOWN || (suggested == LARGER_IS_BETTER) == is_larger)
            continue;
        where_text (e, e->metric->origin, where, sizeof (where));
        complain ("%s: '%s' is %s, and its name suggests that %s is better: "
                  "'searcher.smaller_is_better = %s' %s it",
                  where, e->metric->names[i], is_larger ? "maximised" : "minimised",
                  is_larger ? "smaller" : "larger", is_larger ? "true" : "false",
                  is_larger ? "minimises" : "maximises");
    }
}

/* Warn about each hyperparameter that neither the entrypoint nor its script uses, about
 * a length or a seed that the program does not read, and about a metric whose name
 * suggests the other direction.  Prints no warning about unused values if another
 * program may use them or a file cannot be read as text.
 */
static void forgotten_warn (const struct experiment *e)
{
    struct program_texts t;

    texts_read (&t, e);
    if (!e->search->searcher || strcmp (e->search->searcher, "single"))
        warn_of_hparams (e, &t);
    warn_of_length (e, &t);
    warn_of_seed (e, &t);
    warn_of_pbt (e, &t);
    warn_of_direction (e);
    texts_free (&t);
}

/* ---- the words of the first command ---- */

/* Stop at the first word that a shell would expand. */
static void add_words (const char *text, char ***words)
{
    static const char changed[] = "$`'\"\\*?[]{}~#;|&()<>\n";

    while (*(text += strspn (text, " \t"))) {
        size_t len = strcspn (text, " \t\n;|&()<>");
        size_t unchanged = strcspn (text, changed);
        if (unchanged < len || len == 0)
            return;
        strings_add_part (words, text, len);
        text += len;
        if (*text && !strchr (" \t", *text))
            return;
    }
}

/* A command to check, and where to report what is wrong with it. */
struct checked_command {
    const struct experiment *e;
    char **words;
    char *name; /* "'entrypoint'" or "'command' of role \"ps\"" */
    struct origin origin;
    bool local;
};

static char **first_words (const struct experiment *e)
{
    char **words = NULL;

    if (e->entrypoint)
        add_words (e->entrypoint, &words);
    for (char **a = e->argv; a && *a && !strpbrk (*a, "{["); a++)
        strings_add (&words, *a);
    return words;
}

/* ---- programs ---- */

/* Whether the shell runs the word itself, or the word changes where later programs are
 * found.
 */
static bool word_is_of_shell (const char *word)
{
    static const char *const list[] = {
        ".",    "!",    ":",      "[",     "cd",     "case",  "command", "echo",   "eval",
        "exec", "exit", "export", "false", "for",    "if",    "kill",    "module", "printf",
        "pwd",  "read", "set",    "shift", "source", "test",  "time",    "times",  "trap",
        "true", "type", "ulimit", "umask", "unset",  "until", "wait",    "while",  NULL,
    };

    return strings_contain (list, word);
}

static bool command_is_in_path (const struct experiment *e, const char *name)
{
    char *path = program_path (software_variable (e->software, "PATH"), name);

    free (path);
    return path;
}

static bool sets_path (const struct experiment *e)
{
    for (char **v = e->variables; v && *v; v++)
        if (!strncmp (*v, "PATH=", 5))
            return true;
    return false;
}

/* ---- files ---- */

static bool file_is_there (const struct experiment *e, const char *name, int mode, char *path)
{
    path_from (path, e->dir, name);
    return access (path, mode) == 0;
}

static bool is_directory (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 && S_ISDIR (st.st_mode);
}

/* Return a file in the directory with a similar name, or NULL. */
static char *nearest_file (const struct experiment *e, const char *name)
{
    const char *words[256] = { NULL };
    struct dirent **list;
    int n = strchr (name, '/') ? 0 : scandir (e->dir, &list, NULL, alphasort);
    const char *meant;
    char *copy;

    if (n <= 0)
        return NULL;
    for (int i = 0; i < n && i < 255; i++)
        words[i] = list[i]->d_name;
    meant = nearest_word (name, words);
    copy = xstrdup (meant);
    for (int i = 0; i < n; i++)
        free (list[i]);
    free (list);
    return copy;
}

static void add_missing_problem (const struct checked_command *c, const char *file,
                                 struct problems *p)
{
    char *meant = nearest_file (c->e, file);

    problem_at (p, c->origin, "%s: there is no file '%s'%s%s, where the trials run%s%s%s", c->name,
                file, *file == '/' ? "" : " in ", *file == '/' ? "" : c->e->dir,
                DID_YOU_MEAN (meant, "'", "'", ""));
    free (meant);
}

/* A file with an absolute path may exist on the compute nodes only. */
static void check_command_file (const struct checked_command *c, const char *file, int mode,
                                bool local, struct problems *p)
{
    char path[PATH_MAX];

    bool there = file_is_there (c->e, file, mode, path);

    if (there && mode == X_OK && is_directory (path))
        problem_at (p, c->origin, "%s: '%s' is a directory", c->name, file);
    if (there || (*file == '/' && !local))
        return;
    if (access (path, F_OK) < 0)
        add_missing_problem (c, file, p);
    else
        problem_at (p, c->origin, "%s: '%s' cannot be run: chmod +x %s", c->name, file, path);
}

/* ---- the script of an interpreter ---- */

/* clang-format off */
static const struct interpreter {
    const char *name;    /* a fnmatch() pattern */
    const char *options; /* letters of options that take no argument, as in -u */
} interpreters[] = {
    { "python",     "uOBEsSvIqbdR" },
    { "python[23]*", "uOBEsSvIqbdR" },
    { "sh",         "eux" },
    { "bash",       "euxl" },
    { "dash",       "eux" },
    { "zsh",        "eux" },
    { "ksh",        "eux" },
    { "perl",       "w" },
    { "Rscript",    "" },
    { "julia",      "" },
    { "ruby",       "" },
    { "node",       "" },
    { NULL,         NULL },
};
/* clang-format on */

static const struct interpreter *interpreter_of (const char *program)
{
    const char *base = strrchr (program, '/');

    for (const struct interpreter *i = interpreters; i->name; i++)
        if (fnmatch (i->name, base ? base + 1 : program, 0) == 0)
            return i;
    return NULL;
}

/* Return NULL if there is no script or only the interpreter knows which it is. */
static const char *script_of (char **words)
{
    const struct interpreter *i = interpreter_of (*words++);

    while (i && *words && **words == '-') {
        const char *letters = *words++ + 1;
        if (!*letters || letters[strspn (letters, i->options)])
            return NULL;
    }
    return i ? *words : NULL;
}

/* ---- the command ---- */

static bool is_missing (const struct experiment *e, char **words)
{
    return words && *words && !strpbrk (*words, "/=") && !word_is_of_shell (*words)
           && !e->software->image && !sets_path (e) && software_is_loaded (e->software)
           && !command_is_in_path (e, *words);
}

/* Whether the program is a file of the directory, and "./" was forgotten. */
static bool lacks_its_path (const struct experiment *e, char **words)
{
    char path[PATH_MAX];

    return is_missing (e, words) && file_is_there (e, *words, F_OK, path) && !is_directory (path);
}

/* "job.conf:7", or only the file if the command comes from elsewhere. */
static void origin_text (const struct checked_command *c, char *buf, size_t size)
{
    int n = snprintf (buf, size, "%.4000s", c->e->file);

    if (c->origin.line > 0 && !c->origin.option)
        snprintf (buf + n, size - (size_t)n, ":%d", c->origin.line);
}

/* Only warn, because the compute nodes may have the program. */
static void warn_of_program (const struct checked_command *c)
{
    char at[PATH_MAX + 16];

    origin_text (c, at, sizeof (at));
    if (!c->local && is_missing (c->e, c->words) && !lacks_its_path (c->e, c->words))
        complain ("%s: %s: there is no program '%s' in PATH on this host: it must be on the nodes",
                  at, c->name, *c->words);
}

static void check_program (const struct checked_command *c, struct problems *p)
{
    const struct experiment *e = c->e;
    char **words = c->words;
    const char *script;

    if (!words || !*words || strchr (*words, '=') || word_is_of_shell (*words))
        return;
    if (strchr (*words, '/'))
        check_command_file (c, *words, X_OK, c->local && !e->software->image, p);
    else if (lacks_its_path (e, words))
        problem_at (p, c->origin,
                    "%s: there is no program '%s' in PATH: write ./%s for the file in %s", c->name,
                    *words, *words, e->dir);
    else if (c->local && is_missing (e, words))
        problem_at (p, c->origin, "%s: there is no program '%s' in PATH", c->name, *words);
    if ((script = script_of (words)))
        check_command_file (c, script, F_OK, c->local, p);
}

static bool runs_entrypoint (const struct job_settings *j)
{
    bool runs = j->nroles == 0;

    for (size_t i = 0; i < j->nroles; i++)
        runs |= !j->roles[i].command;
    return runs;
}

/* Call 'f' for the entrypoint and for the command of each role. */
static void each_command (const struct experiment *e, bool local, struct problems *p,
                          void (*f) (const struct checked_command *c, struct problems *p))
{
    for (size_t i = 0; i < e->job->nroles; i++) {
        const struct job_role *r = &e->job->roles[i];
        struct checked_command c = { .e = e, .origin = r->origin, .local = local };
        if (!r->command)
            continue;
        c.name = xasprintf ("'command' of role \"%s\"", r->name);
        add_words (r->command, &c.words);
        f (&c, p);
        strings_free (c.words);
        free (c.name);
    }
    if (runs_entrypoint (e->job)) {
        struct checked_command c = { e, first_words (e), xstrdup ("'entrypoint'"),
                                     e->entrypoint_origin, local };
        f (&c, p);
        strings_free (c.words);
        free (c.name);
    }
}

static void check_and_warn (const struct checked_command *c, struct problems *p)
{
    check_program (c, p);
    warn_of_program (c);
}

/* Suggest the {name} in a pattern that is most similar to the metric. */
static void near_name (const struct experiment *e, const char *metric, char *hint, size_t size)
{
    char **names = NULL;
    const char *meant;

    for (char **text = e->metric->patterns; *text; text++)
        for (const char *at = *text; (at = strchr (at, '{')); at++)
            strings_add_part (&names, at + 1, strcspn (at + 1, "}"));
    meant = names ? nearest_word (metric, (const char *const *)names) : NULL;
    snprintf (hint, size, "%s%s%s", DID_YOU_MEAN (meant, "'", "'", ""));
    strings_free (names);
}

/* Only warn, because the program may log the metric in another way. */
static void warn_of_metrics (const struct experiment *e)
{
    char name[256];
    char hint[256] = "";

    for (char **m = e->metric->names; e->metric->patterns && m && *m; m++) {
        char **text = e->metric->patterns;
        snprintf (name, sizeof (name), "{%s}", *m);
        /* a pattern without {name} takes the names from the output */
        while (*text && strchr (*text, '{') && !strstr (*text, name))
            text++;
        if (!*text)
            near_name (e, *m, hint, sizeof (hint));
        if (!*text && !e->metric->format)
            complain ("%s: no metrics.pattern has %s, the metric of the "
                      "search%s: a trial has a result only if its program logs it in another way",
                      e->file, name, hint);
    }
}

/* Warn about {lr:...} and ${lr}, which stay unchanged because they belong to Python's
 * format() and to the shell.
 */
static void warn_of_braces (const struct experiment *e, const char *text, const char *path)
{
    size_t n = strlen (path);

    for (const char *at = text; at && (at = strchr (at, '{')); at++) {
        bool dollar = at > text && at[-1] == '$';
        char c = strncmp (at + 1, path, n) ? '\0' : at[n + 1];
        if (dollar ? c != '}' : c != ':' && c != '!')
            continue;
        complain ("%s:%d: 'entrypoint': %s{%s%c%s is %s; write {%s} for the hyperparameter",
                  e->file, e->entrypoint_origin.line, dollar ? "$" : "", path, c,
                  dollar ? "" : "...}", dollar ? "a shell variable" : "left as it is", path);
        return;
    }
}

static void warn_of_near_names (const struct experiment *e)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        warn_of_braces (e, e->entrypoint, e->space->hparams[i].path);
        for (char **a = e->argv; a && *a; a++)
            warn_of_braces (e, *a, e->space->hparams[i].path);
    }
}

/* A random value from a continuous range practically never equals a given one. */
static void warn_of_when (const struct experiment *e)
{
    bool grid = e->search->searcher && !strcmp (e->search->searcher, "grid");

    for (size_t i = 0; i < e->space->nparams && !grid; i++) {
        const struct param *d = &e->space->params[i];
        int of = d->when ? space_find (e->space->params, e->space->nparams, d->when) : -1;
        const struct param *o = of < 0 ? NULL : &e->space->params[of];
        if (o && o->step == 0 && (o->type == PARAM_FLOAT || o->type == PARAM_LOG))
            complain ("%s: hyperparameter '%s' is hardly ever active: its 'when' requires a single "
                      "value from the range of '%s'",
                      e->file, d->name, o->name);
    }
}

/* Other programs choose from a list; here the list itself is the value, which may be
 * intended.
 */
static void warn_of_lists (const struct experiment *e)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        if (h->dim >= 0 || !json_is_array (h->values) || e->search->config.max_trials < 2
            || (e->space->nparams > 0 && !experiment_has_placeholder (e, h->path)))
            continue;
        complain ("%s:%d: %seach trial gets the whole list "
                  "'%s'; to choose from it: { type = \"categorical\"; vals = [...]; }",
                  e->file, h->origin.line, e->space->nparams == 0 ? "nothing is searched: " : "",
                  h->path);
        return;
    }
}

/* With the default max_length there is nothing to stop early.  Searcher "auto" is an
 * exception: it works without.
 */
static void warn_of_rungs (const struct experiment *e)
{
    static const char *const undivided[] = { "median", "pbt", NULL };
    double least = strings_contain (undivided, e->search->searcher) ? 2 : e->search->config.divisor;

    if (!(experiment_needs (e) & (HAS_RUNGS | HAS_REPORTS))
        && (e->search->config.divisor != 4 || e->search->config.max_rungs != 5))
        complain ("%s: searcher \"%s\" stops no trial early: "
                  "'searcher.divisor' and 'searcher.max_rungs' are for "
                  "searchers with rungs, such as \"asha\" with 'searcher.sampler'",
                  e->file, e->search->searcher);
    else if (experiment_needs (e) & (HAS_RUNGS | HAS_REPORTS)
             && strcmp (e->search->searcher, "auto")
             && (double)e->search->config.max_length < least)
        complain ("%s: searcher \"%s\" stops no trial early: 'searcher.max_length', the length of "
                  "a full training, is %lld, but must be at least %g for that",
                  e->file, e->search->searcher, (long long)e->search->config.max_length, least);
}

enum joint { JOINT_NONE, JOINT_NEXT, JOINT_AND, JOINT_OR, JOINT_PIPE };

/* Return what separates two commands at 'at', and set its length. */
static enum joint joint_at (const char *at, size_t *length)
{
    *length = 1 + (at[1] == *at || (*at == '|' && at[1] == '&'));
    if (*at == ';' || *at == '\n')
        return JOINT_NEXT;
    if (*at == '&')
        return *length == 2 ? JOINT_AND : JOINT_NEXT;
    return *at != '|' ? JOINT_NONE : at[1] == '|' ? JOINT_OR : JOINT_PIPE;
}

/* Return the last command of a shell text and set 'by' to the separator before it.
 * Skips quotes, parentheses and comments.
 */
static const char *last_command (const char *text, enum joint *by)
{
    const char *last = text;
    enum joint next = JOINT_NONE;
    bool begins = true;
    char quote = '\0';
    int depth = 0;
    size_t n;

    *by = JOINT_NONE;
    for (const char *at = text; *at; at++) {
        enum joint now = quote || depth > 0 ? JOINT_NONE : joint_at (at, &n);
        if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '#' && (at == text || strchr (" \t\n;&|(", at[-1]))) {
            at += strcspn (at, "\n") - 1;
            continue;
        } else if ((*at == '>' || *at == '<') && at[1] == '&')
            at++;
        else if (now != JOINT_NONE && !(*at == '&' && at[1] == '>')) {
            /* a newline before the first command or after "&&" separates nothing */
            next = begins && now == JOINT_NEXT ? next : now;
            begins = true;
            at += n - 1;
            continue;
        } else if (strchr ("'\"`", *at))
            quote = *at;
        else
            depth += (*at == '(') - (*at == ')');
        if (begins && !strchr (" \t\r", *at)) {
            last = at;
            *by = next;
            begins = false;
        }
        at += *at == '\\' && at[1] && quote != '\'';
    }
    return last;
}

/* Whether a command succeeds no matter what the commands before it did. */
static bool always_succeeds (const char *command)
{
    static const char *const names[] = { ":",  "cat",    "cp", "date", "echo",  "ls",   "mkdir",
                                         "mv", "printf", "rm", "sync", "touch", "true", NULL };
    char *name = xstrndup (command, strcspn (command, " \t\n;&"));
    const char *rest = command + strlen (name);
    bool does;

    rest += strspn (rest, " \t;\n");
    does = strings_contain (names, name) || (!strcmp (name, "wait") && !*rest)
           || (!strcmp (name, "exit") && *rest == '0');
    free (name);
    return does;
}

/* Whether a command before the last one looks like a training script. */
static bool has_script (const char *text, size_t length)
{
    static const char *const marks[] = { "python", ".py", ".sh", "./", ".R", ".jl", NULL };
    char *before = xstrndup (text, length);
    const char *const *m = marks;

    while (*m && !strstr (before, *m))
        m++;
    free (before);
    return *m;
}

static void warn_of_status (const struct experiment *e)
{
    const char *text = e->entrypoint;
    enum joint by;
    const char *last = text ? last_command (text, &by) : NULL;
    int n = last ? (int)strcspn (last, " \t\n;") : 0;

    if (!last || strstr (text, "pipefail")
        || (by != JOINT_PIPE && !has_script (text, (size_t)(last - text))))
        return;
    if (by == JOINT_PIPE)
        complain ("%s:%d: 'entrypoint' ends in a pipe, which exits with the status of its last "
                  "command, '%.*s': a crash before it would count as a result; the attempt's log "
                  "has the output without 'tee', or "
                  "use bash -o pipefail -c '...'",
                  e->file, e->entrypoint_origin.line, n, last);
    else if (by == JOINT_OR && always_succeeds (last))
        complain (
            "%s:%d: 'entrypoint' ends in '|| %.*s', so a crash counts as a result: remove that",
            e->file, e->entrypoint_origin.line, n, last);
    else if (by == JOINT_NEXT && always_succeeds (last) && !strstr (text, "set -e"))
        complain ("%s:%d: 'entrypoint' exits with the status of its last command, '%.*s': a crash "
                  "before it would count as a result; start with 'set -e'",
                  e->file, e->entrypoint_origin.line, n, last);
}

void command_warn (const struct experiment *e)
{
    warn_of_metrics (e);
    warn_of_near_names (e);
    warn_of_when (e);
    warn_of_lists (e);
    warn_of_rungs (e);
    warn_of_status (e);
    forgotten_warn (e);
}

void command_check_files (const struct experiment *e, struct problems *p)
{
    each_command (e, false, p, check_program);
}

int command_check (struct experiment *e, bool local, bool loads)
{
    struct problems p;

    problems_open (&p);
    p.file = e->file;
    if (!e->fork
             ->experiment) /* a fork may run an old file that was written before groups existed */
        groups_check (e, &p);
    software_check (e, local, loads, &p);
    each_command (e, local, &p, check_and_warn);
    problems_close (&p);
    fputs (p.text, stderr);
    free (p.text);
    return p.count ? EXIT_USAGE : EXIT_OK;
}
