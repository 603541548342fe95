/* SPDX-License-Identifier: Apache-2.0 */
/* Classify failed attempts: whether to retry, where, and why. */
#include "launcher/slurm/slurm.h"
#include "launcher/worker/worker.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/resources.h"
#include "launcher/node/node.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/missing_metric.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/subprocess.h"
#include "launcher/trainer/trainer.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

/* ---- the end of its log ---- */

enum { TAIL = 16384 };

static size_t read_log_tail (const char *dir, char buf[TAIL + 1])
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/log", dir) >= (int)sizeof (path))
        return 0;
    return file_tail (inside_open_any (path, O_RDONLY, 0, NULL), buf, TAIL);
}

static bool ends_line (char c)
{
    return c == '\n' || c == '\r' || c == '\0';
}

/* Whether heal.c wrote the line, which it then also wrote to the attempt's folder. */
static bool is_healing_line (const char *notes, const char *line)
{
    size_t n = strlen (line);

    if (n <= 4 || strncmp (line, "dl: ", 4))
        return false;
    line += 4;
    n -= 4;
    for (const char *c = notes; c && (c = strstr (c, line)); c += n)
        if (c > notes && c[-1] == ' ' && (c[n] == '\n' || c[n] == '\0'))
            return true;
    return false;
}

/* Whether Slurm printed the line, or dl did: in an attempt that resumes from an older one
 * (trainer.h), about its ranks (the plugin), or while it heals.
 */
static bool is_note_line (const char *notes, const char *line)
{
    return slurm_printed (line) || !strncmp (line, "dl: this attempt ", 17)
           || !strncmp (line, "dl: rank ", 9) || !strncmp (line, "dl: this site's default ", 24)
           || is_healing_line (notes, line);
}

/* Returns NULL if there is nothing. */
static char *read_healing (const char *dir)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/" HEALING_NAME, dir) >= (int)sizeof (path))
        return NULL;
    return file_read_now (path, HEALING_MOST, NULL, NULL, NULL);
}

/* Cut off the last line; NULL: none is left. */
static char *cut_last_line (char *buf, size_t *n)
{
    size_t start;

    while (*n > 0 && (ends_line (buf[*n - 1]) || buf[*n - 1] == ' '))
        (*n)--;
    if (*n == 0)
        return NULL;
    buf[*n] = '\0';
    for (start = *n; start > 0 && !ends_line (buf[start - 1]);)
        start--;
    *n = start;
    return buf + start + strspn (buf + start, " \t");
}

enum { LAST_LINE = 200 };

/* Copy the last line of the log in the attempt's folder 'dir' that is neither blank nor Slurm's
 * message about the end of its step nor a note of dl.  The line may contain any bytes.  If srun
 * could not start the step, its first complaint is the reason, whatever was printed before.  So is
 * an error of srun if there are only notes beside it.
 *
 * Returns 0, or -1 if there is none.
 */
static int attempt_last_line (const char *dir, char line[LAST_LINE])
{
    char buf[TAIL + 1];
    size_t n = read_log_tail (dir, buf);
    const char *last = NULL, *complaint = NULL;
    char *notes = read_healing (dir), *text;
    bool refused = false;

    while (!last && (text = cut_last_line (buf, &n)))
        if (slurm_complained (text)) {
            refused |= slurm_refused_step (text);
            complaint = text;
        } else if (*text && !is_note_line (notes, text))
            last = text;
    free (notes);
    if (refused || !last)
        last = complaint;
    if (!last)
        return -1;
    snprintf (line, LAST_LINE, "%s", last);
    return 0;
}

/* ---- the last words of the rank that failed first ---- */

/* Read what the log had around byte 'at', which is byte '*before' of 'buf'. */
static size_t read_log_around (const char *dir, long long at, char buf[2 * TAIL + 1],
                               size_t *before)
{
    char path[PATH_MAX];
    ssize_t n = -1;
    int fd;

    *before = at > TAIL ? TAIL : (size_t)at;
    if (snprintf (path, sizeof (path), "%s/log", dir) < (int)sizeof (path)
        && (fd = inside_open_any (path, O_RDONLY, 0, NULL)) >= 0) {
        n = pread (fd, buf, *before + TAIL, (off_t)(at - (long long)*before));
        close (fd);
    }
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Whether the line only says that another process is gone, or repeats what another line says. */
static bool is_consequence (const char *line)
{
    static const char *const words[] = { "Connection closed by peer",
                                         "Connection reset by peer",
                                         "Broken pipe",
                                         "remote process exited",
                                         "Socket closed",
                                         "ChildFailedError" };

    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++)
        if (strstr (line, words[i]))
            return true;
    return false;
}

/* Skip the prefix "[rank1]: " of PyTorch.  Returns NULL if it is that of another rank. */
static const char *line_of_rank (const char *line, long rank)
{
    char prefix[40];
    size_t n = (size_t)snprintf (prefix, sizeof (prefix), "[rank%ld]: ", rank);

    if (!strncmp (line, prefix, n))
        return line + n;
    return strncmp (line, "[rank", 5) ? line : NULL;
}

/* The lines that may tell why a rank failed. */
struct rank_words {
    const char *raised; /* the exception with which Python ended */
    const char *gone;   /* only says that another process is gone */
    const char *said;   /* the last one */
    bool in_trace;
    bool is_late; /* the rank had already failed when the log got this */
};

/* After a Python traceback, whose frames are indented, the line has the exception.  Slurm may bring
 * that of the rank late, and then the first one is most likely the rank's.
 */
static void weigh_line (struct rank_words *w, const char *line, const char *notes)
{
    const char **kind;

    if (!strncmp (line, "Traceback (most recent call last):", 34)) {
        w->in_trace = true;
        return;
    }
    if (!*line || *line == ' ' || *line == '\t' || is_note_line (notes, line))
        return;
    kind = is_consequence (line) ? &w->gone : w->in_trace ? &w->raised : &w->said;
    if (!w->is_late || (w->in_trace && !*kind))
        *kind = line;
    w->in_trace = false;
}

/* Find the line that most likely tells why the rank failed: the last exception if Python ended
 * because of one (status 1), or else the last line.  Returns 0, or -1 if there is none.
 */
static int words_of_rank (const char *dir, const struct first_failure *first, int status,
                          char text[LAST_LINE])
{
    struct rank_words w = { .raised = NULL };
    char buf[2 * TAIL + 1];
    size_t before, n = read_log_around (dir, first->printed, buf, &before);
    char *notes = read_healing (dir);
    const char *best;

    for (char *line = buf, *next; line < buf + n; line = next + 1) {
        const char *own;
        for (next = line; !ends_line (*next);)
            next++;
        *next = '\0';
        w.is_late = line >= buf + before;
        w.in_trace &= status == 1;
        if ((own = line_of_rank (line, first->rank)))
            weigh_line (&w, own, notes);
    }
    free (notes);
    best = w.raised ? w.raised : w.gone ? w.gone : w.said;
    if (!best)
        return -1;
    snprintf (text, LAST_LINE, "%s", best);
    return 0;
}

/* Whether one of the texts, NULL-ended, is in the last 16 KiB of the log. */
static bool last_lines_have (const char *dir, const char *const *texts)
{
    char buf[TAIL + 1];
    size_t n = read_log_tail (dir, buf);

    for (; *texts; texts++)
        if (memmem (buf, n, *texts, strlen (*texts)))
            return true;
    return false;
}

/* ---- how it ended ---- */

/* A shell reports that its command was killed as 128 + signal. */
enum { SHELL = 128 };

/* clang-format off */
const struct end_row end_table[] = {
    { SLURMDL_EXIT_AGAIN, RETRY_FREE,    "the program requests another attempt" },
    { SLURMDL_EXIT_NEVER, RETRY_NEVER,   "the program reports that a retry cannot help" },
    { EXIT_BAD_NODE,      RETRY_FREE,    "this machine failed its check", true },
    { 126,                RETRY_COUNTED, "the command cannot be run" },
    { 127,                RETRY_COUNTED, "there is no such command" },
    { SHELL + SIGUSR1,    RETRY_FREE,    "the program requests another attempt" },
    { -1 },
};
/* clang-format on */

/* Whether a retry would not log the metric either.  It may, if the files of ranks on other nodes
 * became visible late, or if the attempt resumed and found nothing left to train.
 */
static bool failure_is_final (const struct trial_attempt *a, bool went_on)
{
    return (!experiment_has_ranks (a->sweep->exp)
            || sweep_trial (a->sweep, a->trial)->tries.failed > 0)
           && !went_on && metric_is_missing (a);
}

static void why_no_metric (const struct trial_attempt *a, struct failure_class *v)
{
    const struct sweep *sweep = a->sweep;
    char files[PATH_MAX];
    bool went_on = a->number > 1 && attempt_with_files (a, NULL, files, sizeof (files)) == 0;
    size_t n;

    v->cause = REASON_METRIC_MISSING;
    v->last = failure_is_final (a, went_on);
    if (sweep_metrics (sweep) == 1)
        snprintf (v->why, sizeof (v->why), "ended without logging the metric \"%s\"",
                  sweep_metric (sweep, 0));
    else
        snprintf (v->why, sizeof (v->why),
                  "ended without logging all %zu metrics (\"%s\", \"%s\"%s) at one step",
                  sweep_metrics (sweep), sweep_metric (sweep, 0), sweep_metric (sweep, 1),
                  sweep_metrics (sweep) > 2 ? ", ..." : "");
    n = strlen (v->why);
    if (went_on && !attempt_has_logged (a->dir))
        n += (size_t)snprintf (v->why + n, sizeof (v->why) - n,
                               "; it continued from the files in %.32s, and trained nothing",
                               strrchr (files, '/') + 1);
    if (n < sizeof (v->why))
        missing_metric_text (a, v->why + n, sizeof (v->why) - n);
}

static void why_it_ended (const struct trial_attempt *a, int status, struct failure_class *v)
{
    if (WIFSIGNALED (status))
        snprintf (v->why, sizeof (v->why), "killed by signal %d (%s)", WTERMSIG (status),
                  strsignal (WTERMSIG (status)));
    else if (WEXITSTATUS (status) > SHELL && WEXITSTATUS (status) <= SHELL + SIGRTMAX)
        snprintf (v->why, sizeof (v->why), "exit status %d (%s)", WEXITSTATUS (status),
                  strsignal (WEXITSTATUS (status) - SHELL));
    else if (WEXITSTATUS (status))
        snprintf (v->why, sizeof (v->why), "exit status %d", WEXITSTATUS (status));
    else
        why_no_metric (a, v);
}

static void look_up_status (int status, struct failure_class *v)
{
    const struct end_row *row = end_table;
    size_t n = strlen (v->why);

    while (row->status >= 0 && row->status != shell_status (status))
        row++;
    if (row->status < 0)
        return;
    v->free = row->retry == RETRY_FREE;
    v->last = row->retry == RETRY_NEVER;
    v->exclude |= row->exclude;
    snprintf (v->why + n, sizeof (v->why) - n, ": %s", row->why);
}

/* ---- what the log says ---- */

static void apply_log_policy (const struct log_policy *policy, const char *line,
                              struct failure_class *v)
{
    char was[sizeof (v->why)];

    v->exclude |= policy->action == POLICY_EXCLUDE_NODE;
    v->last |= policy->action == POLICY_CANCEL_RETRIES;
    memcpy (was, v->why, sizeof (was));
    snprintf (v->why, sizeof (v->why), "%s%.64s: %s; %s",
              policy->action == POLICY_LABEL ? "" : "policy ", policy->name, line, was);
}

/* Without a matching policy, the last line is the most likely reason. */
static void add_last_line (const struct trial_attempt *a, const struct first_failure *first,
                           int status, struct failure_class *v)
{
    char line[LAST_LINE];
    size_t n = strlen (v->why);

    if ((first && first->rank >= 0 && words_of_rank (a->dir, first, status, line) == 0)
        || attempt_last_line (a->dir, line) == 0)
        snprintf (v->why + n, sizeof (v->why) - n, ": %s", line);
}

/* Returns how many policies found a line. */
static int search_log_policies (const struct trial_attempt *a, struct failure_class *v)
{
    const struct experiment *e = a->sweep->exp;
    char (*found)[POLICY_LINE] = xcalloc (e->failures->npolicies + 1, sizeof (*found));
    char path[PATH_MAX + 8];
    int hits;

    snprintf (path, sizeof (path), "%s/log", a->dir);
    hits = policies_search (e->failures->policies, e->failures->npolicies, path, found);
    if (hits > 0)
        for (size_t i = 0; i < e->failures->npolicies; i++)
            if (*found[i])
                apply_log_policy (&e->failures->policies[i], found[i], v);
    free (found);
    return hits;
}

/* ---- what a check before the start says ---- */

enum { NODES_MAX = 1 << 16 };

char *failure_bad_nodes (const char *dir)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/%s", dir, GATHER_NOTES) >= (int)sizeof (path)
        || access (path, F_OK) < 0)
        return NULL;
    return file_read (path, NODES_MAX, NULL, NULL);
}

/* Read the note of the check: the exit status does not tell which nodes are bad, because ranks on
 * bad nodes end those on good ones.
 */
static bool failed_its_check (const struct trial_attempt *a, struct failure_class *v)
{
    char *nodes = failure_bad_nodes (a->dir);

    if (!nodes)
        return false;
    for (char *c = nodes; *c; c++)
        if (*c == '\n')
            *c = c[1] ? ',' : '\0';
    v->free = true;
    snprintf (v->why, sizeof (v->why), "not started: dl check found bad nodes: %.200s", nodes);
    policy_text (v->why);
    free (nodes);
    return true;
}

/* ---- memory ---- */

/* Ranks in a step of their own are not in the worker's cgroup; Slurm reports their OOM kill in the
 * output.
 */
static const char *const of_slurm[] = { "oom-kill event", "oom_kill event", ": Out Of Memory",
                                        NULL };

static const char *const of_gpu[] = {
    "CUDA out of memory",       "cuda.OutOfMemoryError",
    "torch.OutOfMemoryError",   "HIP out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation",
    "RESOURCE_EXHAUSTED",       NULL,
};

static enum oom which_oom (const struct trial_attempt *a, int status, enum oom_kill killed)
{
    if (status == 0)
        return OOM_NONE;
    if (killed == KILLED_OWN
        || (killed == KILLED_SOMETHING && shell_status (status) == SHELL + SIGKILL)
        || (experiment_has_ranks (a->sweep->exp) && last_lines_have (a->dir, of_slurm)))
        return OOM_HOST;
    return WIFEXITED (status) && last_lines_have (a->dir, of_gpu) ? OOM_GPU : OOM_NONE;
}

void failure_classify (const struct trial_attempt *a, int status, enum oom_kill killed,
                       const struct first_failure *first, struct failure_class *v)
{
    *v = (struct failure_class){ .error = disk_error (a->dir) };
    if (v->error) {
        v->free = true;
        snprintf (v->why, sizeof (v->why), "%s", strerror (v->error));
        return;
    }
    if (failed_its_check (a, v))
        return;
    v->oom = which_oom (a, status, killed);
    if (v->oom == OOM_HOST)
        snprintf (v->why, sizeof (v->why), "out of memory (killed by the kernel)");
    else {
        why_it_ended (a, status, v);
        look_up_status (status, v);
    }
    if (search_log_policies (a, v) <= 0 && v->oom != OOM_HOST && status != 0)
        add_last_line (a, first, shell_status (status), v);
    policy_text (v->why); /* snprintf() may have cut it in the middle of a character */
}
