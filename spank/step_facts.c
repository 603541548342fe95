/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a step: GPUs, partition, account, QOS, choices. */
#include "spank/step_facts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank/variable.h"

extern char **environ;

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

/* The words of its command line, each with its 0; the user's program is among
 * them.
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

/* "-wVALUE", "--nodelist=VALUE" or shortened as getopt_long() takes it; NULL if
 * it is none of these, "" if its value is the next word.
 */
static const char *value_of (const char *word, char c, const char *name)
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
        const char *value = value_of (text + i, c, name);
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

/* As getopt_long takes them, shortened. */
static bool is_option_of_cores (const char *word)
{
    static const char *const options[] = { "--cpu-b", "--cpu_b", "--hint", "--threads-per" };

    for (size_t i = 0; i < sizeof (options) / sizeof (*options); i++)
        if (!strncmp (word, options[i], strlen (options[i])))
            return true;
    return false;
}

bool facts_user_binds (void)
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

bool facts_user_starts (void)
{
    const char *type = getenv ("SLURM_MPI_TYPE");

    return (type && strcmp (type, "none")) || any_word (is_option_of_programs);
}
