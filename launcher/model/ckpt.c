/* SPDX-License-Identifier: Apache-2.0 */
/* dl ckpt: list, verify, compare and convert checkpoints. */
#include "launcher/model/model.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/subcommand.h"
#include "launcher/sys/take_file.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* ---- open a checkpoint ---- */

/* Find the newest checkpoint of a trial.  'dir' is the trial's directory or that of one
 * of its attempts.
 */
static char *newest_in (const char *dir)
{
    int64_t step;
    char *path = slurmdl_checkpoint_find (dir, INT64_MAX, 0, &step);
    char *trial;

    if (path)
        return path;
    trial = xasprintf ("%s/..", dir);
    path = slurmdl_checkpoint_find (trial, INT64_MAX, 0, &step);
    free (trial);
    return path;
}

static int no_checkpoint (const char *dir)
{
    char trials[PATH_MAX];

    snprintf (trials, sizeof (trials), "%s/trials", dir);
    if (access (trials, F_OK) == 0)
        complain ("%s: is an experiment; name the folder of a trial: %s/NNNN", dir, trials);
    else
        complain ("%s: no valid checkpoint in this folder", dir);
    return EXIT_NOT_FOUND;
}

/* Open a checkpoint file or, in a trial's directory, the newest checkpoint that
 * verifies.  Returns NULL after printing an error, with the exit status in '*rv'.
 */
static struct slurmdl_checkpoint *ckpt_open (const char *path, int *rv)
{
    struct slurmdl_checkpoint *c;
    struct slurmdl_error err = { "" };
    char *found = NULL;
    struct stat st;

    if (stat (path, &st) == 0 && S_ISDIR (st.st_mode) && !(found = newest_in (path))) {
        *rv = no_checkpoint (path);
        return NULL;
    }
    c = slurmdl_checkpoint_open (found ? found : path, &err);
    if (!c)
        *rv = fail (&err);
    free (found);
    return c;
}

/* Match the parts of a.K/ckpt/STEP.h5. */
static int is_part (const struct dirent *e)
{
    size_t digits = strspn (e->d_name, "0123456789");

    return !strcmp (e->d_name, "ckpt") || !strncmp (e->d_name, "a.", 2)
           || (digits && !strcmp (e->d_name + digits, ".h5"));
}

enum { LEVELS = 3 };

static size_t each_in_folder (const char *dir, int level, void (*f) (const char *path, void *arg),
                              void *arg)
{
    struct dirent **list;
    int n = scandir (dir, &list, is_part, versionsort);
    size_t found = 0;

    for (int i = 0; i < n; i++) {
        char *path = xasprintf ("%s/%s", dir, list[i]->d_name);
        if (strspn (list[i]->d_name, "0123456789")) {
            f (path, arg);
            found++;
        } else if (level > 1)
            found += each_in_folder (path, level - 1, f, arg);
        free (path);
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return found;
}

/* Call 'f' for a file or, in the directory of a trial or an attempt, for each
 * checkpoint, including damaged ones.  Returns the number of calls.
 */
static size_t ckpt_each (const char *path, void (*f) (const char *path, void *arg), void *arg)
{
    struct stat st;

    if (stat (path, &st) == 0 && S_ISDIR (st.st_mode))
        return each_in_folder (path, LEVELS, f, arg);
    f (path, arg);
    return 1;
}

/* Write "[2, 3]", or "[]" for a scalar. */
static void ckpt_shape (char *buf, size_t size, const struct slurmdl_tensor *t)
{
    size_t at = (size_t)snprintf (buf, size, "[");

    for (int i = 0; i < t->ndims && at < size; i++)
        at += (size_t)snprintf (buf + at, size - at, "%s%" PRIu64, i ? ", " : "", t->dims[i]);
    if (at < size)
        snprintf (buf + at, size - at, "]");
}

/* ---- extract, export, import ---- */

enum { NPY_HEADER = 1024 };

/* Return numpy's name for a type.  Types that numpy lacks are stored as unsigned
 * integers with the same bits.
 */
static const char *numpy_type (enum slurmdl_type type)
{
    static const char *const names[] = {
        [SLURMDL_I8] = "|i1",      [SLURMDL_U8] = "|u1",      [SLURMDL_I32] = "<i4",
        [SLURMDL_U32] = "<u4",     [SLURMDL_I64] = "<i8",     [SLURMDL_U64] = "<u8",
        [SLURMDL_F16] = "<f2",     [SLURMDL_F32] = "<f4",     [SLURMDL_F64] = "<f8",
        [SLURMDL_BF16] = "<u2",    [SLURMDL_BOOL] = "|b1",    [SLURMDL_C64] = "<c8",
        [SLURMDL_C128] = "<c16",   [SLURMDL_I16] = "<i2",     [SLURMDL_U16] = "<u2",
        [SLURMDL_F8_E4M3] = "|u1", [SLURMDL_F8_E5M2] = "|u1",
    };

    return names[type];
}

/* Write a header of format version 1.0, padded to a multiple of 64 bytes.  Returns its
 * size.
 */
static size_t npy_header (char header[NPY_HEADER], const struct slurmdl_tensor *t)
{
    char text[512];
    int n = snprintf (text, sizeof (text), "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      numpy_type (t->type));
    int padded;

    for (int i = 0; i < t->ndims; i++)
        n += snprintf (text + n, sizeof (text) - (size_t)n, "%" PRIu64 ",", t->dims[i]);
    n += snprintf (text + n, sizeof (text) - (size_t)n, "), }");
    padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    memcpy (header, (const char[]){ '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0 }, 8);
    header[8] = (char)(padded & 0xff);
    header[9] = (char)(padded >> 8);
    return 10 + (size_t)snprintf (header + 10, NPY_HEADER - 10, "%-*s\n", padded - 1, text);
}

static char *file_for (const struct ckpt_options *opt, const struct slurmdl_tensor *t, bool npy)
{
    const char *slash = strrchr (t->name, '/');

    return opt->output ? xstrdup (opt->output)
                       : xasprintf ("%s.%s", slash ? slash + 1 : t->name, npy ? "npy" : "raw");
}

static int extract_tensor (struct slurmdl_checkpoint *c, const struct command_line *line,
                           const struct slurmdl_tensor *t, bool npy)
{
    struct slurmdl_error err = { "" };
    char *path = file_for (line->options, t, npy);
    char *file = xmalloc (NPY_HEADER + t->bytes);
    size_t n = npy ? npy_header (file, t) : 0;
    int rv = EXIT_OK;

    if (slurmdl_checkpoint_read (c, t->name, NULL, NULL, file + n, &err) < 0
        || publish_output (path, file, n + t->bytes, &err) < 0)
        rv = fail (&err);
    if (rv == EXIT_OK)
        printf ("%s\n", path);
    if (rv == EXIT_OK && npy && numpy_type (t->type)[1] == 'u'
        && *slurmdl_type_name (t->type) != 'u')
        complain ("%s: numpy has no %s; these are its bits", path, slurmdl_type_name (t->type));
    free (file);
    free (path);
    return rv;
}

static int ckpt_extract (const struct command_line *line)
{
    const struct ckpt_options *opt = line->options;
    bool raw = opt->format && !strcmp (opt->format, "raw");
    struct slurmdl_checkpoint *c;
    struct slurmdl_tensor t;
    int64_t i;
    int rv = 0;

    if (opt->format && !raw && strcmp (opt->format, "npy")) {
        complain ("--format: '%s' is neither npy nor raw", opt->format);
        return EXIT_USAGE;
    }
    if (!(c = ckpt_open (line->args[1], &rv)))
        return rv;
    i = slurmdl_checkpoint_find_tensor (c, line->args[2]);
    if (i < 0) {
        complain ("%s: no tensor '%s'; dl ckpt ls lists them", line->args[1], line->args[2]);
        rv = EXIT_NOT_FOUND;
    } else {
        slurmdl_checkpoint_info (c, (size_t)i, &t);
        rv = extract_tensor (c, line, &t, !raw);
    }
    slurmdl_checkpoint_close (c);
    return rv;
}

static int ckpt_export (const struct command_line *line)
{
    const struct ckpt_options *opt = line->options;
    struct slurmdl_error err = { "" };
    int rv = 0;
    struct slurmdl_checkpoint *c = ckpt_open (line->args[1], &rv);

    if (!c)
        return rv;
    if (safetensors_write (c, opt->prefix ? opt->prefix : "", line->args[2], &err) < 0)
        rv = fail (&err);
    slurmdl_checkpoint_close (c);
    return rv;
}

static int import_tensor (struct slurmdl_writer *w, const struct safetensors *s, size_t i,
                          struct slurmdl_error *err)
{
    void *data = xmalloc (s->list[i].bytes);
    int rv = safetensors_read (s, i, data, err);

    if (rv == 0)
        rv = slurmdl_writer_add (w, &s->list[i], data, err);
    free (data);
    return rv;
}

static int ckpt_import (const struct command_line *line)
{
    const struct ckpt_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct slurmdl_writer *w = NULL;
    struct safetensors s;
    int64_t step;
    int rv;

    if (safetensors_open (&s, line->args[1], &err) < 0)
        return fail (&err);
    step = opt->step >= 0 ? opt->step : s.step >= 0 ? s.step : 0;
    w = slurmdl_writer_open (line->args[2], step, &err);
    rv = w ? 0 : -1;
    if (w && !s.own && !opt->trust) {
        complain_owner (line->args[2], s.owner);
        slurmdl_writer_set_owner (w, s.owner);
    }
    for (size_t i = 0; rv == 0 && i < s.n; i++)
        rv = import_tensor (w, &s, i, &err);
    if (rv == 0)
        rv = slurmdl_writer_commit (w, &err);
    else
        slurmdl_writer_abort (w);
    safetensors_close (&s);
    return rv == 0 ? EXIT_OK : fail (&err);
}

/* ---- differences ---- */

/* Decode a float with the given numbers of exponent and mantissa bits. */
static double decode_small_float (unsigned bits, int exponent, int mantissa, bool ieee)
{
    int e = (int)(bits >> mantissa) & ((1 << exponent) - 1);
    int m = (int)bits & ((1 << mantissa) - 1);
    int bias = (1 << (exponent - 1)) - 1;
    double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;
    int top = (1 << exponent) - 1;

    if (e == top && ieee)
        return m ? NAN : sign * HUGE_VAL;
    if (e == top && m == (1 << mantissa) - 1)
        return NAN;
    if (e == 0)
        return sign * ldexp (m, 1 - bias - mantissa);
    return sign * ldexp (m + (1 << mantissa), e - bias - mantissa);
}

#define AS(ctype)                                                                                  \
    {                                                                                              \
        ctype v;                                                                                   \
        memcpy (&v, p + i * sizeof (v), sizeof (v));                                               \
        return (double)v;                                                                          \
    }

/* Return number 'i'.  A complex number counts as two. */
static double tensor_number (enum slurmdl_type type, const unsigned char *p, size_t i)
{
    uint16_t half;

    memcpy (&half, p + (slurmdl_type_size (type) == 2 ? i * 2 : 0),
            slurmdl_type_size (type) == 2 ? 2 : 0);
    switch (type) {
    case SLURMDL_I8:
        AS (int8_t)
    case SLURMDL_U8:
    case SLURMDL_BOOL:
        AS (uint8_t)
    case SLURMDL_I16:
        AS (int16_t)
    case SLURMDL_U16:
        AS (uint16_t)
    case SLURMDL_I32:
        AS (int32_t)
    case SLURMDL_U32:
        AS (uint32_t)
    case SLURMDL_I64:
        AS (int64_t)
    case SLURMDL_U64:
        AS (uint64_t)
    case SLURMDL_F32:
    case SLURMDL_C64:
        AS (float)
    case SLURMDL_F64:
    case SLURMDL_C128:
        AS (double)
    case SLURMDL_F16:
        return decode_small_float (half, 5, 10, true);
    case SLURMDL_BF16:
        return decode_small_float (half, 8, 7, true);
    case SLURMDL_F8_E4M3:
        return decode_small_float (p[i], 4, 3, false);
    case SLURMDL_F8_E5M2:
        return decode_small_float (p[i], 5, 2, true);
    }
    return NAN;
}

/* Return the largest difference between two tensors.  NaN and a number differ
 * infinitely.
 */
static double largest_difference (const struct slurmdl_tensor *t, const unsigned char *a,
                                  const unsigned char *b)
{
    bool pairs = t->type == SLURMDL_C64 || t->type == SLURMDL_C128;
    size_t n = t->bytes / slurmdl_type_size (t->type) * (pairs ? 2 : 1);
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        double x = tensor_number (t->type, a, i);
        double y = tensor_number (t->type, b, i);
        double d = x == y || (isnan (x) && isnan (y)) ? 0 : fabs (x - y);
        if (isnan (d))
            d = HUGE_VAL;
        if (d > most)
            most = d;
    }
    return most;
}

enum difference { SAME, VALUES, TYPE, SHAPE, ONLY_FIRST, ONLY_SECOND, UNREADABLE };

static const char *const difference_texts[] = {
    [SAME] = "same",
    [VALUES] = "values",
    [TYPE] = "type",
    [SHAPE] = "shape",
    [ONLY_FIRST] = "only in the first",
    [ONLY_SECOND] = "only in the second",
};

static enum difference compare_tensor_values (struct slurmdl_checkpoint *a,
                                              struct slurmdl_checkpoint *b,
                                              const struct slurmdl_tensor *t, double *most,
                                              struct slurmdl_error *err)
{
    unsigned char *x = xmalloc (t->bytes);
    unsigned char *y = xmalloc (t->bytes);
    enum difference d = UNREADABLE;

    if (slurmdl_checkpoint_read (a, t->name, NULL, NULL, x, err) == 0
        && slurmdl_checkpoint_read (b, t->name, NULL, NULL, y, err) == 0)
        d = memcmp (x, y, t->bytes) ? VALUES : SAME;
    if (d == VALUES)
        *most = largest_difference (t, x, y);
    free (x);
    free (y);
    return d;
}

static enum difference compare_tensor (struct slurmdl_checkpoint *a, struct slurmdl_checkpoint *b,
                                       const struct slurmdl_tensor *t, double *most,
                                       struct slurmdl_error *err)
{
    int64_t i = slurmdl_checkpoint_find_tensor (b, t->name);
    struct slurmdl_tensor u;

    *most = 0;
    if (i < 0 || slurmdl_checkpoint_info (b, (size_t)i, &u) < 0)
        return ONLY_FIRST;
    if (u.type != t->type)
        return TYPE;
    if (u.ndims != t->ndims || memcmp (u.dims, t->dims, sizeof (u.dims)))
        return SHAPE;
    return compare_tensor_values (a, b, t, most, err);
}

static void report_difference (const char *name, enum difference d, double most, json_t *list)
{
    json_t *v;

    if (d == SAME)
        return;
    if (list) {
        v = json_pack ("{s:s, s:s}", "name", name, "difference", difference_texts[d]);
        if (d == VALUES)
            json_object_set_new (v, "largest",
                                 isfinite (most) ? json_real (most) : json_string ("inf"));
        json_array_append_new (list, v);
    } else if (d == VALUES)
        printf ("%s: values differ by at most %g\n", name, most);
    else if (d == TYPE || d == SHAPE)
        printf ("%s: different %s\n", name, difference_texts[d]);
    else
        printf ("%s: %s\n", name, difference_texts[d]);
}

/* Return the number of differences, or -1 with 'err'. */
static long compare_all (struct slurmdl_checkpoint *a, struct slurmdl_checkpoint *b, json_t *list,
                         struct slurmdl_error *err)
{
    struct slurmdl_tensor t;
    double most;
    long n = 0;

    for (size_t i = 0; slurmdl_checkpoint_info (a, i, &t) == 0; i++) {
        enum difference d = compare_tensor (a, b, &t, &most, err);
        if (d == UNREADABLE)
            return -1;
        report_difference (t.name, d, most, list);
        n += d != SAME;
    }
    for (size_t i = 0; slurmdl_checkpoint_info (b, i, &t) == 0; i++)
        if (slurmdl_checkpoint_find_tensor (a, t.name) < 0) {
            report_difference (t.name, ONLY_SECOND, 0, list);
            n++;
        }
    return n;
}

static int ckpt_diff (const struct command_line *line)
{
    const struct ckpt_options *opt = line->options;
    struct slurmdl_error err = { "" };
    int rv = 0;
    struct slurmdl_checkpoint *a = ckpt_open (line->args[1], &rv);
    struct slurmdl_checkpoint *b = a ? ckpt_open (line->args[2], &rv) : NULL;
    json_t *list = opt->json ? json_array () : NULL;
    long n = 0;

    if (b && (n = compare_all (a, b, list, &err)) < 0)
        rv = fail (&err);
    if (b && n >= 0) {
        rv = n ? EXIT_FAILED : EXIT_OK;
        if (list && (json_put (list, stdout, JSON_INDENT (2)) < 0 || puts ("") < 0))
            rv = EXIT_IO;
    }
    json_decref (list);
    slurmdl_checkpoint_close (a);
    slurmdl_checkpoint_close (b);
    return rv;
}

/* ---- list and verify ---- */

static json_t *tensor_json (const struct slurmdl_tensor *t)
{
    json_t *shape = json_array ();

    for (int i = 0; i < t->ndims; i++)
        json_array_append_new (shape, json_integer ((json_int_t)t->dims[i]));
    return json_pack ("{s:s, s:s, s:o, s:I, s:i, s:b}", "name", t->name, "type",
                      slurmdl_type_name (t->type), "shape", shape, "bytes", (json_int_t)t->bytes,
                      "shards", (int)t->shards, "state", t->state != 0);
}

static int print_ckpt_json (json_t *v)
{
    int rv = v ? json_put (v, stdout, JSON_INDENT (2)) : -1;

    json_decref (v);
    if (rv < 0 || puts ("") < 0) {
        complain ("cannot write standard output");
        return EXIT_IO;
    }
    return EXIT_OK;
}

static int print_tensors_json (struct slurmdl_checkpoint *c)
{
    json_t *tensors = json_array ();
    struct slurmdl_tensor t;

    for (size_t i = 0; slurmdl_checkpoint_info (c, i, &t) == 0; i++)
        json_array_append_new (tensors, tensor_json (&t));
    return print_ckpt_json (json_pack (
        "{s:I, s:o}", "step", (json_int_t)slurmdl_checkpoint_step (c), "tensors", tensors));
}

static void add_tensor_line (struct libscols_table *tb, const struct slurmdl_tensor *t)
{
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    char shape[256], bytes[32], shards[32];

    ckpt_shape (shape, sizeof (shape), t);
    snprintf (bytes, sizeof (bytes), "%" PRIu64, t->bytes);
    snprintf (shards, sizeof (shards), "%u", t->shards);
    scols_line_set_data (line, 0, t->name);
    scols_line_set_data (line, 1, t->state ? "state" : slurmdl_type_name (t->type));
    scols_line_set_data (line, 2, shape);
    scols_line_set_data (line, 3, bytes);
    scols_line_set_data (line, 4, shards);
}

static void print_tensor_table (struct slurmdl_checkpoint *c)
{
    struct libscols_table *tb = scols_new_table ();
    struct slurmdl_tensor t;
    uint64_t sum = 0;
    size_t i;

    if (!tb)
        out_of_memory ();
    scols_table_new_column (tb, "TENSOR", 0, 0);
    scols_table_new_column (tb, "TYPE", 0, 0);
    scols_table_new_column (tb, "SHAPE", 0, 0);
    scols_table_new_column (tb, "BYTES", 0, SCOLS_FL_RIGHT);
    scols_table_new_column (tb, "SHARDS", 0, SCOLS_FL_RIGHT);
    for (i = 0; slurmdl_checkpoint_info (c, i, &t) == 0; i++) {
        add_tensor_line (tb, &t);
        sum += t.bytes;
    }
    printf ("step %lld: %zu tensors, %" PRIu64 " bytes\n", (long long)slurmdl_checkpoint_step (c),
            i, sum);
    scols_print_table (tb);
    scols_unref_table (tb);
}

static int ckpt_ls (const struct command_line *line)
{
    const struct ckpt_options *opt = line->options;
    int rv = EXIT_OK;
    struct slurmdl_checkpoint *c = ckpt_open (line->args[1], &rv);

    if (!c)
        return rv;
    if (opt->json)
        rv = print_tensors_json (c);
    else
        print_tensor_table (c);
    slurmdl_checkpoint_close (c);
    return rv;
}

struct verified {
    json_t *list; /* NULL: print lines instead */
    int rv;
};

static void verify_file (const char *path, void *arg)
{
    struct verified *v = arg;
    struct slurmdl_error err = { "" };
    int64_t step = -1;
    bool good = slurmdl_checkpoint_verify (path, &step, &err) == 0;

    if (!good)
        v->rv = fail (&err);
    else if (!v->list)
        printf ("%s: step %lld, all checksums match\n", path, (long long)step);
    if (v->list)
        json_array_append_new (v->list, json_pack ("{s:s, s:b, s:I}", "path", path, "whole", good,
                                                   "step", (json_int_t)step));
}

static int verify_checkpoint (const struct command_line *line)
{
    const struct ckpt_options *opt = line->options;
    struct verified v = { opt->json ? json_array () : NULL, EXIT_OK };

    for (char **path = line->args + 1; *path; path++)
        if (ckpt_each (*path, verify_file, &v) == 0) {
            complain ("%s: there is no checkpoint in this folder", *path);
            v.rv = EXIT_NOT_FOUND;
        }
    return v.list && print_ckpt_json (v.list) ? EXIT_IO : v.rv;
}

static const struct subcommand ckpt_subcommands[] = {
    { "ls", "FILE", 1, 1, ckpt_ls },
    { "verify", "FILE...", 1, -1, verify_checkpoint },
    { "extract", "FILE TENSOR", 2, 2, ckpt_extract },
    { "diff", "FILE FILE", 2, 2, ckpt_diff },
    { "export", "FILE OUTPUT.safetensors", 2, 2, ckpt_export },
    { "import", "FILE.safetensors OUTPUT.h5", 2, 2, ckpt_import },
    { 0 },
};

void ckpt_words (void)
{
    subcommand_words (ckpt_subcommands);
}

int cmd_ckpt (const struct command_line *line)
{
    int rv = subcommand_run ("ckpt", ckpt_subcommands, line);

    if (rv >= 0)
        return rv;
    complain ("no command 'dl ckpt %s'; there are ls, verify, extract, diff, export and import",
              line->args[0]);
    return EXIT_USAGE;
}
