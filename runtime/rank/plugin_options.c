/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the plugin's options, and checks of their values. */
#include "runtime/rank/plugin_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/nearest_word.h"
#include "runtime/rank/binding.h"
#include "runtime/rank/rank_environment.h"
#include "runtime/rank/roles.h"

enum { WORD_SIZE = 64, HANG_MIN = 5, HANG_MAX = 86400, HANG_DEFAULT = 600 };
enum { SAMPLE_DEFAULT = 5, SAMPLE_MAX = 3600, IDLE_MAX = 10080 };

static int check_roles (const char *value, char *why, size_t size)
{
    struct rank_roles roles;

    return roles_parse (value, &roles, why, size);
}

/* Parse 'len' digits, a number from 1 to 'most'.  Returns 0 if it is not one. */
static long parse_count (const char *word, size_t len, long most)
{
    long n = 0;

    for (size_t i = 0; i < len; i++) {
        if (word[i] < '0' || word[i] > '9' || n > most)
            return 0;
        n = 10 * n + word[i] - '0';
    }
    return n <= most ? n : 0;
}

static bool is_sample_word (const char *text, size_t len, const char *word)
{
    return len == strlen (word) && !strncmp (text, word, len);
}

int sample_options_parse (const char *value, struct sample_options *s)
{
    bool acts = false;

    *s = (struct sample_options){ .seconds = SAMPLE_DEFAULT };
    for (;;) {
        size_t len = strcspn (value, ",");
        if (is_sample_word (value, len, "warn") || is_sample_word (value, len, "park")) {
            if (acts)
                return -1;
            acts = true;
            s->parks = *value == 'p';
        } else if (len > 5 && !strncmp (value, "idle:", 5)) {
            if ((s->idle = parse_count (value + 5, len - 5, IDLE_MAX)) == 0)
                return -1;
        } else if ((s->seconds = parse_count (value, len, SAMPLE_MAX)) == 0)
            return -1;
        if (!value[len])
            return acts && !s->idle ? -1 : 0;
        value += len + 1;
    }
}

static int check_sample (const char *value, char *why, size_t size)
{
    struct sample_options s;

    if (!strcmp (value, "off"))
        return 0;
    if (sample_options_parse (value, &s) < 0) {
        snprintf (why, size,
                  "neither a number of seconds from 1 to %d nor off nor "
                  "idle:MINUTES[,warn|park] (1 to %d)",
                  SAMPLE_MAX, IDLE_MAX);
        return -1;
    }
    if (!s.idle || 2 * s.seconds <= 60 * s.idle)
        return 0;
    snprintf (why, size, "a GPU that is idle for %ld min must be sampled each %ld s or more often",
              s.idle, 30 * s.idle);
    return -1;
}

/* Parse "hang:SECONDS", "SECONDS" or "kill". */
static int parse_word (const char *word, size_t len, struct hang_options *h)
{
    char *end;

    if (len == 4 && !strncmp (word, "kill", 4)) {
        h->kill = true;
        return 0;
    }
    if (len > 5 && !strncmp (word, "hang:", 5)) {
        word += 5;
        len -= 5;
    }
    if (len < 1 || len > 5 || *word < '1' || *word > '9')
        return -1;
    h->seconds = strtol (word, &end, 10);
    if (end != word + len || h->seconds < HANG_MIN || h->seconds > HANG_MAX)
        return -1;
    return 0;
}

int hang_options_parse (const char *value, struct hang_options *h)
{
    *h = (struct hang_options){ .seconds = HANG_DEFAULT };
    for (;;) {
        size_t len = strcspn (value, ",");
        if (parse_word (value, len, h) < 0)
            return -1;
        if (!value[len])
            return 0;
        value += len + 1;
    }
}

static int check_hang (const char *value, char *why, size_t size)
{
    struct hang_options h;

    if (!strcmp (value, "off") || hang_options_parse (value, &h) == 0)
        return 0;
    snprintf (why, size, "not hang:SECONDS (%d to %d), with ,kill after it to end the step",
              HANG_MIN, HANG_MAX);
    return -1;
}

static int check_bind (const char *value, char *why, size_t size)
{
    if (binding_places (value) < 2)
        return 0;
    snprintf (why, size, "one of closest, socket, spread, none");
    return -1;
}

static const char *const check_words[] = { "quick", "full", "off", NULL };

/* Tests compare dl-spank(7) and the options of dl env with this table. */
const struct plugin_option plugin_options[PLUGIN_OPTIONS] = {
    [PLUGIN_FRAMEWORK] = {
        "dl",
        "FRAMEWORK",
        "[dl] set each rank's environment for torch, tf, jax, ...",
        .words = rank_environment_frameworks,
    },
    [PLUGIN_ROLES] = {
        "dl-roles",
        "ROLE:N[,ROLE:N]...",
        "[dl] roles of the ranks in their order, e.g. chief:1,ps:2,worker:*",
        .check = check_roles,
    },
    [PLUGIN_BIND] = {
        "dl-bind",
        "WHERE",
        "[dl] bind each rank to cores near its GPU: closest, socket, spread, none",
        .words = bind_words,
        .check = check_bind,
        .list = true,
    },
    [PLUGIN_NCCL] = {
        "dl-nccl",
        "PROFILE",
        "[dl] set the site's network variables: auto, none or a profile",
    },
    [PLUGIN_CHECK] = {
        "dl-check",
        "LEVEL",
        "[dl] check nodes and GPUs before the program starts: quick, full, off",
        .words = check_words,
        .bare = "quick",
    },
    [PLUGIN_MONITOR] = {
        "dl-monitor",
        "SECONDS[,idle:MINUTES[,warn|park]]",
        "[dl] sample what each rank uses, every so many seconds (5)",
        .check = check_sample,
        .bare = "5",
    },
    [PLUGIN_DEBUG] = {
        "dl-debug",
        "hang:SECONDS",
        "[dl] keep logs, and the stacks of all ranks if they hang",
        .check = check_hang,
        .bare = "hang:600",
    },
};

static bool is_word (const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp (text, *words))
            return true;
    return false;
}

/* Whether each part of "A,B" is one of the words. */
static bool is_list (const char *text, const char *const *words)
{
    char word[WORD_SIZE + 1];

    for (;;) {
        size_t len = strcspn (text, ",");
        if (len > WORD_SIZE)
            return false;
        memcpy (word, text, len);
        word[len] = '\0';
        if (!is_word (word, words))
            return false;
        if (!text[len])
            return true;
        text += len + 1;
    }
}

int plugin_option_check (enum plugin_option_id id, const char *value, char *why, size_t size)
{
    const struct plugin_option *o = &plugin_options[id];

    if (!o->words)
        return o->check ? o->check (value, why, size) : 0;
    if ((o->list ? is_list : is_word) (value, o->words))
        return o->check ? o->check (value, why, size) : 0;
    snprintf (why, size, "no such value; ");
    word_hint (why + strlen (why), size - strlen (why), value, o->words);
    return -1;
}
