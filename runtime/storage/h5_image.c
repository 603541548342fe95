/* SPDX-License-Identifier: Apache-2.0 */
/* Build the metadata of an HDF5 file. libhdf5 would take 10 us per dataset for it. */
#include "runtime/storage/h5_image.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"

/* The format follows the "HDF5 File Format Specification Version 2.0": superblock 0
 * with version 1 object headers and B-trees, as libhdf5 writes with
 * H5F_LIBVER_EARLIEST.
 */
enum {
    LEAF = 8,      /* entries per symbol table node: twice the leaf K */
    CHILDREN = 32, /* per B-tree node: twice the internal K */
    ENTRY_BYTES = 40,
    TREE_BYTES = 24 + (2 * CHILDREN + 1) * 8,
    NO_FREE = 1, /* a heap without free blocks */
    CACHED = 1,  /* the entry caches the addresses of a group's B-tree and heap */
};
static const uint64_t undefined = UINT64_MAX;

/* Types of object header messages.  CONSTANT is a flag. */
enum { SPACE = 1, TYPE = 3, FILL = 5, LAYOUT = 8, ATTRIBUTE = 12, SYMBOLS = 17, CONSTANT = 1 };

/* ---- bytes ---- */

struct h5_bytes {
    unsigned char *data;
    size_t n, room;
    uint64_t base; /* file offset of data[0] */
    bool failed;
};

static void put_bytes (struct h5_bytes *w, const void *data, size_t n)
{
    void *bytes = w->data;

    if (w->failed || array_reserve (&bytes, &w->room, w->n, n, 1) < 0) {
        w->failed = true;
        return;
    }
    w->data = bytes;
    if (data)
        memcpy (w->data + w->n, data, n);
    else
        memset (w->data + w->n, 0, n);
    w->n += n;
}

static void put_byte (struct h5_bytes *w, unsigned value)
{
    uint8_t v = (uint8_t)value;

    put_bytes (w, &v, sizeof (v));
}

static void put16 (struct h5_bytes *w, unsigned value)
{
    uint16_t v = (uint16_t)value;

    put_bytes (w, &v, sizeof (v));
}

static void put32 (struct h5_bytes *w, size_t value)
{
    uint32_t v = (uint32_t)value;

    put_bytes (w, &v, sizeof (v));
}

static void put_uint64 (struct h5_bytes *w, uint64_t v)
{
    put_bytes (w, &v, sizeof (v));
}

/* Pad with zeros to a multiple of 8 bytes from 'start'. */
static void put_padding (struct h5_bytes *w, size_t start)
{
    put_bytes (w, NULL, (0 - (w->n - start)) % 8);
}

static void put_h5_name (struct h5_bytes *w, const char *name, size_t n)
{
    size_t start = w->n;

    put_bytes (w, name, n);
    put_byte (w, 0);
    put_padding (w, start);
}

static void set_bytes (struct h5_bytes *w, size_t at, const void *value, size_t n)
{
    if (!w->failed)
        memcpy (w->data + at, value, n);
}

static uint64_t bytes_offset (const struct h5_bytes *w)
{
    return w->base + w->n;
}

/* ---- types ---- */

enum type_class {
    INTEGER = 0x10,
    FLOATING = 0x11,
    STRING = 0x13,
    ENUM = 0x18,
    COMPOUND = 0x26,
    ARRAY = 0x2a
};

static void put_class (struct h5_bytes *w, enum type_class class, unsigned bits, unsigned more,
                       size_t size)
{
    put_byte (w, class);
    put_byte (w, bits);
    put_byte (w, more);
    put_byte (w, 0);
    put32 (w, size);
}

static void put_integer (struct h5_bytes *w, size_t size, bool is_signed)
{
    put_class (w, INTEGER, is_signed ? 8 : 0, 0, size);
    put16 (w, 0);
    put16 (w, (unsigned)size * 8);
}

static void put_float (struct h5_bytes *w, size_t size, unsigned exponent)
{
    enum { NORMALIZED = 0x20 }; /* the first bit of the mantissa is implied */
    unsigned bits = (unsigned)size * 8;
    unsigned mantissa = bits - 1 - exponent;

    put_class (w, FLOATING, NORMALIZED, bits - 1, size);
    put16 (w, 0);
    put16 (w, bits);
    put_byte (w, mantissa);
    put_byte (w, exponent);
    put_byte (w, 0);
    put_byte (w, mantissa);
    put32 (w, (1U << (exponent - 1)) - 1);
}

/* Booleans and complex numbers are stored as h5py stores them. */
static void put_boolean (struct h5_bytes *w)
{
    put_class (w, ENUM, 2, 0, 1);
    put_integer (w, 1, true);
    put_h5_name (w, "FALSE", 5);
    put_h5_name (w, "TRUE", 4);
    put_byte (w, 0);
    put_byte (w, 1);
}

static void put_complex (struct h5_bytes *w, size_t size, unsigned exponent)
{
    put_class (w, COMPOUND, 2, 0, size);
    put_h5_name (w, "r", 1);
    put32 (w, 0);
    put_float (w, size / 2, exponent);
    put_h5_name (w, "i", 1);
    put32 (w, size / 2);
    put_float (w, size / 2, exponent);
}

static void put_type (struct h5_bytes *w, enum slurmdl_type type)
{
    size_t size = slurmdl_type_size (type);

    switch (type) {
    case SLURMDL_I8:
    case SLURMDL_I16:
    case SLURMDL_I32:
    case SLURMDL_I64:
        put_integer (w, size, true);
        break;
    case SLURMDL_U8:
    case SLURMDL_U16:
    case SLURMDL_U32:
    case SLURMDL_U64:
    /* HDF5's conversions assume that the largest exponent means what it does in
     * IEEE 754
     */
    case SLURMDL_F8_E4M3:
    case SLURMDL_F8_E5M2:
        put_integer (w, size, false);
        break;
    case SLURMDL_F16:
        put_float (w, size, 5);
        break;
    case SLURMDL_BF16:
    case SLURMDL_F32:
        put_float (w, size, 8);
        break;
    case SLURMDL_F64:
        put_float (w, size, 11);
        break;
    case SLURMDL_BOOL:
        put_boolean (w);
        break;
    case SLURMDL_C64:
        put_complex (w, size, 8);
        break;
    case SLURMDL_C128:
        put_complex (w, size, 11);
        break;
    }
}

static void put_h5_member (struct h5_bytes *w, enum h5_member_kind kind)
{
    enum { ENDS_WITH_ZEROS = 1 };

    switch (kind) {
    case H5_U32:
        put_integer (w, 4, false);
        break;
    case H5_U64:
        put_integer (w, 8, false);
        break;
    case H5_DIMS:
        put_class (w, ARRAY, 0, 0, (size_t)8 * SLURMDL_DIMS_MAX);
        put32 (w, 1); /* number of dimensions */
        put32 (w, SLURMDL_DIMS_MAX);
        put32 (w, 0); /* not permuted */
        put_integer (w, 8, false);
        break;
    case H5_NAME:
        put_class (w, STRING, ENDS_WITH_ZEROS, 0, SLURMDL_NAME_SIZE);
        break;
    }
}

static void put_compound (struct h5_bytes *w, const struct h5_member *members, size_t size)
{
    unsigned n = 0;

    while (members[n].name)
        n++;
    put_class (w, COMPOUND, n, 0, size);
    for (; members->name; members++) {
        put_h5_name (w, members->name, strlen (members->name));
        put32 (w, members->offset);
        put_h5_member (w, members->kind);
    }
}

/* ---- objects ---- */

/* Begin an object header, whose length end_header() fills in. begin_message() and
 * end_message() do the same for a message.
 */
static size_t begin_header (struct h5_bytes *w, unsigned messages)
{
    put_byte (w, 1); /* version */
    put_byte (w, 0);
    put16 (w, messages);
    put32 (w, 1); /* reference count */
    put_uint64 (w, 0);
    return w->n;
}

static void end_header (struct h5_bytes *w, size_t start)
{
    uint32_t n = (uint32_t)(w->n - start);

    set_bytes (w, start - 8, &n, sizeof (n));
}

static size_t begin_message (struct h5_bytes *w, unsigned type, unsigned flags)
{
    put16 (w, type);
    put16 (w, 0);
    put32 (w, flags);
    return w->n;
}

static void end_message (struct h5_bytes *w, size_t start)
{
    uint16_t n;

    put_padding (w, start);
    n = (uint16_t)(w->n - start);
    set_bytes (w, start - 6, &n, sizeof (n));
}

static void put_space (struct h5_bytes *w, int ndims, const uint64_t *dims)
{
    put_byte (w, 1); /* version */
    put_byte (w, (unsigned)ndims);
    put16 (w, 0);
    put32 (w, 0);
    put_bytes (w, dims, (size_t)ndims * sizeof (*dims));
}

static uint64_t put_dataset (struct h5_bytes *w, const struct h5_dataset *d)
{
    enum { CONTIGUOUS = 1, EARLY = 1, NEVER = 1, DEFAULT = 1 };
    uint64_t at = bytes_offset (w);
    size_t header = begin_header (w, 4);
    size_t m = begin_message (w, SPACE, 0);

    put_space (w, d->ndims, d->dims);
    end_message (w, m);
    m = begin_message (w, TYPE, CONSTANT);
    if (d->members)
        put_compound (w, d->members, d->size);
    else
        put_type (w, d->type);
    end_message (w, m);
    m = begin_message (w, FILL, CONSTANT);
    put_byte (w, 2); /* version */
    put_byte (w, EARLY);
    put_byte (w, NEVER);
    put_byte (w, DEFAULT);
    put32 (w, 0);
    end_message (w, m);
    m = begin_message (w, LAYOUT, 0);
    put_byte (w, 3); /* version */
    put_byte (w, CONTIGUOUS);
    put_uint64 (w, d->bytes ? d->offset : undefined);
    put_uint64 (w, d->bytes);
    end_message (w, m);
    end_header (w, header);
    return at;
}

static void put_attribute (struct h5_bytes *w, const struct h5_attribute *a)
{
    enum { TYPE_BYTES = 12, SPACE_BYTES = 8 };
    size_t m = begin_message (w, ATTRIBUTE, 0);
    size_t at;

    put_byte (w, 1); /* version */
    put_byte (w, 0);
    put16 (w, (unsigned)strlen (a->name) + 1);
    put16 (w, TYPE_BYTES);
    put16 (w, SPACE_BYTES);
    put_h5_name (w, a->name, strlen (a->name));
    at = w->n;
    put_integer (w, 8, true);
    put_padding (w, at);
    put_space (w, 0, NULL);
    put_uint64 (w, (uint64_t)a->value);
    end_message (w, m);
}

/* ---- groups ---- */

/* A member of a group.  'heap' is 0 for a dataset. */
struct h5_child {
    const char *name;
    size_t length;
    uint64_t header, tree, heap;
    uint64_t name_at; /* offset in the group's heap */
};

struct h5_group {
    uint64_t header, tree, heap;
};

/* A B-tree or symbol table node.  'last' is the heap offset of its last name. */
struct h5_node {
    uint64_t at, last;
};

static uint64_t put_heap (struct h5_bytes *w, struct h5_child *list, size_t n)
{
    uint64_t at = bytes_offset (w);
    uint64_t bytes;
    size_t names;

    put_bytes (w, "HEAP\0\0\0", 8);
    put_uint64 (w, 0);
    put_uint64 (w, NO_FREE);
    put_uint64 (w, bytes_offset (w) + 8);
    names = w->n;
    put_uint64 (w, 0); /* the empty name sorts before all others */
    for (size_t i = 0; i < n; i++) {
        list[i].name_at = w->n - names;
        put_h5_name (w, list[i].name, list[i].length);
    }
    bytes = w->n - names;
    set_bytes (w, names - 24, &bytes, sizeof (bytes));
    return at;
}

static void put_entry (struct h5_bytes *w, const struct h5_child *c)
{
    put_uint64 (w, c->name_at);
    put_uint64 (w, c->header);
    put_uint64 (w, c->heap ? CACHED : 0);
    put_uint64 (w, c->tree);
    put_uint64 (w, c->heap);
}

/* Write the symbol table nodes and list them in 'nodes', which has room for them. */
static size_t put_leaves (struct h5_bytes *w, const struct h5_child *list, size_t n,
                          struct h5_node *nodes)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i += LEAF) {
        size_t here = n - i < LEAF ? n - i : LEAF;
        nodes[count++] = (struct h5_node){ bytes_offset (w), list[i + here - 1].name_at };
        put_bytes (w, "SNOD\1", 6);
        put16 (w, (unsigned)here);
        for (size_t k = 0; k < here; k++)
            put_entry (w, &list[i + k]);
        put_bytes (w, NULL, (LEAF - here) * ENTRY_BYTES);
    }
    return count;
}

/* Write the B-tree level above 'nodes', and list its nodes there instead. */
static size_t put_level (struct h5_bytes *w, struct h5_node *nodes, size_t n, unsigned level)
{
    uint64_t left = undefined;
    uint64_t before = 0; /* last name of the left sibling */
    size_t count = 0;

    for (size_t i = 0; i < n; i += CHILDREN) {
        size_t here = n - i < CHILDREN ? n - i : CHILDREN;
        uint64_t at = bytes_offset (w);
        put_bytes (w, "TREE", 5);
        put_byte (w, level);
        put16 (w, (unsigned)here);
        put_uint64 (w, left);
        put_uint64 (w, i + here < n ? at + TREE_BYTES : undefined);
        put_uint64 (w, before);
        for (size_t k = 0; k < here; k++) {
            put_uint64 (w, nodes[i + k].at);
            put_uint64 (w, nodes[i + k].last);
        }
        put_bytes (w, NULL, (CHILDREN - here) * 16);
        before = nodes[i + here - 1].last;
        nodes[count++] = (struct h5_node){ at, before };
        left = at;
    }
    return count;
}

static uint64_t put_tree (struct h5_bytes *w, const struct h5_child *list, size_t n)
{
    struct h5_node *nodes = malloc ((n / LEAF + 1) * sizeof (*nodes));
    unsigned level = 0;
    uint64_t at;

    if (!nodes) {
        w->failed = true;
        return undefined;
    }
    n = put_leaves (w, list, n, nodes);
    do
        n = put_level (w, nodes, n, level++);
    while (n > 1);
    at = nodes[0].at;
    free (nodes);
    return at;
}

static struct h5_group put_symbols (struct h5_bytes *w, struct h5_child *list, size_t n,
                                    const struct h5_attribute *a, size_t nattributes)
{
    struct h5_group g;
    size_t header, m;

    g.heap = put_heap (w, list, n);
    g.tree = put_tree (w, list, n);
    g.header = bytes_offset (w);
    header = begin_header (w, 1 + (unsigned)nattributes);
    m = begin_message (w, SYMBOLS, 0);
    put_uint64 (w, g.tree);
    put_uint64 (w, g.heap);
    end_message (w, m);
    for (size_t i = 0; i < nattributes; i++)
        put_attribute (w, &a[i]);
    end_header (w, header);
    return g;
}

/* Write the group of these sorted datasets.  Each name begins with 'skip' bytes for
 * the path of the group and a slash.
 */
static struct h5_group put_h5_group (struct h5_bytes *w, const struct h5_dataset *list, size_t n,
                                     size_t skip, const struct h5_attribute *a, size_t nattributes)
{
    struct h5_child *children = calloc (n, sizeof (*children));
    struct h5_group g = { 0 };
    size_t count = 0;

    if (!children) {
        w->failed = true;
        return g;
    }
    for (size_t i = 0; i < n;) {
        struct h5_child *c = &children[count++];
        size_t end = i + 1;
        c->name = list[i].name + skip;
        c->length = strcspn (c->name, "/");
        if (!c->name[c->length]) {
            c->header = put_dataset (w, &list[i]);
        } else {
            while (end < n && !strncmp (list[end].name + skip, c->name, c->length + 1))
                end++;
            g = put_h5_group (w, list + i, end - i, skip + c->length + 1, NULL, 0);
            c->header = g.header;
            c->tree = g.tree;
            c->heap = g.heap;
        }
        i = end;
    }
    g = put_symbols (w, children, count, a, nattributes);
    free (children);
    return g;
}

/* Sort so that the members of a group are adjacent and ordered by name. */
static int compare_paths (const void *a, const void *b)
{
    const unsigned char *x = (const unsigned char *)((const struct h5_dataset *)a)->name;
    const unsigned char *y = (const unsigned char *)((const struct h5_dataset *)b)->name;

    while (*x && *x == *y)
        x++, y++;
    return (*x == '/' ? 0 : *x) - (*y == '/' ? 0 : *y);
}

static void put_superblock (struct h5_bytes *w, const struct h5_group *root, uint64_t length)
{
    struct h5_child c = { .header = root->header, .tree = root->tree, .heap = root->heap };

    put_bytes (w, "\211HDF\r\n\032\n\0\0\0\0\0\10\10\0", 16);
    put16 (w, LEAF / 2);
    put16 (w, CHILDREN / 2);
    put32 (w, 0);
    put_uint64 (w, 0);
    put_uint64 (w, undefined);
    put_uint64 (w, length);
    put_uint64 (w, undefined);
    put_entry (w, &c);
}

int h5_image_make (struct h5_image *image, struct h5_dataset *list, size_t n,
                   const struct h5_attribute *attributes, size_t nattributes, uint64_t at)
{
    struct h5_bytes w = { .base = at };
    struct h5_bytes s = { 0 };
    struct h5_group root;

    image->n = 0;
    qsort (list, n, sizeof (*list), compare_paths);
    root = put_h5_group (&w, list, n, 0, attributes, nattributes);
    put_superblock (&s, &root, bytes_offset (&w));
    if (!w.failed && !s.failed) {
        memcpy (image->superblock, s.data, H5_SUPERBLOCK);
        free (s.data);
        image->rest = w.data;
        image->n = w.n;
        return 0;
    }
    free (s.data);
    free (w.data);
    return -1;
}
