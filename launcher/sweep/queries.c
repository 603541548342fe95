/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the state of an experiment and its trials. */
#include "launcher/sweep/queries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/hparams.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/storage/inside.h"

/* ---- the states of an experiment ---- */

#define IN_STATE(name) (1u << SWEEP_##name)
#define ENDED_STATES                                                                               \
    (IN_STATE (STOPPED) | IN_STATE (KILLED) | IN_STATE (COMPLETED) | IN_STATE (FAILED)             \
     | IN_STATE (PARTIAL))

/* clang-format off */
static const struct transition {
    enum event_op op;
    unsigned from;
    enum sweep_state to;
} transitions[] = {
    { EVENT_CREATE,   IN_STATE (NEW),                                   SWEEP_RUNNING },
    { EVENT_PAUSE,    IN_STATE (RUNNING),                               SWEEP_PAUSED },
    { EVENT_RESUME,   IN_STATE (PAUSED),                                SWEEP_RUNNING },
    { EVENT_STOP,     IN_STATE (RUNNING) | IN_STATE (PAUSED),                 SWEEP_STOPPED },
    { EVENT_KILL,     IN_STATE (RUNNING) | IN_STATE (PAUSED) | IN_STATE (STOPPED),  SWEEP_KILLED },
    { EVENT_END,      IN_STATE (RUNNING),                               SWEEP_COMPLETED },
    { EVENT_CONTINUE, ENDED_STATES,                                      SWEEP_RUNNING },
    { EVENT_EXPIRE,   IN_STATE (RUNNING),                               SWEEP_RUNNING },
};
/* clang-format on */

static const struct transition *find_transition (enum event_op op)
{
    for (size_t i = 0; i < sizeof (transitions) / sizeof (*transitions); i++)
        if (transitions[i].op == op)
            return &transitions[i];
    return NULL;
}

bool sweep_allows (enum sweep_state state, enum event_op op)
{
    const struct transition *t = find_transition (op);

    if (op == EVENT_ARCHIVE)
        return ENDED_STATES >> state & 1;
    return !t || (t->from >> state & 1);
}

enum sweep_state sweep_next_state (enum sweep_state state, enum event_op op)
{
    const struct transition *t = find_transition (op);

    return t && (t->from >> state & 1) ? t->to : state;
}

bool sweep_has_ended (const struct sweep *s)
{
    return ENDED_STATES >> s->state & 1;
}

const char *sweep_state_name (enum sweep_state state)
{
    static const char *const names[] = {
        "new", "running", "paused", "stopped", "killed", "completed", "failed", "partial",
    };
    return names[state];
}

/* ---- the experiment and its trials ---- */

bool sweep_better (const struct sweep *s, double a, double b)
{
    if (!isfinite (a) || !isfinite (b))
        return isfinite (a) && !isfinite (b);
    return s->exp->search->config.smaller_is_better ? a < b : a > b;
}

struct sweep_trial *sweep_trial (const struct sweep *s, long number)
{
    return number >= 1 && number <= s->ntrials ? &s->trials[number - 1] : NULL;
}

long trial_number (const struct sweep *s, const struct sweep_trial *t)
{
    return t - s->trials + 1;
}

long trial_point (const struct sweep *s, long number)
{
    return (number - 1) / s->exp->search->config.repeats + 1;
}

long trial_repeat (const struct sweep *s, long number)
{
    return (number - 1) % s->exp->search->config.repeats;
}

long trial_attempts (const struct sweep *s, const struct sweep_trial *t)
{
    char dir[PATH_MAX];
    struct stat st;

    if (t->state != TRIAL_OPEN || sweep_has_ended (s))
        return t->over;
    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial_number (s, t), t->over + 1);
    return t->over + (lstat (dir, &st) == 0);
}

const struct conditions *trial_conditions (const struct sweep *s, long number)
{
    struct sweep_trial *t = sweep_trial (s, number);
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/trials/%04ld/claim.%ld", s->dir, number, t->over + 1);
    if (t->state == TRIAL_OPEN && s->state == SWEEP_RUNNING
        && t->conditions.last != CONDITION_RUNNING && lstat (path, &st) == 0)
        conditions_apply (&t->conditions, &(struct life_event){ .kind = LIFE_STARTED,
                                                                .time = (double)st.st_mtime,
                                                                .reason = REASON_ATTEMPT_STARTED });
    return &t->conditions;
}

const struct conditions *job_conditions (const struct sweep *s)
{
    return s->ntrials > 0 ? trial_conditions (s, 1) : &s->conditions;
}

bool sweep_wants_reports (const struct sweep *s)
{
    return experiment_needs (s->exp) & HAS_REPORTS;
}

bool sweep_has_lost_log (const struct sweep *s)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/trials/0001", s->dir);
    return s->state == SWEEP_NEW && lstat (path, &st) == 0;
}

bool sweep_is_late (const struct sweep *s)
{
    return s->exp->search->max_hours > 0
           && event_clock () > s->created + s->exp->search->max_hours * 3600;
}

bool sweep_is_goal (const struct sweep *s, double value)
{
    return !isnan (s->exp->metric->goal) && isfinite (value)
           && !sweep_better (s, s->exp->metric->goal, value);
}

long sweep_failed_trials (const struct sweep *s)
{
    long n = 0;

    for (long i = 0; i < s->ntrials; i++)
        n += s->trials[i].state == TRIAL_FAILED;
    return n;
}

long sweep_max_failed (const struct sweep *s)
{
    return s->exp->failures->max_failed < 0 ? s->ntrials / 2 : (long)s->exp->failures->max_failed;
}

size_t sweep_metrics (const struct sweep *s)
{
    return s->exp->metric->n > 1 ? s->exp->metric->n : 1;
}

const char *sweep_metric (const struct sweep *s, size_t i)
{
    return s->exp->metric->n > 1 ? s->exp->metric->names[i] : s->exp->metric->name;
}

char *trial_healing (const struct sweep *s, long trial, long attempt)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%.3900s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    return attempt_healing (path);
}

char *attempt_healing (const char *dir)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%.4000s/" HEALING_NAME, dir);
    return file_read_now (path, HEALING_MOST, NULL, NULL, NULL);
}

void healing_each (char *notes, long attempt, healing_f f, void *arg)
{
    char *save = NULL, *end;

    for (char *line = notes ? strtok_r (notes, "\n", &save) : NULL; line;
         line = strtok_r (NULL, "\n", &save)) {
        double when = strtod (line, &end);
        f (attempt, when, end + (*end == ' '), arg);
    }
    free (notes);
}

void healing_add_json (long attempt, double when, const char *text, void *array)
{
    json_array_append_new (array, json_pack ("{s:I, s:f, s:s}", "attempt", (json_int_t)attempt,
                                             "time", when, "text", text));
}

struct host *sweep_host (const struct sweep *s, const char *name)
{
    for (size_t i = 0; name && i < s->nhosts; i++)
        if (!strcmp (s->hosts[i].name, name))
            return &s->hosts[i];
    return NULL;
}

json_t *trial_hparam (const struct sweep *s, const struct sweep_trial *t, const struct hparam *h)
{
    return t->hparams ? json_incref ((json_t *)hparams_value (t->hparams, h->path))
           : t->x     ? hparam_json (s->exp, h, t->x)
                      : NULL;
}

/* Keep hyperparameters that cannot be computed again from a point. */
void trial_forget_hparams (struct sweep_trial *t)
{
    if (t->x) {
        json_decref (t->hparams);
        t->hparams = NULL;
    }
}

const json_t *trial_hparams (const struct sweep *s, const struct sweep_trial *t)
{
    struct sweep_trial *keep = &s->trials[t - s->trials];

    if (!keep->hparams && keep->x)
        keep->hparams = hparams_json (s->exp, keep->x);
    return keep->hparams;
}

const char *sweep_folder_name (const struct sweep *s)
{
    const char *slash = strrchr (s->dir, '/');

    return slash && slash[1] ? slash + 1 : s->dir;
}

const char *trial_state_name (const struct sweep *s, const struct sweep_trial *t)
{
    switch (t->state) {
    case TRIAL_OPEN:
        return sweep_has_ended (s) ? "stopped early" : "open";
    case TRIAL_FAILED:
        return "failed";
    case TRIAL_REJECTED:
        return "rejected";
    case TRIAL_PAUSED:
        break;
    }
    if (t->stopped)
        return "stopped early";
    if (t->length >= s->exp->search->config.max_length)
        return "completed";
    return sweep_has_ended (s) ? "stopped early" : "paused";
}

long trial_milestone (const struct sweep_trial *t, int64_t length)
{
    for (size_t i = t->nmilestones; i > 0; i--)
        if (t->milestones[i - 1].length == length)
            return t->milestones[i - 1].attempt;
    return 0;
}

struct milestone trial_last (const struct sweep_trial *t)
{
    static const struct milestone none = { 0, 0, NAN, NULL };

    return t->nmilestones ? t->milestones[t->nmilestones - 1] : none;
}

const double *trial_values (const struct sweep_trial *t)
{
    return trial_last (t).values;
}

bool attempt_is_missing (const struct sweep *s, long n, long attempt, char *dir, size_t size)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    struct stat st;

    snprintf (dir, size, "%s/trials/%04ld/a.%ld", s->dir, n, attempt);
    for (size_t i = 0; i < t->nmilestones; i++)
        if (t->milestones[i].attempt == attempt)
            return !t->milestones[i].reported && lstat (dir, &st) < 0 && errno == ENOENT;
    return false;
}

bool trial_name_is_ours (const char *name)
{
    return *name == '.' || !strncmp (name, "a.", 2) || !strncmp (name, "claim.", 6)
           || !strncmp (name, "asked.", 6);
}

const char *sweep_code_below (const struct sweep *s)
{
    size_t n = s->root ? strlen (s->root) : 0;

    return n && s->exp->file_dir && !strncmp (s->exp->file_dir, s->root, n) ? s->exp->file_dir + n
                                                                            : "";
}

int attempt_open_lines (const struct sweep *s, const char *dir)
{
    const char *file = s->exp->metric->file;
    char *path = xasprintf ("%s/%s", dir, file ? file : "log");
    int fd = inside_open_any (path, O_RDONLY, 0, NULL);

    free (path);
    if (fd >= 0 || !file)
        return fd;
    path = xasprintf ("%s/" WORK_NAME "%s/%s", dir, sweep_code_below (s), file);
    fd = inside_open_any (path, O_RDONLY, 0, NULL);
    free (path);
    return fd;
}

/* ---- what a trial does now ---- */

const char *const trial_phases[TRIAL_PHASES] = {
    "completed", "stopped early", "running", "paused", "waiting", "failed", "rejected",
};

enum trial_phase trial_phase_of (const struct sweep *s, const struct sweep_trial *t)
{
    switch (t->state) {
    case TRIAL_FAILED:
        return PHASE_FAILED;
    case TRIAL_REJECTED:
        return PHASE_REJECTED;
    case TRIAL_OPEN:
        if (sweep_has_ended (s))
            return PHASE_STOPPED;
        return s->state == SWEEP_RUNNING && t->owner ? PHASE_RUNNING : PHASE_WAITING;
    case TRIAL_PAUSED:
        break;
    }
    if (!t->stopped && t->length >= s->exp->search->config.max_length)
        return PHASE_COMPLETED;
    return t->stopped || sweep_has_ended (s) ? PHASE_STOPPED : PHASE_PAUSED;
}
