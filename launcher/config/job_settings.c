/* SPDX-License-Identifier: Apache-2.0 */
/* The group "job" of an experiment file: policies. */
#include "launcher/config/job_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/option_origin.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

const struct exit_range exit_ranges[] = { { 1, 127, false }, { 128, 255, true }, { 0, 0, false } };

/* ---- words ---- */

static const char *const restart_words[] = { "on_failure", "never", "always", "exit_code", NULL };

/* The index of a word; 'otherwise' if there is none, or after a problem. */
static int word_of (const char *what, const char *word, const char *const *words, int otherwise,
                    struct origin at, struct problems *p)
{
    const char *meant;

    if (!word)
        return otherwise;
    for (int i = 0; words[i]; i++)
        if (!strcmp (words[i], word))
            return i;
    meant = nearest_word (word, words);
    problem_at (p, at, "'%s' is \"%s\"%s%s%s", what, word,
                DID_YOU_MEAN (meant, "'", "'", "; dl-experiment(5) lists the words"));
    return otherwise;
}

/* ---- exit codes ---- */

/* "1-127: fail", "143: restart" */
static bool read_range (const char *text, struct exit_range *r)
{
    char word[16];
    int n = 0;

    if (sscanf (text, " %d - %d : %15[a-z] %n", &r->first, &r->last, word, &n) != 3) {
        if (sscanf (text, " %d : %15[a-z] %n", &r->first, word, &n) != 2)
            return false;
        r->last = r->first;
    }
    r->again = !strcmp (word, "restart");
    return !text[n] && (r->again || !strcmp (word, "fail")) && r->first >= 1 && r->last >= r->first
           && r->last <= 255;
}

static struct exit_range *read_ranges (const char *what, char *const *texts,
                                       enum restart_policy restart, struct origin at,
                                       struct problems *p)
{
    struct exit_range *list;
    size_t n = 0;

    if (!texts)
        return NULL;
    if (restart != RESTART_EXIT_CODE)
        problem_at (p, at, "'%s' is read only where restart_policy = \"exit_code\"", what);
    while (texts[n])
        n++;
    list = xcalloc (n + 1, sizeof (*list));
    for (size_t i = 0; i < n; i++)
        if (!read_range (texts[i], &list[i]))
            problem_at (p, at,
                        "'%s': \"%s\" must be as \"1-127: fail\" or \"143: restart\", of statuses "
                        "from 1 to 255",
                        what, texts[i]);
    return list;
}

/* ---- the group ---- */

static void read_deadline (struct job_settings *j, config_t *cf, struct problems *p)
{
    const char *text = j->deadline_text;

    if (!text)
        return;
    j->deadline = slurm_seconds (text);
    if (text[strspn (text, "0123456789:-")] || j->deadline <= 0)
        problem_at (p, origin_of_key (cf, "job.active_deadline"),
                    "'job.active_deadline' is \"%s\", but must be as \"12:00:00\" or \"30\" "
                    "(minutes)",
                    text);
}

/* What a job need not say, for it has one trial, and perhaps no metric. */
static void set_defaults (struct experiment *e, config_t *cf)
{
    if (!config_lookup (cf, "searcher.name")) {
        free (e->searcher_name);
        e->searcher_name = xstrdup ("single");
    }
    if (!e->metrics && !config_lookup (cf, "searcher.metric"))
        strings_add (&e->metrics, "loss");
    if (e->job.backoff >= 0)
        e->max_restarts = e->job.backoff;
}

void job_settings_read (struct experiment *e, config_t *cf, struct problems *p)
{
    struct job_settings *j = &e->job;

    if (!(j->is_given = config_lookup (cf, "job")))
        return;
    j->restart = (enum restart_policy)word_of ("job.restart_policy", j->restart_policy,
                                               restart_words, RESTART_ON_FAILURE,
                                               origin_of_key (cf, "job.restart_policy"), p);
    j->ranges = read_ranges ("job.exit_codes", j->exit_codes, j->restart,
                             origin_of_key (cf, "job.exit_codes"), p);
    read_deadline (j, cf, p);
    set_defaults (e, cf);
}

void job_settings_free (struct job_settings *j)
{
    free (j->ranges);
}

void job_settings_check (const struct experiment *e, config_t *cf, struct problems *p)
{
    const struct job_settings *j = &e->job;

    if (!j->is_given)
        return;
    if (e->searcher_name && strcmp (e->searcher_name, "single"))
        problem_at (p, origin_of_key (cf, "searcher.name"),
                    "a job is one trial: 'searcher.name' is \"single\", or the group 'job' is left "
                    "out");
    if (j->restart == RESTART_ALWAYS)
        problem_at (p, origin_of_key (cf, "job.restart_policy"),
                    "the job would never end: 'job.restart_policy' is \"always\", and it has no "
                    "other role");
    if (j->backoff > 0 && j->restart == RESTART_NEVER)
        problem_at (p, origin_of_key (cf, "job.backoff_limit"),
                    "'job.backoff_limit' is %lld, but nothing begins again ('restart_policy' is "
                    "\"never\")",
                    (long long)j->backoff);
    if (j->backoff >= 0 && config_lookup (cf, "max_restarts"))
        problem_at (p, origin_of_key (cf, "max_restarts"),
                    "'max_restarts' and 'job.backoff_limit' say the same: leave one out");
}
