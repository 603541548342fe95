/* SPDX-License-Identifier: Apache-2.0 */
/* dl notebook: run Jupyter in a job. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* ---- the file of a Jupyter server ---- */

struct notebook_server {
    char node[256]; /* the job's first node */
    char token[256];
    int port;
    bool network; /* listens on the node's address, not on loopback */
};

enum { FILE_MAX = 64 << 10 };

/* Create the directory (mode 0700) in which each job creates its own directory, also
 * with mode 0700, and return its path.
 */
static int notebooks_folder (char path[PATH_MAX], struct slurmdl_error *err)
{
    char base[PATH_MAX - 32];

    if (record_base (base, sizeof (base)) < 0) {
        errno = ENOENT;
        return errorf (err, "no home folder: set HOME");
    }
    snprintf (path, PATH_MAX, "%s/slurm-dl/notebooks", base);
    return own_folder_make (path, 0700, err);
}

/* Jupyter writes jpserver-PID.json (older versions: nbserver-PID.json) once it listens.
 */
static int find_server_file (const char *dir, char *path, size_t size)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    size_t n;
    int rv = -1;

    while (d && rv < 0 && (e = readdir (d))) {
        n = strlen (e->d_name);
        if (n > 5 && !strcmp (e->d_name + n - 5, ".json")
            && (!strncmp (e->d_name, "jpserver-", 9) || !strncmp (e->d_name, "nbserver-", 9))
            && snprintf (path, size, "%s/%s", dir, e->d_name) < (int)size)
            rv = 0;
    }
    if (d)
        closedir (d);
    return rv;
}

static int read_server_node (const char *dir, struct notebook_server *s)
{
    char path[PATH_MAX];
    char *text = NULL;

    if (snprintf (path, sizeof (path), "%s/node", dir) < (int)sizeof (path))
        text = file_read_now (path, FILE_MAX, NULL, NULL, NULL);
    if (text)
        text[strcspn (text, "\n")] = '\0';
    if (!text || !word_fits (text)) {
        free (text);
        return -1;
    }
    snprintf (s->node, sizeof (s->node), "%s", text);
    free (text);
    return 0;
}

static bool is_token (const char *text)
{
    return text && *text
           && text[strspn (text,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")]
                  == '\0';
}

static int take_server_fields (const json_t *o, struct notebook_server *s)
{
    const char *token = json_string_value (json_object_get (o, "token"));
    const char *host = json_string_value (json_object_get (o, "hostname"));

    s->port = (int)json_integer_value (json_object_get (o, "port"));
    s->network = host && strcmp (host, "127.0.0.1") && strcmp (host, "localhost");
    if (!is_token (token)) {
        errno = EPERM;
        return -1;
    }
    snprintf (s->token, sizeof (s->token), "%s", token);
    if (s->network && word_fits (host))
        snprintf (s->node, sizeof (s->node), "%s", host);
    errno = EBADMSG;
    return s->port > 0 && s->port < 65536 ? 0 : -1;
}

enum server_state {
    SERVER_LISTENS,
    SERVER_ABSENT,   /* the file does not exist yet */
    SERVER_NO_TOKEN, /* the user's configuration disables the token */
    SERVER_ERROR,
};

/* Read the file of a job's server.  SERVER_NO_TOKEN and SERVER_ERROR set 'err', SERVER_ERROR also
 * errno.
 */
static enum server_state notebook_server_read (const char *folder, long job,
                                               struct notebook_server *s, struct slurmdl_error *err)
{
    char dir[PATH_MAX];
    char path[2 * PATH_MAX];
    char *text;
    json_t *o;
    int rv;

    *s = (struct notebook_server){ 0 };
    snprintf (dir, sizeof (dir), "%s/%ld", folder, job);
    if (find_server_file (dir, path, sizeof (path)) < 0 || read_server_node (dir, s) < 0)
        return SERVER_ABSENT;
    if (!(text = file_read_now (path, FILE_MAX, NULL, NULL, err)))
        return SERVER_ERROR;
    o = json_loads (text, 0, NULL);
    free (text);
    if (!o) /* the server may still be writing the file */
        return SERVER_ABSENT;
    rv = take_server_fields (o, s);
    json_decref (o);
    if (rv == 0)
        return SERVER_LISTENS;
    if (errno == EPERM) {
        errorf (err,
                "the Jupyter server of job %ld has no token: your Jupyter configuration disables "
                "it, and others could use it",
                job);
        return SERVER_NO_TOKEN;
    }
    errorf (err, "%s: not written by a Jupyter server", path);
    return SERVER_ERROR;
}

enum { IDLE = 60 /* minutes */, ASK_FIRST = 3, ASK_EVERY = 10 /* s */ };

static volatile sig_atomic_t notebook_interrupted;

/* The server creates the token and stores it only in files of mode 0600, because users
 * logged in to a machine can see the command lines of others.  Kernels use sockets in
 * the job's directory: over TCP, they would send their output to any user of the node.
 * The paths of sockets must be short, hence the link in /tmp.
 */
static const char notebook_script[] =
    "#!/bin/sh\n"
    "# Jupyter in a job; dl notebook writes this file whenever it submits it.\n"
    "umask 077\n"
    "folder=%s\n"
    "case $folder in *\\\\*) exec >>\"$folder/$SLURM_JOB_ID.log\" 2>&1 ;; esac\n"
    "dir=$folder/$SLURM_JOB_ID\n"
    "mkdir -p \"$dir\" || exit 1\n"
    "short=$(mktemp -d /tmp/dl-notebook.XXXXXX) && ln -s \"$dir\" \"$short/d\" || exit 1\n"
    "trap 'rm -rf \"$dir\" \"$short\"' EXIT\n"
    "node=${SLURMD_NODENAME:-$(hostname)}\n"
    "echo \"$node\" >\"$dir/node\"\n"
    "JUPYTER_RUNTIME_DIR=$short/d\n"
    "export JUPYTER_RUNTIME_DIR\n"
    "unset JUPYTER_TOKEN JUPYTER_PORT\n"
    "port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) %% 40000))\n"
    "%s --no-browser --ServerApp.ip=%s --ServerApp.port=$port \\\n"
    "    --KernelManager.transport=ipc \\\n"
    "    --ServerApp.shutdown_no_activity_timeout=%lld \\\n"
    "    --MappingKernelManager.cull_idle_timeout=%lld \\\n"
    "    --MappingKernelManager.cull_connected=True \\\n"
    "    --MappingKernelManager.cull_interval=30 \\\n"
    "    --TerminalManager.cull_inactive_timeout=%lld \\\n"
    "    --TerminalManager.cull_interval=30 &\n"
    "pid=$!\n"
    "trap 'kill $pid' TERM INT\n"
    "wait $pid\n";

/* ---- Slurm ---- */

static int submit_notebook (const struct command_line *line, const char *folder, const char *script,
                            long *job)
{
    struct command c = { .timeout = 300 };
    struct slurmdl_error err = { "" };

    command_add (&c, "--no-requeue", NULL);
    command_add (&c, "--job-name", "dl-notebook");
    slurm_add_output (&c, folder, "%j.log");
    for (int i = 0; i < line->nargs && c.n < COMMAND_ARGS - 4; i++)
        command_add (&c, line->args[i], NULL);
    command_add (&c, script, NULL);
    if ((*job = slurm_submit (&c, NULL, &err)) > 0)
        return EXIT_OK;
    complain ("%s", err.text);
    return EXIT_SLURM;
}

/* ---- the job script ---- */

static bool is_executable (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 && S_ISREG (st.st_mode) && access (path, X_OK) == 0;
}

static bool in_path (const char *name, char path[PATH_MAX])
{
    const char *at = getenv ("PATH");

    for (size_t n; at && *at; at += n + (at[n] == ':')) {
        n = strcspn (at, ":");
        if (*at == '/' && snprintf (path, PATH_MAX, "%.*s/%s", (int)n, at, name) < PATH_MAX
            && is_executable (path))
            return true;
    }
    return false;
}

/* Prefer JupyterLab. */
static int find_jupyter (const char *given, char path[PATH_MAX])
{
    static const char *const names[] = { "jupyter-lab", "jupyter-notebook", "jupyter-server" };

    if (given) {
        if (strchr (given, '/') ? realpath (given, path) && is_executable (path)
                                : in_path (given, path))
            return EXIT_OK;
        complain ("--jupyter: there is no program '%s'", given);
        return EXIT_NOT_FOUND;
    }
    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (in_path (names[i], path))
            return EXIT_OK;
    complain ("there is no Jupyter in PATH: pip install jupyterlab, or name "
              "jupyter-lab of another environment with --jupyter");
    return EXIT_NOT_FOUND;
}

static int write_notebook_script (const struct notebook_options *opt, const char *folder,
                                  const char *jupyter, char *path, struct slurmdl_error *err)
{
    long long idle = 60 * (opt->idle < 0 ? IDLE : opt->idle);
    char *dir = shell_word (folder);
    char *program = shell_word (jupyter);
    char *script = xasprintf (notebook_script, dir, program,
                              opt->network ? "\"$(hostname)\"" : "127.0.0.1", idle, idle, idle);
    int rv;

    snprintf (path, PATH_MAX + 16, "%s/job.sh", folder);
    free (dir);
    free (program);
    rv = publish_replace (path, script, strlen (script), err);
    free (script);
    return rv;
}

/* ---- connect to the server ---- */

static void print_server (long job, const struct notebook_server *s)
{
    const char *user = user_name ();
    char host[256] = "HOST";

    gethostname (host, sizeof (host) - 1);
    printf ("http://127.0.0.1:%d/?token=%s\n", s->port, s->token);
    puts ("in a browser on your machine, after this there:");
    if (s->network)
        printf ("  ssh -N -L %d:%s:%d %s@%s\n", s->port, s->node, s->port, user, host);
    else
        printf ("  ssh -N -L %d:127.0.0.1:%d -J %s@%s %s@%s\n", s->port, s->port, user, host, user,
                s->node);
    printf ("the token is a password; 'dl notebook stop %ld' ends the job\n", job);
}

/* Remove the directory that a killed job left behind. */
static void forget_notebook (const char *folder, const char *job)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/%s", folder, job) < (int)sizeof (path))
        remove_tree (path);
}

static int cancel_notebook (long job)
{
    struct slurmdl_error err = { "" };
    char number[32];
    char *const jobs[] = { number, NULL };

    snprintf (number, sizeof (number), "%ld", job);
    if (slurm_cancel (jobs, NULL, &err) == 0)
        return EXIT_OK;
    complain ("%s", err.text);
    return EXIT_SLURM;
}

/* The last line of the output is usually the reason. */
static int complain_notebook_ended (const char *folder, long job)
{
    char path[PATH_MAX], end[1024];
    const char *last;
    size_t n;
    int fd;

    snprintf (path, sizeof (path), "%s/%ld.log", folder, job);
    if ((fd = open (path, O_RDONLY | O_CLOEXEC)) < 0 && errno == ENOENT) {
        complain ("job %ld is not a notebook; 'dl notebook ls' lists them", job);
        return EXIT_NOT_FOUND;
    }
    n = file_tail (fd, end, sizeof (end) - 1);
    while (n > 0 && isspace ((unsigned char)end[n - 1]))
        end[--n] = '\0';
    last = memrchr (end, '\n', n);
    last = last ? last + 1 : end;
    complain ("job %ld has ended%s%s; its output: %s", job, n ? ": " : "", n ? last : "", path);
    return EXIT_FAILED;
}

static int end_job (const char *folder, long job)
{
    char number[32];
    int rv = cancel_notebook (job);

    if (rv != EXIT_OK)
        return rv;
    snprintf (number, sizeof (number), "%ld", job);
    forget_notebook (folder, number);
    printf ("job %ld is cancelled\n", job);
    return EXIT_OK;
}

static void print_notebook_state (long job, const char *state, bool own)
{
    printf ("job %ld: %s", job, state);
    if (!strncmp (state, "PENDING", 7) && own)
        printf ("; ^C cancels it");
    else if (!strncmp (state, "PENDING", 7))
        printf ("; 'dl notebook stop %ld' cancels it", job);
    putchar ('\n');
    fflush (stdout);
}

/* Wait until the server listens or the job has ended.  The file of a killed job
 * remains, but another process may use its port by then.
 */
static int attach_notebook (const char *folder, long job, bool own)
{
    struct slurmdl_error err = { "" };
    struct notebook_server s;
    char state[256] = "", told[256] = "";
    double next = own ? monotonic () + ASK_FIRST : 0;
    enum server_state server;

    while ((server = notebook_server_read (folder, job, &s, &err)) == SERVER_ABSENT) {
        bool gone = false;
        if (monotonic () >= next) {
            gone = slurm_job_text (job, state, sizeof (state)) < 0;
            next = monotonic () + ASK_EVERY;
        }
        if (notebook_interrupted)
            return end_job (folder, job) ?: EXIT_STOPPED;
        if (gone)
            return complain_notebook_ended (folder, job);
        if (strcmp (state, told))
            print_notebook_state (job, state, own);
        memcpy (told, state, sizeof (told));
        poll (NULL, 0, 500);
    }
    if (server == SERVER_NO_TOKEN) {
        complain ("%s: the job is cancelled", err.text);
        cancel_notebook (job);
        return EXIT_FAILED;
    }
    if (server == SERVER_ERROR)
        return fail (&err);
    if (slurm_job_text (job, state, sizeof (state)) < 0)
        return complain_notebook_ended (folder, job);
    print_server (job, &s);
    return EXIT_OK;
}

static void on_notebook_interrupt (int sig)
{
    notebook_interrupted = sig;
}

static int start_notebook (const struct command_line *line, const char *folder)
{
    const struct notebook_options *opt = line->options;
    struct slurmdl_error err = { "" };
    char jupyter[PATH_MAX], script[PATH_MAX + 16], own[PATH_MAX + 32];
    long job;
    int rv = find_jupyter (opt->jupyter, jupyter);

    if (rv != EXIT_OK)
        return rv;
    if (write_notebook_script (opt, folder, jupyter, script, &err) < 0)
        return fail (&err);
    if ((rv = submit_notebook (line, folder, script, &job)) != EXIT_OK)
        return rv;
    printf ("job %ld; ^C cancels it; it continues if this command ends otherwise; 'dl notebook "
            "attach %ld' returns to it\n",
            job, job);
    fflush (stdout);
    snprintf (own, sizeof (own), "%s/%ld", folder, job);
    mkdir (own, 0700); /* lets other commands find the job while it is pending */
    if (signal (SIGINT, on_notebook_interrupt) == SIG_IGN)
        signal (SIGINT, SIG_IGN);
    return attach_notebook (folder, job, true);
}

/* ---- all notebooks ---- */

static int by_job_number (const struct dirent **a, const struct dirent **b)
{
    long x = atol ((*a)->d_name);
    long y = atol ((*b)->d_name);

    return x < y ? -1 : x > y;
}

static int is_job_folder (const struct dirent *e)
{
    return e->d_name[strspn (e->d_name, "0123456789")] == '\0';
}

static void print_no_notebooks (void)
{
    complain ("no notebook is running; 'dl notebook' starts one");
}

static int list_notebooks (const struct command_line *line, const char *folder)
{
    struct dirent **jobs = NULL;
    struct slurmdl_error err = { "" };
    struct notebook_server s;
    char state[256];
    int n = scandir (folder, &jobs, is_job_folder, by_job_number);
    bool any = false;

    (void)line;
    for (int i = 0; i < n; i++) {
        long job = atol (jobs[i]->d_name);
        if (slurm_job_text (job, state, sizeof (state)) < 0)
            forget_notebook (folder, jobs[i]->d_name);
        else {
            any = true;
            printf ("%ld %s %s\n", job, state,
                    notebook_server_read (folder, job, &s, &err) == SERVER_LISTENS ? s.node : "-");
        }
        free (jobs[i]);
    }
    free (jobs);
    if (!any)
        print_no_notebooks ();
    return EXIT_OK;
}

/* Return the job that the user named, or else the newest; 0 after printing an error. */
static long chosen_notebook (const struct command_line *line, const char *folder)
{
    const char *given = line->nargs > 1 ? line->args[1] : NULL;
    struct dirent **jobs = NULL;
    long job = 0;
    int n;

    if (given) {
        if (*given && strlen (given) < 12 && given[strspn (given, "0123456789")] == '\0')
            job = atol (given);
        if (job <= 0)
            complain ("'%s' is not a job number", given);
        return job > 0 ? job : 0;
    }
    n = scandir (folder, &jobs, is_job_folder, by_job_number);
    for (int i = 0; i < n; i++) {
        job = atol (jobs[i]->d_name);
        free (jobs[i]);
    }
    free (jobs);
    if (job == 0)
        print_no_notebooks ();
    return job;
}

static int reattach_notebook (const struct command_line *line, const char *folder)
{
    long job = chosen_notebook (line, folder);

    return job ? attach_notebook (folder, job, false) : EXIT_NOT_FOUND;
}

static int stop_notebook (const struct command_line *line, const char *folder)
{
    long job = chosen_notebook (line, folder);

    return job ? end_job (folder, job) : EXIT_NOT_FOUND;
}

static const struct notebook_command {
    const char *name;
    int (*run) (const struct command_line *line, const char *folder);
} notebook_commands[] = {
    { "ls", list_notebooks },
    { "attach", reattach_notebook },
    { "stop", stop_notebook },
    { 0 },
};

void notebook_words (void)
{
    for (const struct notebook_command *c = notebook_commands; c->name; c++)
        puts (c->name);
}

int cmd_notebook (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    char folder[PATH_MAX];

    if (notebooks_folder (folder, &err) < 0)
        return fail (&err);
    if (line->nargs == 0 || *line->args[0] == '-')
        return start_notebook (line, folder);
    for (const struct notebook_command *c = notebook_commands; c->name; c++)
        if (!strcmp (c->name, line->args[0]) && line->nargs <= 2)
            return c->run (line, folder);
    complain ("notebook: '%s' is not one of ls, attach [JOB] and stop [JOB]; options for sbatch "
              "follow --",
              line->args[0]);
    return EXIT_USAGE;
}
