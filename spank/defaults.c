/* SPDX-License-Identifier: Apache-2.0 */
/* One decision per step: srun passes its policy on, and all tasks follow it. */
#include "spank/defaults.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "runtime/rank/condition.h"
#include "runtime/rank/task.h"
#include "spank/context.h"

void facts_of_task (spank_t sp, struct step_facts *f)
{
    char gpus[64] = "";
    spank_err_t rv = spank_getenv (sp, "SLURM_STEP_GPUS", gpus, sizeof (gpus));

    memset (f, 0, sizeof (*f));
    f->known = true;
    f->gpus = rv == ESPANK_NOSPACE || (rv == ESPANK_SUCCESS && *gpus) ? ANSWER_YES : ANSWER_NO;
    variable_text (sp, "SLURM_JOB_PARTITION", f->partition, sizeof (f->partition));
    variable_text (sp, "SLURM_JOB_ACCOUNT", f->account, sizeof (f->account));
    variable_text (sp, "SLURM_JOB_QOS", f->qos, sizeof (f->qos));
}

/* Read the words of srun's command line, each with its NUL.  They include the
 * user's program.
 */
static size_t read_command (char *text, size_t size)
{
    int fd = open ("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read (fd, text, size - 1);

    if (fd >= 0)
        close (fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static bool any_word (bool (*is_it) (const char *word))
{
    char text[16384];
    size_t n = read_command (text, sizeof (text));

    for (size_t i = 0; i < n; i += strlen (text + i) + 1)
        if (is_it (text + i))
            return true;
    return false;
}

/* The value of "-wVALUE", "--nodelist=VALUE", or an abbreviation that getopt_long()
 * accepts.  Returns NULL if 'word' is none of these, or "" if the value is the next
 * word.
 */
static const char *option_argument (const char *word, char c, const char *name)
{
    size_t n = strcspn (word, "=");

    if (word[0] == '-' && word[1] == c)
        return word + 2;
    if (n < strlen (name) / 2 || strncmp (word, name, n))
        return NULL;
    return word[n] ? word + n + 1 : "";
}

int facts_option (char c, const char *name, char *buf, size_t size)
{
    char text[16384];
    size_t n = read_command (text, sizeof (text));

    for (size_t i = 0; i < n; i += strlen (text + i) + 1) {
        const char *value = option_argument (text + i, c, name);
        if (!value)
            continue;
        if (!*value)
            value = text + i + strlen (text + i) + 1;
        if (value >= text + n || strlen (value) >= size)
            return -1;
        memcpy (buf, value, strlen (value) + 1);
        return 0;
    }
    return -1;
}

static bool names_gpus (const char *word)
{
    return !strncmp (word, "-G", 2) || strcasestr (word, "gpu") || strstr (word, "gres")
           || strstr (word, "tres");
}

static bool is_variable_of_gpus (const char *variable)
{
    char name[64];
    size_t n = strcspn (variable, "=");

    if (strncmp (variable, "SLURM_", 6) || n >= sizeof (name) || !variable[n])
        return false;
    memcpy (name, variable, n);
    name[n] = '\0';
    return strstr (name, "GPU") || strstr (name, "GRES") || strstr (name, "TRES");
}

void facts_of_command (struct step_facts *f)
{
    memset (f, 0, sizeof (*f));
    f->gpus = ANSWER_UNKNOWN;
    if (any_word (names_gpus))
        return;
    for (char **v = environ; *v; v++)
        if (is_variable_of_gpus (*v))
            return;
    f->gpus = ANSWER_NO;
}

/* Accept the abbreviations that getopt_long() does. */
static bool is_option_of_cores (const char *word)
{
    static const char *const options[] = { "--cpu-b", "--cpu_b", "--hint", "--threads-per" };

    for (size_t i = 0; i < sizeof (options) / sizeof (*options); i++)
        if (!strncmp (word, options[i], strlen (options[i])))
            return true;
    return false;
}

/* In srun: whether the user chose the cores, by an option of srun or a variable of
 * Slurm or OpenMP.
 */
static bool facts_user_binds (void)
{
    static const char *const variables[] = {
        "SLURM_CPU_BIND", "SLURM_HINT",        "SLURM_THREADS_PER_CORE",
        "KMP_AFFINITY",   "GOMP_CPU_AFFINITY", "OMP_PLACES",
    };

    for (size_t i = 0; i < sizeof (variables) / sizeof (*variables); i++)
        if (getenv (variables[i]))
            return true;
    return any_word (is_option_of_cores);
}

static bool is_option_of_programs (const char *word)
{
    return !strncmp (word, "--multi", 7) || !strcmp (word, "--mpi")
           || (!strncmp (word, "--mpi=", 6) && strcmp (word, "--mpi=none"));
}

/* In srun: whether the user asked for MPI or for several programs. */
static bool facts_user_starts (void)
{
    const char *type = getenv ("SLURM_MPI_TYPE");

    return (type && strcmp (type, "none")) || any_word (is_option_of_programs);
}

/* The imports of a script and the libraries of a program appear near its start. */
enum { TEXT = 128 * 1024, FILES = 8 };

struct evidence {
    bool together; /* the ranks find each other through RANK and MASTER_ADDR */
    bool apart;    /* they do so in another way, or not at all */
};

static bool contains_word (const char *text, size_t n, const char *word)
{
    return memmem (text, n, word, strlen (word)) != NULL;
}

static bool has_any (const char *text, size_t n, const char *const *words)
{
    for (; *words; words++)
        if (contains_word (text, n, *words))
            return true;
    return false;
}

static void scan_text (struct evidence *e, const char *text, size_t n)
{
    static const char *const together[] = {
        "init_process_group",         "jax.distributed.init",
        "init_distributed",           "DistributedDataParallel",
        "torch.distributed.run",      "torch.distributed.launch",
        "accelerate.commands.launch", NULL
    };
    static const char *const apart[] = { "SLURM_PROCID", "SLURM_LOCALID", "mpi4py", "libmpi.so",
                                         "libmpich",     "horovod",       NULL };

    e->together = e->together || has_any (text, n, together);
    e->apart = e->apart || has_any (text, n, apart);
}

/* Returns whether the file exists. */
static bool scan_file (struct evidence *e, const char *path)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = fd < 0 ? NULL : malloc (TEXT);
    struct stat st;
    bool found = text && fstat (fd, &st) == 0 && S_ISREG (st.st_mode);
    ssize_t n = found ? read (fd, text, TEXT) : 0;

    if (n > 0)
        scan_text (e, text, (size_t)n);
    free (text);
    if (fd >= 0)
        close (fd);
    return found;
}

/* Find the program as the shell does. */
static void read_program (struct evidence *e, spank_t sp, const char *name)
{
    char list[4096], path[PATH_MAX];
    char *next = NULL;

    if (strchr (name, '/')) {
        scan_file (e, name);
        return;
    }
    variable_text (sp, "PATH", list, sizeof (list));
    for (char *d = strtok_r (list, ":", &next); d; d = strtok_r (NULL, ":", &next)) {
        if (snprintf (path, sizeof (path), "%s/%s", d, name) >= (int)sizeof (path)
            || access (path, X_OK) < 0)
            continue;
        scan_file (e, path);
        return;
    }
}

static bool is_launcher (const char *word)
{
    static const char *const names[] = { "torchrun", "accelerate", "deepspeed" };
    const char *name = strrchr (word, '/') ? strrchr (word, '/') + 1 : word;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (!strcmp (name, names[i]))
            return true;
    return false;
}

bool meant_for (spank_t sp, bool named)
{
    struct evidence e = { named, false };
    char **argv = NULL;
    int argc = 0;
    int files = 0;

    if (spank_get_item (sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1 || !argv
        || !argv[0])
        return named;
    e.together = e.together || is_launcher (argv[0]);
    read_program (&e, sp, argv[0]);
    /* another program may run it: timeout, a container, a profiler */
    for (int i = 1; i < argc && argv[i]; i++) {
        scan_text (&e, argv[i], strlen (argv[i]));
        e.together = e.together || is_launcher (argv[i]);
        if (*argv[i] != '-' && files < FILES && scan_file (&e, argv[i]))
            files++;
    }
    return e.together && !e.apart;
}

/* srun passes variables with this prefix even with --export=NONE. */
static const char policy_variable[] = "SLURM_DL_POLICY";

bool defaults_are_off (void)
{
    const char *chosen = getenv ("DL_DEFAULTS");

    return (chosen && !strcmp (chosen, "off"))
           || !strcmp (context_own ()->given[PLUGIN_FRAMEWORK], "off");
}

static bool is_path (const char *argument)
{
    return !strncmp (argument, "dl=/", 4) || !strncmp (argument, "nccl_dir=/", 10)
           || !strncmp (argument, "monitor_dir=/", 13);
}

static bool is_condition (const char *argument)
{
    return !strncmp (argument, "when=", 5) && argument[5];
}

/* Pass "bind when=gpus:any default=auto": first words for what srun knows ("-" if
 * nothing), then its arguments except paths, which each node sets itself.  Leave
 * out arguments after an invalid when=.
 */
void defaults_tell (bool any, int ac, char **av)
{
    char text[WORD_TEXT];
    bool conditional = false;
    int n;

    unsetenv (policy_variable);
    if (!any)
        return;
    n = snprintf (text, sizeof (text), "%s%s%s", defaults_are_off () ? "off," : "",
                  *option_value (PLUGIN_BIND) && !option_is_given (PLUGIN_BIND)
                          && !facts_user_binds ()
                      ? "bind,"
                      : "",
                  facts_user_starts () ? "mpi,-" : "-");
    for (int i = 0; i < ac && n < WORD_TEXT; i++) {
        conditional = conditional || is_condition (av[i]);
        if (conditional || !is_path (av[i]))
            n += snprintf (text + n, (size_t)(WORD_TEXT - n), " %s", av[i]);
    }
    if (n < WORD_TEXT)
        setenv (policy_variable, text, 1);
}

static void add_word (struct defaults_word *w, char *word)
{
    if (w->ac < WORDS)
        w->words[w->ac++] = word;
}

void defaults_hear (spank_t sp, struct defaults_word *w, int ac, char **av)
{
    char *next = NULL;
    char *word;

    memset (w, 0, offsetof (struct defaults_word, text));
    w->ac = ac;
    w->av = av;
    w->known = variable_text (sp, policy_variable, w->text, sizeof (w->text)) == 0;
    context_own ()->no_defaults = !w->known;
    if (!w->known)
        return;
    spank_unsetenv (sp, policy_variable);
    w->ac = 0;
    w->av = w->words;
    for (int i = 0; i < ac && !is_condition (av[i]); i++)
        if (is_path (av[i]))
            add_word (w, av[i]);
    word = strtok_r (w->text, " ", &next);
    w->may_bind = word && strstr (word, "bind,");
    w->starts = word && strstr (word, "mpi,");
    context_own ()->no_defaults = word && strstr (word, "off,");
    while ((word = strtok_r (NULL, " ", &next)))
        add_word (w, word);
}

void defaults_clear (spank_t sp)
{
    static const char *const names[] = { "DL_SECRET", "SLURM_DL_BOARD", "SLURM_DL_GATHER",
                                         ORDER_VARIABLE };

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        spank_unsetenv (sp, names[i]);
}

void defaults_report (bool binds)
{
    char text[512] = "";
    size_t n = 0;

    for (int row = 0; row < PLUGIN_OPTIONS && n < sizeof (text); row++)
        if (option_is_on (row) && !option_is_given (row) && (row != PLUGIN_BIND || binds))
            n += (size_t)snprintf (text + n, sizeof (text) - n, " --%s=%s",
                                   plugin_options[row].name, option_value (row));
    if (n > 0)
        slurm_spank_log ("dl: this site's default is%s; --dl=off or "
                         "DL_DEFAULTS=off disables it",
                         text);
}
