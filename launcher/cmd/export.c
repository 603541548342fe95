/* SPDX-License-Identifier: Apache-2.0 */
/* dl export: export the table of trials as CSV, JSON or HDF5, or for other tools. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/model/model.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/results_file.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

/* ---- CSV ---- */

static void put_csv (FILE *f, const struct sweep *s, const struct columns *c, bool safe)
{
    csv_put_names (f, c, safe);
    for (long n = 1; n <= s->ntrials; n++)
        csv_put_trial (f, s, c, n, safe);
}

/* ---- JSON ---- */

/* Write one trial per line, so that line-oriented tools can use the output as well. */
static void put_trials_json (FILE *f, const struct sweep *s, const struct columns *c, bool safe)
{
    (void)safe;
    fputc ('[', f);
    for (long n = 1; n <= s->ntrials; n++) {
        json_t *o = trial_json (s, c, n);
        fputs (n > 1 ? ",\n" : "\n", f);
        json_put (o, f, JSON_COMPACT);
        json_decref (o);
    }
    fputs ("\n]\n", f);
}

/* ---- the output ---- */

struct export_format {
    const char *name;
    void (*put) (FILE *f, const struct sweep *s, const struct columns *c, bool safe);
};

/* clang-format off */
static const struct export_format formats[] = {
    { "csv",  put_csv },
    { "json", put_trials_json },
    { "h5",   NULL }, /* results_write() */
    { NULL,   NULL },
};
/* clang-format on */

/* Return the last row, whose name is NULL, if there is no such format. */
static const struct export_format *find_format (const char *name)
{
    const struct export_format *f = formats;

    while (f->name && strcmp (f->name, name))
        f++;
    return f;
}

static int write_text (const char *path, const char *buf, size_t size, struct slurmdl_error *err)
{
    if (path)
        return publish_output (path, buf, size, err);
    fwrite (buf, 1, size, stdout); /* main() checks for errors */
    return 0;
}

static int export_text (const struct sweep *s, const struct export_format *format,
                        const struct export_options *opt, struct slurmdl_error *err)
{
    struct logged_metrics logged;
    struct columns columns;
    char *buf;
    size_t size;
    FILE *f = xopen_memstream (&buf, &size);
    int rv, e;

    columns_create (&columns, s);
    logged_read_all (&logged, s, NULL, s->ntrials);
    columns_add_logged (&columns, &logged);
    format->put (f, s, &columns, opt->safe_csv);
    xclose_memstream (f);
    rv = write_text (opt->output, buf, size, err);
    e = errno;
    columns_destroy (&columns);
    logged_free (&logged);
    free (buf);
    errno = e;
    return rv;
}

static int export_h5 (const struct sweep *s, const char *path, struct slurmdl_error *err)
{
    char file[PATH_MAX];

    if (!path || !publish_output_path (path, file, sizeof (file))) {
        errno = EINVAL;
        return errorf (err, "--format=h5 needs --output=FILE, a plain file");
    }
    return results_write (s, file, err);
}

/* The file was written, without the data that could not be read. */
static int complain_damaged_results (const struct sweep *s, const struct slurmdl_error *err)
{
    complain ("%s (the rest is in the file; 'dl show %s TRIAL' names the files of a trial)",
              err->text, s->word);
    return EXIT_DAMAGED;
}

/* ---- the command ---- */

/* seconds between two exports with --follow */
static const double export_every = 5, export_least = 0.2, export_most = 86400;

static double pause_of (const struct export_options *opt)
{
    if (!opt->follow)
        return 0;
    return opt->seconds > 0 ? fmin (fmax (opt->seconds, export_least), export_most) : export_every;
}

static int put_format (const struct sweep *s, const struct export_format *format,
                       const struct export_options *opt, struct slurmdl_error *err)
{
    return format->put ? export_text (s, format, opt, err) : export_h5 (s, opt->output, err);
}

static int export_table (struct sweep *s, const struct export_format *format,
                         const struct export_options *opt)
{
    struct slurmdl_error err = { "" };
    int rv = put_format (s, format, opt, &err);

    while (rv >= 0 && opt->follow && !sweep_has_ended (s)) {
        int news = 0;
        poll (NULL, 0, (int)(pause_of (opt) * 1000));
        if ((news = sweep_sync (s, &err)) < 0)
            rv = -1;
        else if (news > 0)
            rv = put_format (s, format, opt, &err);
    }
    return rv < 0 ? fail (&err) : rv > 0 ? complain_damaged_results (s, &err) : EXIT_OK;
}

static int check_export (const struct export_options *opt, const struct export_format *format)
{
    const char *name = format->name ? format->name : opt->format;

    if (!format->name && !tool_has_format (name)) {
        complain ("--format: '%s' is not one of csv, json, h5, tensorboard, wandb, mlflow, optuna "
                  "and parquet",
                  name);
        return EXIT_USAGE;
    }
    if (opt->safe_csv && format->put != put_csv) {
        complain ("--safe-csv is for --format=csv, not %s", name);
        return EXIT_USAGE;
    }
    if (opt->follow && format->name && !opt->output) {
        complain ("--follow with --format=%s needs --output=FILE", name);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int cmd_export (const struct command_line *line)
{
    const struct export_options *opt = line->options;
    const struct export_format *format = find_format (opt->format ? opt->format : formats[0].name);
    struct sweep *s;
    int rv = check_export (opt, format);

    if (rv || (rv = open_experiment (line, line->args[0], &s)))
        return rv;
    rv = format->name ? export_table (s, format, opt)
                      : tool_export (s, opt->format, opt->output, pause_of (opt));
    sweep_close (s);
    return rv;
}
