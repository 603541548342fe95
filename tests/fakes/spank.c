/* SPDX-License-Identifier: Apache-2.0 */
/* Fake Slurm: load the plugin and call its hooks as Slurm does in a context.
 *
 *     fakespank PLUGIN CONTEXT [OPTION]... [-- [HOOK-ARGUMENT...]]
 *
 * CONTEXT is local, allocator, slurmd, or the number of a step (remote).  An OPTION is NAME=VALUE
 * as on the command line; @FILE reads the value from a file.  The job has the environment of this
 * process, and a task runs in a child process, as with slurmstepd.  Prints what the plugin
 * registers, logs and sets.
 *
 * FAKE_ROOT        directory that the plugin gets when it opens "/"
 * FAKE_CPUS        CPUs of the cpuset; this host need not have them
 * FAKE_OWN_CPUS    CPUs that Slurm bound the task to
 * FAKE_PROBE       command to run as the task, or, in srun's context, while the step runs
 * FAKE_FAILS       "lstat" or "getrandom": that call fails
 * FAKE_UID         owner of the job; default: the caller
 * FAKE_PATIENCE    factor for the timeouts of poll()
 * FAKE_SRUN        see tell_as_srun()
 * FAKE_COMPONENTS  number of components of a heterogeneous job
 * FAKE_TIME        print to standard error how many microseconds loading, slurm_spank_init() with
 *                  the options, and slurm_spank_task_init() took
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "runtime/host/topology.h"

extern char **environ;

static struct spank_option options[32];
static int noptions;
static spank_context_t context;
static unsigned step;

spank_err_t spank_option_register (spank_t sp, struct spank_option *o)
{
    (void)sp;
    printf ("option --%s%s%s\n", o->name, o->has_arg ? "=" : "", o->has_arg ? o->arginfo : "");
    options[noptions++] = *o;
    return ESPANK_SUCCESS;
}

spank_context_t spank_context (void)
{
    return context;
}

spank_err_t spank_get_item (spank_t sp, spank_item_t item, ...)
{
    spank_err_t rv = ESPANK_SUCCESS;
    va_list ap;

    (void)sp;
    va_start (ap, item);
    if (item == S_JOB_STEPID)
        *va_arg (ap, unsigned *) = step;
    else if (item == S_JOB_ID)
        *va_arg (ap, unsigned *) = 1234;
    else if (item == S_JOB_LOCAL_TASK_COUNT)
        *va_arg (ap, unsigned *) = 1;
    else if (item == S_JOB_NNODES && getenv ("SLURM_STEP_NUM_NODES"))
        *va_arg (ap, unsigned *) = (unsigned)atoi (getenv ("SLURM_STEP_NUM_NODES"));
    else if (item == S_JOB_TOTAL_TASK_COUNT && getenv ("SLURM_STEP_NUM_TASKS"))
        *va_arg (ap, unsigned *) = (unsigned)atoi (getenv ("SLURM_STEP_NUM_TASKS"));
    else if (item == S_TASK_ID && getenv ("SLURM_LOCALID"))
        *va_arg (ap, unsigned *) = (unsigned)atoi (getenv ("SLURM_LOCALID"));
    else if (item == S_JOB_UID)
        *va_arg (ap, uid_t *) = getenv ("FAKE_UID") ? (uid_t)atoi (getenv ("FAKE_UID")) : getuid ();
    else if (item == S_JOB_ENV)
        *va_arg (ap, char ***) = environ;
    else if (item == S_JOB_ARGV && getenv ("PROGRAM")) {
        static char *argv[32];
        int n = 0;
        for (char *w = strtok (strdup (getenv ("PROGRAM")), " "); w && n < 31;
             w = strtok (NULL, " "))
            argv[n++] = w;
        *va_arg (ap, int *) = n;
        *va_arg (ap, char ***) = argv;
    } else
        rv = ESPANK_BAD_ARG;
    va_end (ap);
    return rv;
}

spank_err_t spank_getenv (spank_t sp, const char *name, char *buf, int len)
{
    const char *value = getenv (name);

    (void)sp;
    if (!value)
        return ESPANK_ENV_NOEXIST;
    if ((int)strlen (value) >= len)
        return ESPANK_NOSPACE;
    memcpy (buf, value, strlen (value) + 1);
    return ESPANK_SUCCESS;
}

spank_err_t spank_setenv (spank_t sp, const char *name, const char *value, int overwrite)
{
    (void)sp;
    printf ("set %s=%s%s\n", name, value, overwrite ? "" : " (if unset)");
    return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv (spank_t sp, const char *name)
{
    (void)sp;
    printf ("unset %s\n", name);
    return ESPANK_SUCCESS;
}

/* ---- replacements of libc functions ---- */

int open (const char *path, int flags, ...)
{
    const char *root = getenv ("FAKE_ROOT");
    va_list ap;
    int mode;

    va_start (ap, flags);
    mode = va_arg (ap, int);
    va_end (ap);
    if (root && !strcmp (path, "/"))
        path = root;
    return openat (AT_FDCWD, path, flags, mode);
}

static bool fails (const char *call)
{
    const char *which = getenv ("FAKE_FAILS");

    errno = EIO;
    return which && !strcmp (which, call);
}

int lstat (const char *path, struct stat *st)
{
    return fails ("lstat") ? -1 : fstatat (AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

ssize_t getrandom (void *buf, size_t size, unsigned flags)
{
    return fails ("getrandom") ? -1 : syscall (SYS_getrandom, buf, size, flags);
}

int poll (struct pollfd *fds, nfds_t n, int ms)
{
    int times = atoi (getenv ("FAKE_PATIENCE") ?: "1");
    struct timespec limit = { (long)ms * times / 1000, (long)ms * times % 1000 * 1000000 };

    return ppoll (fds, n, ms < 0 ? NULL : &limit, NULL);
}

static struct cpu_set fake_cpus;

int sched_getaffinity (pid_t pid, size_t size, cpu_set_t *cpus)
{
    const char *list = getenv ("FAKE_OWN_CPUS");

    if (getenv ("FAKE_CPUS") && pid != 0)
        return -1;
    if (!getenv ("FAKE_CPUS"))
        return syscall (SYS_sched_getaffinity, pid, size, cpus) < 0 ? -1 : 0;
    if (cpus_count (&fake_cpus) == 0)
        cpus_parse (list ? list : getenv ("FAKE_CPUS"), &fake_cpus);
    memcpy (cpus, &fake_cpus, size);
    return 0;
}

int sched_setaffinity (pid_t pid, size_t size, const cpu_set_t *cpus)
{
    struct cpu_set all;

    if (!getenv ("FAKE_CPUS"))
        return (int)syscall (SYS_sched_setaffinity, pid, size, cpus);
    cpus_parse (getenv ("FAKE_CPUS"), &all);
    cpus_and (&fake_cpus, (const struct cpu_set *)cpus, &all);
    return 0;
}

static void print_cpus (void)
{
    char list[512];

    if (cpus_count (&fake_cpus) > 0)
        printf ("cpus %s\n", cpus_print (&fake_cpus, list, sizeof (list)));
}

static void say (const char *fmt, va_list ap)
{
    fputs ("error ", stdout);
    vprintf (fmt, ap);
    putchar ('\n');
}

void slurm_error (const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    say (fmt, ap);
    va_end (ap);
}

void slurm_spank_log (const char *fmt, ...)
{
    va_list ap;

    fputs ("log ", stdout);
    va_start (ap, fmt);
    vprintf (fmt, ap);
    va_end (ap);
    putchar ('\n');
}

static char *file_text (const char *path)
{
    char *text = calloc (1, 1 << 17);
    FILE *f = fopen (path, "rb");

    if (f && fread (text, 1, (1 << 17) - 1, f) == 0)
        *text = '\0';
    if (f)
        fclose (f);
    return text;
}

/* Call the callback of the option with this name, as Slurm does. */
static int give_option (char *arg)
{
    char *eq = strchr (arg, '=');
    char *value = eq ? eq + 1 : NULL;
    static char *text;

    if (eq)
        *eq = '\0';
    if (value && *value == '@') {
        free (text);
        value = text = file_text (value + 1);
    }
    for (int i = 0; i < noptions; i++)
        if (!strcmp (options[i].name, arg))
            return options[i].cb (options[i].val, value, context == S_CTX_REMOTE);
    printf ("no option %s\n", arg);
    return -1;
}

static int call (void *plugin, const char *hook, int ac, char **av)
{
    spank_f *f = (spank_f *)dlsym (plugin, hook);

    return f ? f (NULL, ac, av) : 0;
}

static void set_context (const char *name)
{
    static const struct {
        const char *name;
        spank_context_t context;
    } names[] = { { "local", S_CTX_LOCAL },
                  { "allocator", S_CTX_ALLOCATOR },
                  { "slurmd", S_CTX_SLURMD } };

    context = S_CTX_REMOTE;
    step = (unsigned)strtoul (name, NULL, 0);
    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (!strcmp (names[i].name, name))
            context = names[i].context;
}

static double now (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int probe (void)
{
    int status;

    fflush (stdout);
    if (!getenv ("FAKE_PROBE"))
        return 0;
    status = system (getenv ("FAKE_PROBE"));
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128;
}

/* Pass the plugin's arguments to the tasks in the environment, as the plugin in srun does.
 * FAKE_SRUN=- disables that; any other value is put first.
 */
static void tell_as_srun (int ac, char **av)
{
    const char *words = getenv ("FAKE_SRUN") ?: "";
    char text[1 << 17];
    int n = snprintf (text, sizeof (text), "%s-", words);

    if (!strcmp (words, "-") || ac == 0)
        return;
    for (int i = 0, when = 0; i < ac && n < (int)sizeof (text); i++) {
        when |= !strncmp (av[i], "when=", 5) && av[i][5];
        if (when || (strncmp (av[i], "dl=/", 4) && strncmp (av[i], "nccl_dir=/", 10)))
            n += snprintf (text + n, sizeof (text) - (size_t)n, " %s", av[i]);
    }
    setenv ("SLURM_DL_POLICY", text, 0);
}

/* dl.so calls this.  FAKE_HUNG is a path on a file system that hangs. */
int access (const char *path, int mode)
{
    const char *hung = getenv ("FAKE_HUNG");

    while (hung && !strcmp (path, hung))
        pause ();
    return faccessat (AT_FDCWD, path, mode, 0);
}

/* Run a task as slurmstepd does.  Returns its exit status. */
static int run_task (void *plugin, int rv, int ac, char **av, const double *t)
{
    double before, after;
    int status;
    pid_t pid;

    fflush (stdout);
    if ((pid = fork ()) == 0) {
        tell_as_srun (ac, av);
        before = now (); /* do not count the fork */
        rv |= call (plugin, "slurm_spank_task_init", ac, av);
        after = now ();
        if (getenv ("FAKE_TIME"))
            fprintf (stderr, "%.1f %.1f %.1f\n", t[1] - t[0], t[2] - t[1], after - before);
        print_cpus ();
        printf ("status %d\n", rv);
        exit (probe ());
    }
    waitpid (pid, &status, 0);
    call (plugin, "slurm_spank_task_exit", ac, av);
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128;
}

/* Run as srun, sbatch, salloc or slurmd does. */
static int run_command (void *plugin, int rv, int ac, char **av)
{
    int status;

    if (context == S_CTX_LOCAL)
        rv |= call (plugin, "slurm_spank_local_user_init", ac, av);
    printf ("status %d\n", rv);
    status = probe ();
    call (plugin, "slurm_spank_exit", ac, av);
    return status;
}

int main (int argc, char **argv)
{
    double t[3] = { now () };
    void *plugin = argc > 2 ? dlopen (argv[1], RTLD_NOW) : NULL;
    const char *components = getenv ("FAKE_COMPONENTS") ?: "1";
    char **av;
    int rv = 0;
    int ac, i;

    if (!plugin) {
        fprintf (stderr, "fakespank: %s\n", dlerror ());
        return 64;
    }
    t[1] = now ();
    set_context (argv[2]);
    for (i = 3; i < argc && strcmp (argv[i], "--"); i++)
        ;
    av = argv + i + (i < argc);
    ac = argc - i - (i < argc);
    rv |= call (plugin, "slurm_spank_init", ac, av);
    for (i = 3; i < argc && strcmp (argv[i], "--"); i++)
        rv |= give_option (argv[i]);
    for (i = 0; i < atoi (components) && context != S_CTX_SLURMD; i++)
        rv |= call (plugin, "slurm_spank_init_post_opt", ac, av);
    if (context == S_CTX_REMOTE)
        rv |= call (plugin, "slurm_spank_user_init", ac, av);
    t[2] = now ();
    return context == S_CTX_REMOTE ? run_task (plugin, rv, ac, av, t)
                                   : run_command (plugin, rv, ac, av);
}
