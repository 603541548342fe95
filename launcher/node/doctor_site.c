/* SPDX-License-Identifier: Apache-2.0 */
/* Read the configuration of a site for dl doctor, and collect its findings. */
#include "launcher/node/doctor.h"

#include <ctype.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/rank/slurmconf.h"

/* ---- configuration files ---- */

enum { DOCTOR_FILE = 1024 * 1024 };

enum { DEPTH = 8 };

char *doctor_read (const char *root, const char *path)
{
    char full[2 * PATH_MAX];

    snprintf (full, sizeof (full), "%s%s", root, path);
    return file_text (full, DOCTOR_FILE);
}

static void add_conf_line (struct conf *c, const char *file, int line, const char *text, size_t len)
{
    XGROW (c->list, c->n);
    c->list[c->n++] = (struct conf_line){ xstrdup (file), line, xstrndup (text, len) };
}

static int read_deep (struct conf *c, const char *root, const char *path, int depth);

/* Read the files of "include /etc/slurm/plugstack.conf.d/?*".  A relative pattern starts at the
 * folder of 'file'.
 */
static void read_include (struct conf *c, const char *root, const char *file, const char *pattern,
                          int depth)
{
    char full[3 * PATH_MAX];
    const char *slash = strrchr (file, '/');
    glob_t g;

    if (*pattern == '/')
        snprintf (full, sizeof (full), "%s%s", root, pattern);
    else
        snprintf (full, sizeof (full), "%s%.*s/%s", root, slash ? (int)(slash - file) : 0, file,
                  pattern);
    if (glob (full, 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++)
        read_deep (c, root, g.gl_pathv[i] + strlen (root), depth + 1);
    globfree (&g);
}

static size_t strip (const char **text, size_t len)
{
    const char *hash = memchr (*text, '#', len);

    if (hash)
        len = (size_t)(hash - *text);
    for (; len && isspace ((unsigned char)**text); len--)
        ++*text;
    while (len && isspace ((unsigned char)(*text)[len - 1]))
        len--;
    return len;
}

static int read_deep (struct conf *c, const char *root, const char *path, int depth)
{
    char *text = depth < DEPTH ? doctor_read (root, path) : NULL;
    int line = 0;

    if (!text)
        return -1;
    for (const char *at = text; *at;) {
        size_t whole = strcspn (at, "\n");
        const char *start = at;
        size_t len = strip (&start, whole);
        line++;
        if (len > 8 && !strncasecmp (start, "include", 7) && isspace ((unsigned char)start[7])) {
            char *pattern = xstrndup (start + 8, len - 8);
            read_include (c, root, path, pattern + strspn (pattern, " \t"), depth);
            free (pattern);
        } else if (len)
            add_conf_line (c, path, line, start, len);
        at += whole + (at[whole] == '\n');
    }
    free (text);
    return 0;
}

int conf_read (struct conf *c, const char *root, const char *path)
{
    return read_deep (c, root, path, 0);
}

void conf_free (struct conf *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free (c->list[i].file);
        free (c->list[i].text);
    }
    free (c->list);
    *c = (struct conf){ NULL, 0 };
}

const struct conf_line *conf_find (const struct conf *c, const char *key)
{
    size_t n = strlen (key);

    for (size_t i = c->n; i > 0; i--)
        if (!strncasecmp (c->list[i - 1].text, key, n)
            && c->list[i - 1].text[n + strspn (c->list[i - 1].text + n, " \t")] == '=')
            return &c->list[i - 1];
    return NULL;
}

/* ---- the site ---- */

const char *const doctor_severity_names[] = { "ok", "hint", "change", "broken" };

void site_report (struct site *s, enum doctor_severity severity, const char *where, const char *fmt,
                  ...)
{
    va_list ap;
    char *what;

    va_start (ap, fmt);
    what = xvasprintf (fmt, ap);
    va_end (ap);
    XGROW (s->findings, s->nfindings);
    s->findings[s->nfindings++] =
        (struct doctor_finding){ s->check->name, severity, xstrdup (where), what };
}

/* ---- scontrol show config ---- */

static bool is_nothing (const char *value)
{
    return !*value || !strncmp (value, "(null", 5);
}

const char *site_value (const struct site *s, const char *key, char *buf, size_t size,
                        const char *otherwise)
{
    size_t n = strlen (key);

    for (const char *at = s->config; at && *at;) {
        size_t len = strcspn (at, "\n");
        const char *equals = memchr (at, '=', len);
        if (len > n && !strncasecmp (at, key, n) && (at[n] == ' ' || at[n] == '=') && equals) {
            const char *start = equals + 1;
            size_t left = len - (size_t)(start - at);
            for (; left && isspace ((unsigned char)*start); left--)
                start++;
            snprintf (buf, size, "%.*s", (int)left, start);
            if (is_nothing (buf))
                break;
            return buf;
        }
        at += len + (at[len] == '\n');
    }
    snprintf (buf, size, "%s", otherwise);
    return buf;
}

long site_number (const struct site *s, const char *key)
{
    char text[64];
    char *end;
    long n;

    site_value (s, key, text, sizeof (text), "");
    n = strtol (text, &end, 10);
    return end == text ? -1 : n;
}

const char *site_here (const struct site *s, const char *key)
{
    static char where[SITE_WHERE];
    const struct conf_line *l = conf_find (&s->slurm, key);

    if (l)
        snprintf (where, sizeof (where), "%s:%d", l->file, l->line);
    else
        snprintf (where, sizeof (where), "%s", s->conf_path);
    return where;
}

bool site_has (const struct site *s, const char *key, const char *word)
{
    char text[DOCTOR_TEXT];

    return strcasestr (site_value (s, key, text, sizeof (text), ""), word);
}

void site_expect (struct site *s, const char *key, bool good, const char *fine, const char *advice)
{
    site_report (s, good ? FINE : s->check->severity, site_here (s, key), "%s",
                 good ? fine : advice);
}

/* ---- configuration files ---- */

/* Query the controller once.  An administrator runs this by hand; jobs never do. */
static void read_slurm_config (struct site *s)
{
    struct slurmdl_error err = { "" };

    if (!(s->config = slurm_config (&err)))
        snprintf (s->why, sizeof (s->why), "%s", err.text);
}

/* Guess Slurm's plugin directory, if slurm.conf does not set it. */
static void find_plugins (char *buf, size_t size)
{
    const char *list = getenv ("PATH");
    char path[PATH_MAX + 8], real[PATH_MAX];
    size_t n = 0;

    for (; list && *list; list += *list == ':') {
        size_t len = strcspn (list, ":");
        char *bin;
        snprintf (path, sizeof (path), "%.*s/srun", (int)(len < PATH_MAX ? len : 0), list);
        list += len;
        if (access (path, X_OK) < 0 || !realpath (path, real)
            || !(bin = strstr (real, "/bin/srun")))
            continue;
        *bin = '\0';
        n = (size_t)snprintf (buf, size, "%s/lib/slurm:%s/lib64/slurm:", real, real);
        break;
    }
    if (n < size)
        snprintf (buf + n, size - n,
                  "/usr/lib64/slurm:/usr/lib/slurm:/usr/lib/x86_64-linux-gnu/slurm-wlm:"
                  "/usr/lib/aarch64-linux-gnu/slurm-wlm");
}

/* Defaults from slurm.conf(5) of the parameters that dl doctor checks. */
static const char defaults[] = "JobRequeue=1\n"
                               "KillWait=30\n"
                               "MaxArraySize=1001\n"
                               "MaxTasksPerNode=512\n"
                               "MessageTimeout=10\n"
                               "ProctrackType=proctrack/cgroup\n"
                               "PropagateResourceLimits=ALL\n"
                               "SelectType=select/cons_tres\n"
                               "UnkillableStepTimeout=60\n";

/* Build what scontrol would have printed from this host's slurm.conf.  If a parameter
 * occurs twice, the last line wins.
 */
static void read_alone (struct site *s)
{
    const char *chosen = getenv ("SLURM_CONF");
    const char *path =
        *s->root ? (chosen ? chosen : "/etc/slurm/slurm.conf") : slurmconf_path (chosen);
    char plugins[3 * PATH_MAX];
    size_t size = sizeof (defaults) + sizeof (plugins) + PATH_MAX + 64;
    size_t used;

    if (!path || conf_read (&s->slurm, s->root, path) < 0)
        return;
    for (size_t i = 0; i < s->slurm.n; i++)
        size += strlen (s->slurm.list[i].text) + 1;
    s->config = xmalloc (size);
    s->alone = true;
    snprintf (s->conf_path, sizeof (s->conf_path), "%s", path);
    used = (size_t)snprintf (s->config, size, "SLURM_CONF=%s\n", path);
    for (size_t i = s->slurm.n; i-- > 0;)
        used += (size_t)snprintf (s->config + used, size - used, "%s\n", s->slurm.list[i].text);
    find_plugins (plugins, sizeof (plugins));
    snprintf (s->config + used, size - used, "%sPluginDir=%s\n", defaults, plugins);
}

/* Read a file next to slurm.conf, where Slurm finds it. */
static void read_beside (struct site *s, struct conf *c, const char *name)
{
    char path[PATH_MAX + 32];
    const char *slash = strrchr (s->conf_path, '/');

    snprintf (path, sizeof (path), "%.*s/%s", slash ? (int)(slash - s->conf_path) : 0, s->conf_path,
              name);
    conf_read (c, s->root, path);
}

static void find_stack (struct site *s)
{
    char fallback[PATH_MAX + 32];
    const char *slash = strrchr (s->conf_path, '/');

    snprintf (fallback, sizeof (fallback), "%.*s/plugstack.conf",
              slash ? (int)(slash - s->conf_path) : 0, s->conf_path);
    site_value (s, "PlugStackConfig", s->stack_path, sizeof (s->stack_path), fallback);
    conf_read (&s->stack, s->root, s->stack_path);
}

static bool is_plugin (const char *word, size_t n)
{
    while (memchr (word, '/', n)) {
        n--;
        word++;
    }
    return n == 5 && !strncmp (word, "dl.so", n);
}

void site_plugin_path (const struct site *s, const char *name, char path[PATH_MAX])
{
    char dirs[PATH_MAX];
    char full[2 * PATH_MAX];
    char one[PATH_MAX];
    char *next = NULL;

    site_value (s, "PluginDir", dirs, sizeof (dirs), "/usr/lib/slurm");
    *path = '\0';
    for (char *d = strtok_r (dirs, ":", &next); d; d = strtok_r (NULL, ":", &next)) {
        snprintf (one, sizeof (one), "%.3000s/%.500s", d, name);
        snprintf (full, sizeof (full), "%s%s", s->root, one);
        if (!*path || access (full, F_OK) == 0)
            snprintf (path, PATH_MAX, "%s", one);
        if (access (full, F_OK) == 0)
            return;
    }
}

/* Parse "optional dl.so ARGUMENT..."; see spank(8). */
static void read_plugstack_line (struct site *s, const struct conf_line *l)
{
    struct stack_line p = { .at = l };
    char plugin[PATH_MAX];
    const char *at = l->text;
    size_t n = strcspn (at, " \t");

    if (!is_plugin (at, n)) {
        snprintf (p.word, sizeof (p.word), "%.*s", (int)n, at);
        at += n + strspn (at + n, " \t");
        n = strcspn (at, " \t");
    }
    if (!is_plugin (at, n))
        return;
    snprintf (plugin, sizeof (plugin), "%.*s", (int)n, at);
    p.arguments = at + n + strspn (at + n, " \t");
    if (*plugin == '/')
        memcpy (p.plugin, plugin, sizeof (plugin));
    else
        site_plugin_path (s, plugin, p.plugin);
    s->plugins++;
    if (!s->plugin.at)
        s->plugin = p;
}

void site_read (struct site *s)
{
    if (!s->config)
        read_slurm_config (s);
    if (s->config) {
        site_value (s, "SLURM_CONF", s->conf_path, sizeof (s->conf_path), "/etc/slurm/slurm.conf");
        conf_read (&s->slurm, s->root, s->conf_path);
    } else {
        read_alone (s);
    }
    if (!s->config)
        return;
    read_beside (s, &s->cgroup, "cgroup.conf");
    read_beside (s, &s->gres, "gres.conf");
    find_stack (s);
    for (size_t i = 0; i < s->stack.n; i++)
        read_plugstack_line (s, &s->stack.list[i]);
}

void site_free (struct site *s)
{
    for (size_t i = 0; i < s->nfindings; i++) {
        free (s->findings[i].where);
        free (s->findings[i].what);
    }
    free (s->findings);
    free (s->config);
    conf_free (&s->slurm);
    conf_free (&s->cgroup);
    conf_free (&s->gres);
    conf_free (&s->stack);
    free (s);
}
