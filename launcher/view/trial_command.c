/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that trains a trial's point again, from the beginning. */
#include "launcher/view/trial_command.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/config/hparams.h"
#include "launcher/software/record.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/strings.h"

static void put_word (FILE *f, const char *text)
{
    char *word = shell_word (text);

    fputs (word ? word : "", f);
    free (word);
}

static void put_variable (FILE *f, const char *name, const char *value)
{
    fprintf (f, " %s=", name);
    put_word (f, value);
}

static void put_number (FILE *f, const char *name, long long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", value);
    put_variable (f, name, text);
}

/* What is NAME=VALUE already. */
static void put_variables (FILE *f, char *const *list)
{
    for (; list && *list; list++) {
        size_t n = strcspn (*list, "=");
        fprintf (f, " %.*s=", (int)n, *list);
        put_word (f, (*list)[n] ? *list + n + 1 : "");
    }
}

/* A trainer may read the point there instead: that of the last attempt, which
 * was tried with the point that the trial has now.
 */
static void put_hparams_file (FILE *f, const struct sweep *s, long trial)
{
    char path[PATH_MAX];

    for (long a = sweep_trial (s, trial)->over; a > 0; a--) {
        snprintf (path,
                  sizeof (path),
                  "%s/trials/%04ld/a.%ld/hparams.json",
                  s->dir,
                  trial,
                  a);
        if (access (path, F_OK) == 0) {
            put_variable (f, "DL_HPARAMS", path);
            return;
        }
    }
}

static void
put_environment (FILE *f, const struct sweep *s, long trial, int64_t length)
{
    const struct experiment *e = s->exp;
    const json_t *hparams = trial_hparams (s, sweep_trial (s, trial));
    char name[256];

    put_number (f, "DL_LENGTH", length);
    put_number (f, "DL_SEED", searcher_trial_seed (e->search.seed, trial));
    if (e->search.repeats > 1)
        put_number (f, "DL_REPEAT", trial_repeat (s, trial));
    for (size_t i = 0; i < e->nhparams; i++) {
        char *text = hparams_text (hparams, e->hparams[i].path);
        hparams_variable (name, sizeof (name), e->hparams[i].path);
        if (text)
            put_variable (f, name, text);
        free (text);
    }
    put_hparams_file (f, s, trial);
    put_variables (f, e->variables);
}

/* `dl within` loads modules and starts the container. */
static void put_software (FILE *f, const struct sweep *s)
{
    const struct software *with = &s->exp->software;
    char *folders[] = { s->dir, NULL };
    char *text;

    if (!with->image && !with->modules && !with->conda && !with->venv)
        return;
    if ((text = software_text (with, folders, true))) {
        put_variable (f, "DL_SOFTWARE", text);
        fputs (" dl within --", f);
    }
    free (text);
}

/* It begins anew, so groups with {resume_dir} are left out. */
static char *no_files (void *arg, const char *file)
{
    (void)arg;
    (void)file;
    return NULL;
}

static int put_argument (void *f, char *word)
{
    fputc (' ', f);
    put_word (f, word);
    free (word);
    return 0;
}

static void
put_command (FILE *f, const struct sweep *s, long trial, int64_t length)
{
    const struct experiment *e = s->exp;
    json_t *builtins =
        json_pack ("{s:I, s:I, s:I, s:I, s:s, s:s}",
                   "length",
                   (json_int_t)length,
                   "trial",
                   (json_int_t)trial,
                   "repeat",
                   (json_int_t)trial_repeat (s, trial),
                   "seed",
                   (json_int_t)searcher_trial_seed (e->search.seed, trial),
                   "attempt_dir",
                   ".",
                   "trial_dir",
                   ".");
    const struct command_values v = {
        e, trial_hparams (s, sweep_trial (s, trial)), builtins, no_files, NULL
    };
    char *text;

    if (e->entrypoint && (text = hparams_expand (e->entrypoint, &v, true))) {
        fputs (" sh -c ", f);
        put_word (f, text);
        free (text);
    }
    for (char **a = e->entrypoint ? NULL : e->argv; a && *a; a++)
        hparams_arguments (*a, &v, put_argument, f);
    json_decref (builtins);
}

char *trial_command (const struct sweep *s, long trial, int64_t length)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (!f)
        return NULL;
    fputs ("cd ", f);
    put_word (f, s->exp->dir ? s->exp->dir : ".");
    fputs (" && env", f);
    put_environment (f, s, trial, length);
    put_software (f, s);
    put_command (f, s, trial, length);
    if (fclose (f) == 0)
        return text;
    free (text);
    return NULL;
}
