/* SPDX-License-Identifier: Apache-2.0 */
/* Read what a batch script asks of Slurm. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/env/components.h"
#include "launcher/env/slurm_options.h"
#include "launcher/sys/strings.h"

enum { COMPONENTS_MAX = 16 };

struct script {
    const char *path;
    struct ask job[COMPONENTS_MAX]; /* of a heterogeneous job several */
    int components;                 /* but the first */
    int line;                       /* of the text */
    int steps;
    bool body; /* sbatch reads no further directives */
    bool no_srun;
    ask_step_f *step;
    void *arg;
};

/* ---- words, as the shell cuts them ---- */

/* Add one word at *text to the list.  Returns 1; 0 at the end of the command;
 * -1 if out of memory.
 */
static int next_word (const char **text, char ***words)
{
    const char *p = *text + strspn (*text, " \t");
    char *word = calloc (1, strlen (p) + 1);
    char quote = '\0';
    size_t n = 0;
    int rv;

    if (!word)
        return -1;
    if (!*p || strchr ("|&;<>()#\n", *p)) {
        free (word);
        return 0;
    }
    for (; *p && (quote || !strchr (" \t\n|&;<>()", *p)); p++)
        if (quote ? *p == quote : *p == '\'' || *p == '"')
            quote = quote ? '\0' : *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            word[n++] = *++p;
        else
            word[n++] = *p;
    rv = strings_add_part (words, word, n);
    free (word);
    *text = p;
    return rv < 0 ? -1 : 1;
}

static char **words_of (const char *text)
{
    char **words = calloc (1, sizeof (*words));

    while (words && next_word (&text, &words) > 0)
        ;
    return words;
}

/* ---- directives ---- */

static int
read_directive (struct script *s, const char *text, struct slurmdl_error *err)
{
    char where[512];
    char **words = words_of (text);
    int rv = 0;

    snprintf (where, sizeof (where), "%.480s:%d", s->path, s->line);
    if (words && words[0] && !strcmp (words[0], "hetjob")) {
        errno = EINVAL;
        if (++s->components == COMPONENTS_MAX)
            rv = errorf (err,
                         "%s: more than %d components of a heterogeneous job",
                         where,
                         COMPONENTS_MAX);
        strings_free (words);
        return rv;
    }
    for (char **w = words; rv >= 0 && w && *w; w += rv)
        if ((rv = ask_take (&s->job[s->components], w, where, err)) == 0) {
            errno = EINVAL;
            rv = errorf (err, "%s: '%.64s' is not an option", where, *w);
        }
    strings_free (words);
    return rv < 0 ? -1 : 0;
}

/* ---- srun ---- */

static bool is_assignment (const char *word)
{
    size_t n = strspn (word,
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                       "0123456789_");

    return n > 0 && word[n] == '=' && !isdigit ((unsigned char)*word);
}

/* Of "time A=B srun", srun. */
static char **find_srun (char **words)
{
    static const char *const before[] = { "time", "exec", "nohup", NULL };

    for (; *words; words++) {
        size_t n = strlen (*words);
        if (!strcmp (*words, "srun")
            || (n > 5 && !strcmp (*words + n - 5, "/srun")))
            return words;
        if (!is_assignment (*words) && !strings_contain (before, *words))
            return NULL;
    }
    return NULL;
}

/* Take the options of one part of srun's words, which ends at a colon.
 * Returns how many words it had, -1 with what is wrong.
 */
static int take_part (const struct script *s,
                      char **words,
                      const char *where,
                      struct ask *a,
                      char **unread,
                      struct slurmdl_error *err)
{
    char **w = words;
    int rv = 1;

    for (; rv > 0 && *w && strcmp (*w, ":"); w += rv) {
        char *variable = *w[0] == '-' ? strpbrk (*w, "$`") : NULL;
        if (*w[0] == '-' && !variable && w[1] && !strchr (*w, '='))
            variable = w[1][0] == '$' || w[1][0] == '`' ? w[1] : NULL;
        if (**w == '$')
            variable = *w; /* of which some may be options */
        if (variable && !*unread)
            *unread = strdup (*w);
        rv = variable ? 1 : ask_take (a, w, where, err);
    }
    while (rv >= 0 && s->components && *w && strcmp (*w, ":"))
        w++;
    return rv < 0 ? -1 : (int)(w - words);
}

/* Whether the component is one of "0,2-3"; without such a list of number 'i'.
 */
static bool is_chosen (const char *list, int component, int i)
{
    char *end;

    for (; list && *list; list = end + (*end == ',')) {
        long first = strtol (list, &end, 10), last = first;
        if (*end == '-')
            last = strtol (end + 1, &end, 10);
        if (component >= first && component <= last)
            return true;
        if (end == list || (*end && *end != ','))
            return false;
    }
    return !list && component == i;
}

/* The components on which a part of srun runs, added to those before. */
static int add_components (const struct script *s,
                           const struct ask *own,
                           int i,
                           struct ask *part,
                           int *n)
{
    for (int k = 0; k <= s->components && *n < COMPONENTS_MAX; k++)
        if (is_chosen (own->value[ASK_HET_GROUP], k, i)) {
            ++*n;
            if (ask_copy (&part[*n - 1], &s->job[k]) < 0
                || ask_merge (&part[*n - 1], own) < 0)
                return -1;
        }
    return 0;
}

static int read_parts (const struct script *s,
                       char **words,
                       const char *where,
                       struct ask *part,
                       int *n,
                       char **unread,
                       struct slurmdl_error *err)
{
    int rv = 0;

    for (int i = 0; rv >= 0; i++) {
        struct ask own = { { NULL }, { NULL } };
        rv = take_part (s, words, where, &own, unread, err);
        words += rv < 0 ? 0 : rv;
        if (rv >= 0 && add_components (s, &own, i, part, n) < 0)
            rv = errorf (err, "out of memory");
        ask_free (&own);
        if (!s->components || !*words || strcmp (*words++, ":"))
            break;
    }
    errno = EINVAL;
    return rv >= 0 && *n == 0
               ? errorf (err, "%s: --het-group: no such component", where)
               : rv;
}

static int give_step (struct script *s, char **words, struct slurmdl_error *err)
{
    struct ask part[COMPONENTS_MAX] = { 0 }, a = { { NULL }, { NULL } };
    struct ask_step step = { .ask = &a };
    char where[512];
    char *unread = NULL;
    int n = 0, rv;

    snprintf (where, sizeof (where), "%.480s:%d", s->path, s->line);
    rv = read_parts (s, words, where, part, &n, &unread, err);
    if (rv >= 0 && n > 1)
        rv = components_join (&a, part, n, where, err);
    else if (rv >= 0 && ask_copy (&a, &part[0]) < 0)
        rv = errorf (err, "out of memory");
    step.where = where;
    step.unread = unread;
    step.no_srun = s->no_srun;
    if (rv >= 0)
        rv = s->step (s->arg, &step);
    s->steps++;
    free (unread);
    ask_free (&a);
    for (int i = 0; i < n; i++)
        ask_free (&part[i]);
    return rv;
}

static int
read_command (struct script *s, const char *text, struct slurmdl_error *err)
{
    char **words = words_of (text);
    char **srun = words ? find_srun (words) : NULL;
    int rv = srun ? give_step (s, srun + 1, err) : 0;

    strings_free (words);
    return rv;
}

/* ---- lines ---- */

/* sbatch(1): directives end at the first line that is no comment. */
static int
read_line (struct script *s, const char *text, struct slurmdl_error *err)
{
    const char *p = text + strspn (text, " \t");

    if (!strncmp (text, "#SBATCH", 7) && !s->body)
        return read_directive (s, text + 7, err);
    if (*p == '#' || *p == '\n' || !*p)
        return 0;
    s->body = true;
    return read_command (s, text, err);
}

static bool goes_on (char *text, size_t n)
{
    while (n > 0 && text[n - 1] == '\n')
        n--;
    if (n == 0 || text[n - 1] != '\\')
        return false;
    text[n - 1] = '\0';
    return true;
}

static int read_lines (struct script *s, FILE *f, struct slurmdl_error *err)
{
    char *line = NULL;
    char *whole = NULL;
    size_t room = 0;
    ssize_t n;
    int lines = 0;
    int rv = 0;

    while (rv == 0 && (n = getline (&line, &room, f)) >= 0) {
        char *more = NULL;
        bool on = goes_on (line, (size_t)n);
        lines++;
        if (!whole)
            s->line = lines;
        if (asprintf (&more, "%s%s", whole ? whole : "", line) < 0)
            more = NULL;
        free (whole);
        whole = more;
        if (on && whole)
            continue;
        rv = whole ? read_line (s, whole, err) : errorf (err, "out of memory");
        free (whole);
        whole = NULL;
    }
    free (line);
    free (whole);
    return rv;
}

int ask_script (const char *path,
                ask_step_f *step,
                void *arg,
                struct slurmdl_error *err)
{
    struct script s = { .path = path, .step = step, .arg = arg };
    FILE *f = fopen (path, "re");
    int rv;

    if (!f)
        return errorf (err, "%s: %s", path, strerror (errno));
    rv = read_lines (&s, f, err);
    if (rv == 0 && s.steps == 0) {
        char *none[] = { NULL };
        s.line = 1;
        s.no_srun = true;
        rv = give_step (&s, none, err);
    }
    fclose (f);
    for (int i = 0; i <= s.components && i < COMPONENTS_MAX; i++)
        ask_free (&s.job[i]);
    return rv;
}
