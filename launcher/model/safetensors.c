/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write safetensors. */
#include "launcher/model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"
#include "runtime/storage/origin.h"

/* The format's own limit. */
enum { HEADER_MAX = 100000000 };

static const struct {
    enum slurmdl_type type;
    const char *name;
} tensor_types[] = {
    { SLURMDL_BOOL, "BOOL" },       { SLURMDL_U8, "U8" },           { SLURMDL_I8, "I8" },
    { SLURMDL_F8_E5M2, "F8_E5M2" }, { SLURMDL_F8_E4M3, "F8_E4M3" }, { SLURMDL_I16, "I16" },
    { SLURMDL_U16, "U16" },         { SLURMDL_F16, "F16" },         { SLURMDL_BF16, "BF16" },
    { SLURMDL_I32, "I32" },         { SLURMDL_U32, "U32" },         { SLURMDL_F32, "F32" },
    { SLURMDL_C64, "C64" },         { SLURMDL_F64, "F64" },         { SLURMDL_I64, "I64" },
    { SLURMDL_U64, "U64" },
};

enum { TYPES = sizeof (tensor_types) / sizeof (*tensor_types) };

static const char *safetensors_type_name (enum slurmdl_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (tensor_types[i].type == type)
            return tensor_types[i].name;
    return NULL;
}

static int safetensors_type (const char *name, enum slurmdl_type *type)
{
    for (int i = 0; name && i < TYPES; i++)
        if (!strcmp (tensor_types[i].name, name)) {
            *type = tensor_types[i].type;
            return 0;
        }
    return -1;
}

/* ---- read ---- */

static int bad_safetensors (const char *path, const char *what, struct slurmdl_error *err)
{
    errno = EBADMSG;
    return errorf (err, "%s: is not a safetensors file: %s", path, what);
}

static int not_ours (const char *path, const char *name, const char *what,
                     struct slurmdl_error *err)
{
    errno = ENOTSUP;
    return errorf (err, "%s: '%s' cannot be stored in a checkpoint: %s", path, name, what);
}

static bool natural (const json_t *v, uint64_t *n)
{
    if (!json_is_integer (v) || json_integer_value (v) < 0)
        return false;
    *n = (uint64_t)json_integer_value (v);
    return true;
}

static int read_shape (const json_t *shape, struct slurmdl_tensor *t, const char *path,
                       struct slurmdl_error *err)
{
    t->bytes = slurmdl_type_size (t->type);
    if (!json_is_array (shape))
        return bad_safetensors (path, "a shape is missing", err);
    if (json_array_size (shape) > SLURMDL_DIMS_MAX)
        return not_ours (path, t->name, "more than 8 dimensions", err);
    t->ndims = (int)json_array_size (shape);
    for (int i = 0; i < t->ndims; i++)
        if (!natural (json_array_get (shape, (size_t)i), &t->dims[i])
            || __builtin_mul_overflow (t->bytes, t->dims[i], &t->bytes))
            return bad_safetensors (path, "an impossible shape", err);
    return 0;
}

static int read_tensor_place (const json_t *place, const struct slurmdl_tensor *t, uint64_t size,
                              uint64_t *begin, const char *path, struct slurmdl_error *err)
{
    uint64_t end;

    if (!json_is_array (place) || json_array_size (place) != 2
        || !natural (json_array_get (place, 0), begin) || !natural (json_array_get (place, 1), &end)
        || end < *begin || end > size || end - *begin != t->bytes)
        return bad_safetensors (path, "data_offsets do not fit the shape or the file", err);
    return 0;
}

static int read_tensor_entry (struct safetensors *s, const char *name, const json_t *v,
                              uint64_t size, const char *path, struct slurmdl_error *err)
{
    struct slurmdl_tensor *t = &s->list[s->n];
    const char *type;
    char what[64];

    if (strlen (name) >= sizeof (t->name))
        return not_ours (path, name, "the name is longer than 127 bytes", err);
    memcpy (t->name, name, strlen (name) + 1);
    if (!json_is_object (v) || !json_is_string (json_object_get (v, "dtype")))
        return bad_safetensors (path, "a tensor without a dtype", err);
    type = json_string_value (json_object_get (v, "dtype"));
    if (safetensors_type (type, &t->type) < 0) {
        snprintf (what, sizeof (what), "its dtype '%.32s'", type);
        return not_ours (path, name, what, err);
    }
    if (read_shape (json_object_get (v, "shape"), t, path, err) < 0
        || read_tensor_place (json_object_get (v, "data_offsets"), t, size, &s->offsets[s->n], path,
                              err)
               < 0)
        return -1;
    s->n++;
    return 0;
}

/* Use the recorded owner only if the file is the user's own.  Otherwise the data belong
 * to the owner of the file.
 */
static void read_owner (struct safetensors *s, const json_t *v)
{
    const char *text = json_string_value (json_object_get (v, "slurmdl_owner"));
    unsigned long id;
    char *end;

    if (!text || !s->own)
        return;
    id = strtoul (text, &end, 10);
    s->owner = *text && !*end && id < ORIGIN_OTHERS ? (uint32_t)id : ORIGIN_OTHERS;
    s->own = s->owner == 0 || s->owner == geteuid ();
}

static int read_metadata (struct safetensors *s, const json_t *v, const char *path,
                          struct slurmdl_error *err)
{
    const char *key;
    json_t *value;
    json_t *step = json_object_get (v, "slurmdl_step");
    char *end;
    long long n;

    if (!json_is_object (v))
        return bad_safetensors (path, "__metadata__ is not an object", err);
    json_object_foreach ((json_t *)v, key, value)
        if (!json_is_string (value))
            return bad_safetensors (path, "__metadata__ has a value that is not a string", err);
    read_owner (s, v);
    if (!step)
        return 0;
    errno = 0;
    n = strtoll (json_string_value (step), &end, 10);
    if (!*end && end != json_string_value (step) && n >= 0 && errno == 0)
        s->step = n;
    return 0;
}

struct tensor_order {
    uint64_t at;
    size_t i;
};

static int by_tensor_place (const void *a, const void *b)
{
    const struct tensor_order *x = a;
    const struct tensor_order *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

/* Sort the tensors by the place of their data.  Every byte must belong to exactly one
 * tensor.
 */
static int put_in_order (struct safetensors *s, uint64_t size, const char *path,
                         struct slurmdl_error *err)
{
    struct tensor_order *order = xcalloc (s->n + 1, sizeof (*order));
    struct slurmdl_tensor *list = xcalloc (s->n + 1, sizeof (*list));
    uint64_t at = 0;
    int rv = 0;

    for (size_t i = 0; i < s->n; i++)
        /* at the same place, empty tensors come first */
        order[i] = (struct tensor_order){ s->offsets[i], s->list[i].bytes ? s->n + i : i };
    qsort (order, s->n, sizeof (*order), by_tensor_place);
    for (size_t i = 0; i < s->n && rv == 0; i++) {
        list[i] = s->list[order[i].i % (s->n ? s->n : 1)];
        if (order[i].at != at)
            rv = bad_safetensors (path, "data overlap, or belong to no tensor", err);
        s->offsets[i] = order[i].at;
        at += list[i].bytes;
    }
    if (rv == 0 && at != size)
        rv = bad_safetensors (path, "data belong to no tensor", err);
    free (order);
    free (s->list);
    s->list = list;
    return rv;
}

static int read_tensor_entries (struct safetensors *s, json_t *header, uint64_t base, uint64_t size,
                                const char *path, struct slurmdl_error *err)
{
    const char *name;
    json_t *v;
    size_t n = json_object_size (header);

    s->list = xcalloc (n + 1, sizeof (*s->list));
    s->offsets = xcalloc (n + 1, sizeof (*s->offsets));
    json_object_foreach (header, name, v) {
        if (!strcmp (name, "__metadata__")) {
            if (read_metadata (s, v, path, err) < 0)
                return -1;
        } else if (read_tensor_entry (s, name, v, size, path, err) < 0)
            return -1;
    }
    if (put_in_order (s, size, path, err) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        s->offsets[i] += base;
    return 0;
}

static int read_header (struct safetensors *s, const char *path, struct slurmdl_error *err)
{
    unsigned char length[8];
    struct stat st;
    uint64_t n = 0;
    json_t *header;
    char *text;
    int rv;

    if (fstat (s->fd, &st) < 0)
        return errorf (err, "%s: %s", path, strerror (errno));
    s->own = origin_is_own (s->fd, &st, &s->owner);
    if (st.st_size < 8 || io_read_at (s->fd, length, 8, 0) < 0)
        return bad_safetensors (path, "it is too short", err);
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > HEADER_MAX || n > (uint64_t)st.st_size - 8)
        return bad_safetensors (path, "the length of its header is wrong", err);
    text = xmalloc (n + 1);
    if (io_read_at (s->fd, text, n, 8) < 0) {
        free (text);
        return errorf (err, "%s: %s", path, strerror (errno));
    }
    header = n && *text == '{' ? json_loadb (text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free (text);
    if (!json_is_object (header)) {
        json_decref (header);
        return bad_safetensors (path, "its header is not a JSON object", err);
    }
    rv = read_tensor_entries (s, header, 8 + n, (uint64_t)st.st_size - 8 - n, path, err);
    json_decref (header);
    return rv;
}

int safetensors_open (struct safetensors *s, const char *path, struct slurmdl_error *err)
{
    *s = (struct safetensors){ .step = -1 };
    if ((s->fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        return errorf (err, "%s: %s", path, strerror (errno));
    if (read_header (s, path, err) == 0)
        return 0;
    safetensors_close (s);
    return -1;
}

int safetensors_read (const struct safetensors *s, size_t i, void *data, struct slurmdl_error *err)
{
    if (io_read_at (s->fd, data, s->list[i].bytes, (off_t)s->offsets[i]) == 0)
        return 0;
    return errorf (err, "'%s': cannot read: %s", s->list[i].name, strerror (errno));
}

void safetensors_close (struct safetensors *s)
{
    int e = errno;

    if (s->fd >= 0)
        close (s->fd);
    s->fd = -1;
    free (s->list);
    free (s->offsets);
    s->list = NULL;
    s->offsets = NULL;
    errno = e;
}

/* ---- write ---- */

static json_t *entry_of (const struct slurmdl_tensor *t, uint64_t at)
{
    json_t *shape = json_array ();

    for (int i = 0; i < t->ndims; i++)
        json_array_append_new (shape, json_integer ((json_int_t)t->dims[i]));
    return json_pack ("{s:s, s:o, s:[I,I]}", "dtype", safetensors_type_name (t->type), "shape",
                      shape, "data_offsets", (json_int_t)at, (json_int_t)(at + t->bytes));
}

static bool has_prefix (const struct slurmdl_tensor *t, const char *prefix)
{
    return !strncmp (t->name, prefix, strlen (prefix)) && t->name[strlen (prefix)];
}

static json_t *make_header (struct slurmdl_checkpoint *c, const char *prefix,
                            struct slurmdl_error *err)
{
    json_t *header = json_object ();
    struct slurmdl_origin origin;
    struct slurmdl_tensor t;
    uint64_t at = 0;
    char step[32], owner[16];
    bool own;

    snprintf (step, sizeof (step), "%lld", (long long)slurmdl_checkpoint_step (c));
    if (slurmdl_checkpoint_origin (c, &origin) < 0)
        origin = (struct slurmdl_origin){ .owner = ORIGIN_OTHERS };
    own = origin.own;
    snprintf (owner, sizeof (owner), "%u", origin.owner);
    json_object_set_new (header, "__metadata__",
                         json_pack ("{s:s, s:s, s:s*}", "format", "pt", "slurmdl_step", step,
                                    "slurmdl_owner", own ? NULL : owner));
    for (size_t i = 0; slurmdl_checkpoint_info (c, i, &t) == 0; i++) {
        if (!has_prefix (&t, prefix))
            continue;
        if (!safetensors_type_name (t.type)) {
            errno = ENOTSUP;
            errorf (err, "'%s': safetensors has no type %s", t.name, slurmdl_type_name (t.type));
            json_decref (header);
            return NULL;
        }
        if (json_object_set_new (header, t.name + strlen (prefix), entry_of (&t, at)) < 0) {
            errno = ENOTSUP;
            errorf (err, "'%s': the name is not UTF-8", t.name);
            json_decref (header);
            return NULL;
        }
        at += t.bytes;
    }
    if (*prefix && json_object_size (header) == 1) {
        errno = ENOENT;
        errorf (err, "no tensor name starts with '%s'", prefix);
        json_decref (header);
        return NULL;
    }
    return header;
}

/* Write the header, padded with spaces so that the data are aligned. */
static int write_header (int fd, const json_t *header, off_t *end)
{
    char *text = json_dumps (header, JSON_COMPACT);
    size_t n = text ? strlen (text) : 0;
    size_t padded = (n + 7) / 8 * 8;
    unsigned char length[8];
    int rv = -1;

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    if (text && io_write_at (fd, length, 8, 0) == 0 && io_write_at (fd, text, n, 8) == 0
        && io_write_at (fd, "       ", padded - n, (off_t)(8 + n)) == 0)
        rv = 0;
    free (text);
    *end = (off_t)(8 + padded);
    return rv;
}

static int write_tensor_data (int fd, struct slurmdl_checkpoint *c, const struct slurmdl_tensor *t,
                              off_t *at, struct slurmdl_error *err)
{
    void *data = xmalloc (t->bytes);
    int rv = slurmdl_checkpoint_read (c, t->name, NULL, NULL, data, err);

    if (rv == 0)
        rv = io_write_at (fd, data, t->bytes, *at);
    *at += (off_t)t->bytes;
    free (data);
    return rv;
}

static int write_all_tensors (int fd, struct slurmdl_checkpoint *c, const char *prefix,
                              struct slurmdl_error *err)
{
    json_t *header = make_header (c, prefix, err);
    struct slurmdl_tensor t;
    off_t at;
    int rv = header ? write_header (fd, header, &at) : -1;

    json_decref (header);
    for (size_t i = 0; rv == 0 && slurmdl_checkpoint_info (c, i, &t) == 0; i++)
        if (has_prefix (&t, prefix))
            rv = write_tensor_data (fd, c, &t, &at, err);
    return rv < 0 || fsync (fd) < 0 ? -1 : 0;
}

int safetensors_write (struct slurmdl_checkpoint *c, const char *prefix, const char *path,
                       struct slurmdl_error *err)
{
    char tmp[PATH_MAX];
    int fd;
    int rv;
    int e;

    if (link_may_replace (path, err) < 0)
        return -1;
    link_tmp_name (tmp, sizeof (tmp), path);
    if ((fd = open (tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        return errorf (err, "%s: cannot write: %s", path, strerror (errno));
    rv = write_all_tensors (fd, c, prefix, err);
    if (close (fd) < 0)
        rv = -1;
    if (rv == 0)
        rv = link_replace (tmp, path);
    if (rv == 0)
        return 0;
    e = errno;
    unlink (tmp);
    errno = e;
    return errorf (err, "%s: cannot write: %s", path, strerror (errno));
}
