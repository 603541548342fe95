/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as one job array. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd.h"
#include "launcher/peer.h"
#include "runtime/error.h"

enum { ARGS_MAX = 64, ASK_EVERY = 30, TEXT_MAX = 4096 };

/* A worker runs as a step, because on Slurm 22.05 only steps hear of
 * preemption.  One that was killed is started again, and told how (lost.h);
 * one whose time is up puts its task back in the queue; one whose machine is
 * excluded ends its task.
 */
static const char script[] =
    "#!/bin/sh\n"
    "unset DL_LAST_STATUS\n"
    "tries=0\n"
    "while [ $tries -lt 20 ]; do\n"
    "    srun --ntasks=1 --input=none "
    "${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK} \\\n"
    "        %s worker -- %s\n"
    "    status=$?\n"
    "    case $status in\n"
    "    0) exit 0 ;;\n"
    "    75) scontrol requeue "
    "\"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\" && sleep 60\n"
    "        exit 75 ;;\n"
    "    2 | 3 | 5 | 76) exit $status ;;\n"
    "    esac\n"
    "    export DL_LAST_STATUS=$status\n"
    "    tries=$((tries + 1))\n"
    "    sleep 2\n"
    "done\n"
    "exit $status\n";

/* ---- running a command ---- */

struct command {
    const char *argv[ARGS_MAX];
    char *owned[ARGS_MAX];
    int n, nowned;
};

static void add_arg (struct command *c, const char *option, const char *value)
{
    char *text = NULL;

    if (c->n >= ARGS_MAX - 1)
        return;
    if (!value)
        c->argv[c->n++] = option;
    else if (asprintf (&text, "%s=%s", option, value) > 0)
        c->argv[c->n++] = c->owned[c->nowned++] = text;
}

static void add_number (struct command *c, const char *option, long long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", value);
    add_arg (c, option, text);
}

static void command_free (struct command *c)
{
    for (int i = 0; i < c->nowned; i++)
        free (c->owned[i]);
}

static void read_all (int fd, char *buf, size_t size)
{
    size_t fill = 0;
    ssize_t n;

    while (fill < size - 1 && (n = read (fd, buf + fill, size - 1 - fill)) > 0)
        fill += (size_t)n;
    buf[fill] = '\0';
    while (fill > 0 && buf[fill - 1] == '\n')
        buf[--fill] = '\0';
}

static void exec_command (struct command *c, int in, int out)
{
    dup2 (in, 0);
    dup2 (out, 1);
    dup2 (out, 2);
    execvp (c->argv[0], (char *const *)c->argv);
    dprintf (2, "%s", strerror (errno));
    _exit (127);
}

/* Run the command with 'input'; its output, both streams, goes to buf.
 * Returns its exit status, -1 on failure.
 */
static int
run_command (struct command *c, const char *input, char *buf, size_t size)
{
    int in[2] = { -1, -1 };
    int out[2] = { -1, -1 };
    int status = -1;
    pid_t pid;

    if (pipe2 (in, O_CLOEXEC) < 0 || pipe2 (out, O_CLOEXEC) < 0
        || (pid = fork ()) < 0)
        return -1;
    if (pid == 0)
        exec_command (c, in[0], out[1]);
    close (in[0]);
    close (out[1]);
    /* the script fits into the pipe */
    if (*input && write (in[1], input, strlen (input)) < 0)
        kill (pid, SIGTERM);
    close (in[1]);
    read_all (out[0], buf, size);
    close (out[0]);
    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

/* ---- sbatch ---- */

static void shell_quote (char *buf, size_t size, const char *text)
{
    size_t n = 0;

    buf[n++] = '\'';
    for (; *text && n + 6 < size; text++) {
        if (*text == '\'') {
            memcpy (buf + n, "'\\''", 4);
            n += 4;
        } else
            buf[n++] = *text;
    }
    buf[n++] = '\'';
    buf[n] = '\0';
}

static char *make_script (const struct executor *x)
{
    char dl[2 * PATH_MAX];
    char dir[2 * PATH_MAX];
    char *text = NULL;

    shell_quote (dl, sizeof (dl), x->dl);
    shell_quote (dir, sizeof (dir), x->sweep->dir);
    if (asprintf (&text, script, dl, dir) < 0)
        return NULL;
    return text;
}

static void add_resources (struct command *c, const struct experiment *e)
{
    add_number (c, "--cpus-per-task", e->cpus);
    if (e->slots)
        add_number (c, "--gpus-per-node", e->slots);
    if (e->memory)
        add_arg (c, "--mem", e->memory);
    if (e->partition)
        add_arg (c, "--partition", e->partition);
    if (e->account)
        add_arg (c, "--account", e->account);
    if (e->qos)
        add_arg (c, "--qos", e->qos);
    if (e->time)
        add_arg (c, "--time", e->time);
    if (e->framework)
        add_arg (c, "--dl", e->framework);
    for (char **a = e->sbatch_args; a && *a; a++)
        add_arg (c, *a, NULL);
}

static void make_sbatch (struct command *c, const struct executor *x)
{
    const struct sweep *s = x->sweep;
    char text[PATH_MAX + 32];

    add_arg (c, "sbatch", NULL);
    add_arg (c, "--parsable", NULL);
    add_arg (c, "--requeue", NULL);
    add_arg (c, "--open-mode", "append");
    add_arg (c, "--signal", "USR2@60");
    add_arg (c, "--ntasks", "1");
    add_arg (c, "--job-name", s->exp->name);
    snprintf (text, sizeof (text), "1-%ld", x->workers);
    add_arg (c, "--array", text);
    snprintf (text, sizeof (text), "%s/workers/%%A_%%a.log", s->dir);
    add_arg (c, "--output", text);
    add_resources (c, s->exp);
    c->argv[c->n] = NULL;
}

static int start (struct executor *x, struct slurmdl_error *err)
{
    struct command c = { 0 };
    char *text = make_script (x);
    char out[TEXT_MAX];
    int status;

    if (!text)
        return errorf (err, "out of memory");
    make_sbatch (&c, x);
    status = run_command (&c, text, out, sizeof (out));
    command_free (&c);
    free (text);
    if (status != 0) {
        errno = EPROTO;
        return errorf (err,
                       "sbatch: %s%s",
                       *out ? out : "it failed without a word",
                       status == 127 ? " (without Slurm use --local)" : "");
    }
    snprintf (x->job, sizeof (x->job), "%.*s", (int)strcspn (out, ";\n"), out);
    x->asked = monotonic ();
    return 0;
}

/* ---- what the user waits for ---- */

static void describe (struct executor *x, const char *out)
{
    snprintf (x->note,
              sizeof (x->note),
              "job %s: %.*s",
              x->job,
              (int)strcspn (out, "\n"),
              out);
}

/* Only the one who watches asks Slurm, and seldom; workers never do. */
static int tick (struct executor *x)
{
    struct command c = {
        .argv = { "squeue", "--noheader", "--Format=State:20,Reason:40" },
        .n = 3
    };
    char out[TEXT_MAX];
    int status;

    if (monotonic () - x->asked < ASK_EVERY)
        return 1;
    x->asked = monotonic ();
    add_arg (&c, "--jobs", x->job);
    c.argv[c.n] = NULL;
    status = run_command (&c, "", out, sizeof (out));
    command_free (&c);
    if (status == 0 && *out)
        describe (x, out);
    if ((status == 0 && !*out) || strstr (out, "Invalid job id"))
        return 0;
    return 1;
}

static void leave (struct executor *x)
{
    printf ("job %s goes on; 'dl show' looks at it, 'dl stop' ends it\n",
            x->job);
}

static void close_slurm (struct executor *x)
{
    (void)x; /* the job is Slurm's */
}

const struct executor_ops executor_slurm = {
    "slurm", start, tick, leave, close_slurm,
};
