/* SPDX-License-Identifier: Apache-2.0 */
/* What was forgotten: values of the search that nothing uses. */
#include "launcher/cmd/forgotten.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/hparams.h"
#include "launcher/config/queries.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"

/* ---- what the entrypoint runs ---- */

/* Texts that are read: more of one, or more of them, are not known. */
enum { TEXT_MOST = 1 << 20, TEXTS_MOST = 200 };

struct program_texts {
    const struct experiment *e;
    char **list;   /* contents, the first ones of the experiment file */
    char **paths;  /* of the files, NULL-ended */
    char *first;   /* the first one, and ... */
    char *scripts; /* ... its folder, where Python looks */
    int n;
    bool unknown; /* something else may use the values */
};

static const char metas[] = " \t\r\n;|&()<>\"'`=,";

static void read_python (struct program_texts *t, const char *text, char *dir);
static void read_shell (struct program_texts *t, const char *text);

/* clang-format off */
/* Programs that run others, which are found among their arguments. */
static const char *const runners[] = {
    "accelerate", "apptainer", "bash", "conda", "dash", "deepspeed", "env", "julia", "ksh", "mamba", "micromamba", "mpiexec",
    "mpirun", "nice", "node", "nohup", "numactl", "perl", "pipenv", "poetry", "python", "python2", "python3", "Rscript", "ruby",
    "sh", "singularity", "srun", "stdbuf", "taskset", "timeout", "torchrun", "uv", "xvfb-run", "zsh", NULL
};

/* Programs that know nothing of the search. */
static const char *const plain[] = {
    ".", "!", ":", "[", "awk", "basename", "bc", "break", "cat", "cd", "chmod", "command", "continue", "cp", "cut", "date", "dd",
    "dirname", "dl", "do", "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "expr", "false", "fi",
    "find", "for", "gawk", "grep", "gzip", "head", "hostname", "if", "in", "kill", "ln", "local", "ls", "mkdir", "mktemp",
    "module", "mv", "nvidia-smi", "od", "printf", "pwd", "read", "return", "rm", "rmdir", "sed", "seq", "set", "shift",
    "sleep", "sort", "source", "stat", "sync", "tail", "tar", "tee", "test", "then", "time", "touch", "tr", "trap", "true",
    "truncate", "ulimit", "umask", "uname", "uniq", "unset", "until", "wait", "wc", "while", "xargs", "{", "}", NULL
};

/* Python's, and public ones that do not know this program either. */
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

static char *read_text (const char *path, bool *is_binary)
{
    char *text = malloc (TEXT_MOST + 1);
    FILE *f = text ? fopen (path, "re") : NULL;
    size_t n = f ? fread (text, 1, TEXT_MOST, f) : 0;

    *is_binary = n == TEXT_MOST || (text && memchr (text, '\0', n));
    if (text)
        text[n] = '\0';
    if (!f || *is_binary) {
        free (text);
        text = NULL;
    }
    if (f)
        fclose (f);
    return text;
}

static bool ends_with (const char *text, const char *end)
{
    size_t n = strlen (text), k = strlen (end);

    return n >= k && !strcmp (text + n - k, end);
}

static bool is_of_python (const char *path, const char *text)
{
    const char *line = strndupa (text, strcspn (text, "\n"));

    return ends_with (path, ".py") || (!strncmp (line, "#!", 2) && strstr (line, "python"));
}

static bool is_of_shell (const char *path, const char *text)
{
    const char *line = strndupa (text, strcspn (text, "\n"));

    return ends_with (path, ".sh") || (!strncmp (line, "#!", 2) && ends_with (line, "sh"));
}

static bool is_file (const char *path)
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
    text = read_text (whole, &is_binary);
    if (!text || t->n++ >= TEXTS_MOST) {
        t->unknown |= !text ? access (whole, X_OK) == 0 : true;
        free (text);
        return;
    }
    strings_add (&t->paths, whole);
    strings_add (&t->list, text);
    dir = strndup (whole, (size_t)(strrchr (whole, '/') - whole));
    if (!t->first) {
        t->first = strdup (whole);
        t->scripts = strdup (dir);
    }
    if (is_of_python (whole, text))
        read_python (t, text, dir);
    else if (is_of_shell (whole, text))
        read_shell (t, text);
    free (dir);
    free (text);
}

/* ---- Python's imports ---- */

/* "a.b" in a folder: a/b.py, a/b/__init__.py; whether it is there. */
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
    if ((found = is_file (path)))
        read_script (t, path);
    strcpy (path + n, ".py");
    if (!found && (found = is_file (path)))
        read_script (t, path);
    path[n] = '\0';
    return found || access (path, F_OK) == 0;
}

/* Also "from pack import part" of the folder pack/. */
static bool read_from (struct program_texts *t, const char *dir, const char *name, size_t length,
                       const char *parts)
{
    bool found = length == 0 || read_module (t, dir, name, length);

    while (found && *(parts += strspn (parts, " \t(,\\")) && *parts != '\n' && *parts != '#') {
        size_t n = strcspn (parts, " \t,()\n\\#");
        char *both;
        if (n > 0
            && asprintf (&both, "%.*s%s%.*s", (int)length, name, length ? "." : "", (int)n, parts)
                   > 0) {
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
    char *above = strdup (dir), *top;

    if (*name == '.') { /* of the same package */
        for (name++, length--; *name == '.'; name++, length--)
            if (strrchr (above, '/'))
                *strrchr (above, '/') = '\0';
        read_from (t, above, name, length, parts);
    } else if (!read_from (t, dir, name, length, parts)
               && !read_from (t, t->scripts, name, length, parts)
               && !read_from (t, t->e->dir, name, length, parts)) {
        top = strndup (name, strcspn (name, " \t.,;\n#"));
        t->unknown |= !strings_contain (libraries, top);
        free (top);
    }
    free (above);
}

static void read_python (struct program_texts *t, const char *text, char *dir)
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

/* Files among the words, and modules after -m; returns whether there was one,
 * or a program in an argument (-c).
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
        if (module && !is_file (path))
            found |= read_module (t, t->e->dir, text, n);
        module = n == 2 && !strncmp (text, "-m", 2);
        if (is_file (path)) {
            read_script (t, path);
            found = true;
        }
        text += n;
    }
    return found;
}

static bool is_assignment (const char *word, size_t n)
{
    size_t name = strspn (word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_");

    return name > 0 && name < n && word[name] == '=';
}

/* A command follows it. */
static bool is_keyword (const char *word, size_t n)
{
    static const char *const list[] = { "!",    "do",   "elif",  "else",  "if",
                                        "then", "time", "until", "while", "{" };

    for (size_t i = 0; i < sizeof (list) / sizeof (*list); i++)
        if (strlen (list[i]) == n && !strncmp (list[i], word, n))
            return true;
    return false;
}

static void read_command (struct program_texts *t, const char *word, size_t n, bool found)
{
    char *name = strndup (word, n);
    const char *base = strrchr (name, '/') ? strrchr (name, '/') + 1 : name;
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s%s%s", *name == '/' ? "" : t->e->dir, *name == '/' ? "" : "/",
              name);
    if (strings_contain (runners, base) || !strncmp (base, "python3.", 8))
        t->unknown |= !found;
    else if (!strings_contain (plain, base) && !(strchr (name, '/') && is_file (path)))
        t->unknown = true;
    free (name);
}

/* Each word at the place of a command. */
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
        if (*text == '"' || *text == '\'') { /* an argument, but $(...) */
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
            read_command (t, text, n, found);
        else if (first && *text == '$' && text[1] != '(' && text[n] != ')')
            t->unknown = true;
        first = first && is_keyword (text, n);
        argument = n == 2 && !strncmp (text, "-c", 2); /* of a shell, say */
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
        read_command (t, e->argv[0], strlen (e->argv[0]), found);
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

/* Whether it reads all that there is, however it is called. */
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

/* ---- what nothing uses ---- */

static void where_text (const struct experiment *e, struct origin origin, char *buf, size_t size)
{
    if (origin.option)
        snprintf (buf, size, "--set %s", origin.option);
    else if (origin.line > 0)
        snprintf (buf, size, "%s:%d", e->file, origin.line);
    else
        snprintf (buf, size, "%s", e->file);
}

static bool decides (const struct experiment *e, const char *path)
{
    for (size_t i = 0; i < e->nparams; i++)
        if (e->params[i].when && !strcmp (e->params[i].when, path))
            return true;
    return false;
}

static const char *script_name (const struct program_texts *t)
{
    const char *slash = t->first ? strrchr (t->first, '/') : NULL;

    return slash ? slash + 1 : NULL;
}

/* "lr=1", "for lr in", "read lr": the shell's own variable. */
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

/* Whether the entrypoint has "$lr", and does not set it. */
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

    for (size_t i = 0; i < e->nhparams; i++) {
        const struct hparam *h = &e->hparams[i];
        bool dollar = !experiment_has_placeholder (e, h->path) && has_dollar (e, h->path);
        if (h->dim < 0 || experiment_has_placeholder (e, h->path))
            continue;
        hparams_variable (variable, sizeof (variable), h->path);
        where_text (e, dollar ? e->entrypoint_origin : h->origin, where, sizeof (where));
        if (dollar)
            complain ("%s: 'entrypoint': $%s is a variable of the shell; the "
                      "hyperparameter is {%s}",
                      where, h->path, h->path);
        else if (!t->unknown && !reads_all (t) && !has_text (t, variable) && !decides (e, h->path))
            complain ("%s: nothing uses the hyperparameter '%s': the "
                      "entrypoint has no {%s}%s%s%s",
                      where, h->path, h->path, script_name (t) ? ", and " : "",
                      script_name (t) ? script_name (t) : "",
                      script_name (t) ? " reads neither its variable (DL_HP_*) "
                                        "nor slurmdl"
                                      : "");
    }
}

static bool has_any (const struct program_texts *t, const char *const *texts)
{
    while (*texts && !has_text (t, *texts))
        texts++;
    return *texts;
}

static void warn_of_length (const struct experiment *e, const struct program_texts *t)
{
    static const char *const uses[] = { "{length}", "DL_LENGTH", "slurmdl", "determined", NULL };
    char where[512];

    if (!(experiment_needs (e) & HAS_RUNGS) || e->search.max_length < 2 || t->unknown
        || has_any (t, uses))
        return;
    where_text (e, e->entrypoint_origin, where, sizeof (where));
    complain ("%s: searcher \"%s\" trains to several lengths, but the "
              "entrypoint has no {length}%s%s%s: every segment is a whole "
              "training",
              where, e->searcher_name, script_name (t) ? ", and " : "",
              script_name (t) ? script_name (t) : "",
              script_name (t) ? " does not read DL_LENGTH" : "");
}

static void warn_of_seed (const struct experiment *e, const struct program_texts *t)
{
    static const char *const uses[] = { "{seed}",   "DL_SEED", "{repeat}",   "DL_REPEAT", "{trial}",
                                        "DL_TRIAL", "slurmdl", "determined", NULL };
    char where[512];

    if (e->search.repeats < 2 || t->unknown || has_any (t, uses))
        return;
    where_text (e, e->entrypoint_origin, where, sizeof (where));
    complain ("%s: 'searcher.repeats' is %ld, but the entrypoint has no "
              "{seed}%s%s%s: repeats differ only if the program draws a seed "
              "of its own",
              where, e->search.repeats, script_name (t) ? ", and " : "",
              script_name (t) ? script_name (t) : "",
              script_name (t) ? " does not read DL_SEED" : "");
}

/* What other trials left is not in the trial's own folder. */
static void warn_of_pbt (const struct experiment *e, const struct program_texts *t)
{
    static const char *const uses[] = { "{resume_dir}", "DL_RESUME_DIR", "DL_CHECKPOINT_DIR",
                                        "slurmdl",      "determined",    NULL };
    char where[512];

    if (!e->searcher_name || strcmp (e->searcher_name, "pbt") || t->unknown || has_any (t, uses))
        return;
    where_text (e, e->entrypoint_origin, where, sizeof (where));
    complain ("%s: searcher \"pbt\" gives trials the checkpoints of better "
              "ones, but the entrypoint has no {resume_dir}%s%s%s: each trains "
              "from the beginning",
              where, script_name (t) ? ", and " : "", script_name (t) ? script_name (t) : "",
              script_name (t) ? " does not read DL_RESUME_DIR" : "");
}

/* ---- the direction ---- */

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
/* These mean something else at times: only where no direction is given. */
static const char *const larger_mostly[] = {
    "map", "precision", "return", "returns", "score", "scores", "success", "win", NULL
};
static const char *const smaller_mostly[] = {
    "ce", "cost", "costs", "kl", "residual", NULL
};
/* Beside these nothing can be said. */
static const char *const turned[] = {
    "aic", "bic", "bouldin", "delta", "diff", "energy", "gap", "inv", "inverse", "minus", "neg", "negative", "reciprocal",
    "seconds", "std", "time", "var", "variance", NULL
};
/* clang-format on */

struct direction {
    bool up, down, other;
};

static void judge (struct direction *d, const char *word, bool given)
{
    d->up |= strings_contain (larger, word) || (!given && strings_contain (larger_mostly, word));
    d->down |=
        strings_contain (smaller, word) || (!given && strings_contain (smaller_mostly, word));
    d->other |= strings_contain (turned, word);
}

/* A word in small letters: with its digits, and without those at its end. */
static void judge_part (struct direction *d, const char *word, size_t n, bool given)
{
    char text[64];

    n = n < sizeof (text) ? n : sizeof (text) - 1;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)tolower ((unsigned char)word[i]);
    text[n] = '\0';
    judge (d, text, given);
    while (n > 0 && isdigit ((unsigned char)text[n - 1]))
        text[--n] = '\0';
    judge (d, text, given);
}

static size_t count_of (const char *at, int (*is) (int c))
{
    size_t n = 0;

    while (is ((unsigned char)at[n]))
        n++;
    return n;
}

/* 1: larger is better, -1: smaller is, 0: the name does not say so.  Its words
 * are "val_acc", "valAcc", "val/mAP50" and "F1 (macro)".
 */
static int direction_of (const char *metric, bool given)
{
    struct direction d = { .other = metric[0] == '1' && !isalnum ((unsigned char)metric[1]) };

    for (const char *at = metric; *at;) {
        size_t n = count_of (at, isalnum), k = 0;
        judge_part (&d, at, n, given);
        while (k < n) {
            size_t part = count_of (at + k, isupper);
            part += count_of (at + k + part, islower);
            part += count_of (at + k + part, isdigit);
            judge_part (&d, at + k, part, given);
            k += part;
        }
        at += n ? n : 1;
    }
    return d.other || d.up == d.down ? 0 : d.up ? 1 : -1;
}

static void warn_of_direction (const struct experiment *e)
{
    char where[512];

    for (size_t i = 0; i < e->nmetrics; i++) {
        int direction = direction_of (e->metrics[i], e->given.smaller);
        bool is_larger = e->search.larger[i];
        if (direction == 0 || (direction > 0) == is_larger)
            continue;
        where_text (e, e->metric_origin, where, sizeof (where));
        complain ("%s: '%s' is %s, and its name suggests that %s is better: "
                  "'searcher.smaller_is_better = %s' %s it",
                  where, e->metrics[i], is_larger ? "maximised" : "minimised",
                  is_larger ? "smaller" : "larger", is_larger ? "true" : "false",
                  is_larger ? "minimises" : "maximises");
    }
}

void forgotten_warn (const struct experiment *e)
{
    struct program_texts t;

    texts_read (&t, e);
    if (!e->searcher_name || strcmp (e->searcher_name, "single"))
        warn_of_hparams (e, &t);
    warn_of_length (e, &t);
    warn_of_seed (e, &t);
    warn_of_pbt (e, &t);
    warn_of_direction (e);
    texts_free (&t);
}
