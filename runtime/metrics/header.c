/* SPDX-License-Identifier: Apache-2.0 */
/* Parse superblock 0, a symbol table group and version 1 object headers.  Comments
 * cite sections of the HDF5 File Format Specification 1.1.
 */
#include "runtime/metrics/header.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { BASE_ADDRESS = 24, ROOT_HEADER = 64 }; /* II.A */
enum { ENTRIES_MAX = 64, MESSAGES_MAX = 256 };
enum {
    DATASPACE = 0x01,
    DATATYPE = 0x03,
    STORAGE = 0x08,
    ATTRIBUTE = 0x0c,
    CONTINUATION = 0x10,
    SYMBOL_TABLE = 0x11,
};

static bool read_bytes_at (const struct header_image *i, uint64_t at, void *to, uint64_t n)
{
    if (at > i->size || n > i->size - at)
        return false;
    memcpy (to, i->bytes + at, n);
    return true;
}

static bool has_bytes (const struct header_image *i, uint64_t at, const void *what, size_t n)
{
    return at <= i->size && n <= i->size - at && !memcmp (i->bytes + at, what, n);
}

static bool is_our_file (const struct header_image *i)
{
    static const char signature[9] = "\211HDF\r\n\032\n";
    uint64_t base;
    unsigned char sizes[2];

    return has_bytes (i, 0, signature, sizeof (signature)) && read_bytes_at (i, 13, sizes, 2)
           && sizes[0] == 8 && sizes[1] == 8
           && read_bytes_at (i, BASE_ADDRESS, &base, sizeof (base)) && base == 0;
}

struct header_walk {
    const struct header_image *image;
    void (*f) (struct header_walk *w, uint16_t type, uint64_t at);
    unsigned left; /* limit on messages, because blocks may form a cycle */
    void *found;
};

/* Walk a block of messages: type and size (2 bytes each), flags, 3 unused bytes,
 * then the body (IV.A.1.a).  A continuation message points to another block.
 */
static void each_message (struct header_walk *w, uint64_t at, uint64_t n)
{
    uint64_t more[2];
    uint16_t head[2];

    while (n >= 8 && w->left > 0 && read_bytes_at (w->image, at, head, sizeof (head))) {
        uint64_t size = 8 + (uint64_t)head[1];
        w->left--;
        if (head[0] != CONTINUATION)
            w->f (w, head[0], at + 8);
        else if (read_bytes_at (w->image, at + 8, more, sizeof (more)))
            each_message (w, more[0], more[1]);
        at += size;
        n = n > size ? n - size : 0;
    }
}

static void walk_header (struct header_walk *w, uint64_t at)
{
    uint32_t size;

    if (has_bytes (w->image, at, "\1", 1) && read_bytes_at (w->image, at + 8, &size, 4))
        each_message (w, at + 16, size);
}

struct header_root {
    uint64_t table[2]; /* B-tree and local heap of names; 0: not found */
    const char *name;  /* attribute to find, or NULL */
    uint64_t number;   /* offset of its value; 0: not found */
};

static uint64_t padded_size (uint16_t n)
{
    return ((uint64_t)n + 7) / 8 * 8;
}

/* An attribute of version 1 (IV.A.2.m): the sizes of name, type and dataspace, then
 * these three, then the value, an integer of 8 bytes.
 */
static void take_attribute (struct header_walk *w, uint64_t at)
{
    struct header_root *root = w->found;
    size_t n = strlen (root->name) + 1;
    uint16_t head[4];
    uint64_t type, value;
    uint32_t size;

    if (!read_bytes_at (w->image, at, head, sizeof (head)) || (head[0] & 0xff) != 1 || head[1] != n
        || !has_bytes (w->image, at + 8, root->name, n))
        return;
    type = at + 8 + padded_size (head[1]);
    value = type + padded_size (head[2]) + padded_size (head[3]);
    if (has_bytes (w->image, type, "\20", 1) && read_bytes_at (w->image, type + 4, &size, 4)
        && size == 8 && read_bytes_at (w->image, value, &(uint64_t){ 0 }, 8))
        root->number = value;
}

static void take_of_root (struct header_walk *w, uint16_t type, uint64_t at)
{
    struct header_root *root = w->found;

    if (type == SYMBOL_TABLE)
        read_bytes_at (w->image, at, root->table, sizeof (root->table));
    else if (type == ATTRIBUTE && root->name)
        take_attribute (w, at);
}

static int find_root_group (const struct header_image *image, struct header_root *root)
{
    struct header_walk w = { image, take_of_root, MESSAGES_MAX, root };
    uint64_t at;

    root->table[0] = root->table[1] = root->number = 0;
    if (!is_our_file (image) || !read_bytes_at (image, ROOT_HEADER, &at, sizeof (at)))
        return -1;
    walk_header (&w, at);
    return root->table[0] ? 0 : -1;
}

uint64_t header_number (const struct header_image *image, const char *name)
{
    struct header_root root = { .name = name };

    return find_root_group (image, &root) < 0 ? 0 : root.number;
}

int header_attempt (const struct header_image *image, int64_t *attempt)
{
    uint64_t at = header_number (image, "attempt");

    return at && read_bytes_at (image, at, attempt, sizeof (*attempt)) ? 0 : -1;
}

/* Look in one symbol table node (III.C). */
static enum header_result find_in_node (const struct header_image *i, uint64_t node, uint64_t names,
                                        const char *name, uint64_t *header)
{
    uint64_t entry[2];
    uint16_t n;

    if (!has_bytes (i, node, "SNOD\1", 5) || !read_bytes_at (i, node + 6, &n, sizeof (n))
        || n > ENTRIES_MAX)
        return HEADER_UNKNOWN;
    for (uint64_t e = 0; e < n; e++) {
        if (!read_bytes_at (i, node + 8 + 40 * e, entry, sizeof (entry)) || entry[0] > i->size)
            return HEADER_UNKNOWN;
        if (has_bytes (i, names + entry[0], name, strlen (name) + 1)) {
            *header = entry[1];
            return HEADER_FOUND;
        }
    }
    return HEADER_HAS_NONE;
}

/* Search a B-tree of one level (III.A.1) with names in a local heap (III.D). */
static enum header_result find_header (const struct header_image *i, const char *name,
                                       uint64_t *header)
{
    uint64_t names, node;
    struct header_root root = { .name = NULL };
    uint16_t n;
    enum header_result result = HEADER_HAS_NONE;

    if (find_root_group (i, &root) < 0 || !has_bytes (i, root.table[0], "TREE\0\0", 6)
        || !read_bytes_at (i, root.table[0] + 6, &n, sizeof (n)) || n > ENTRIES_MAX
        || !has_bytes (i, root.table[1], "HEAP", 5)
        || !read_bytes_at (i, root.table[1] + 24, &names, sizeof (names)) || names > i->size)
        return HEADER_UNKNOWN;
    for (uint64_t e = 0; result == HEADER_HAS_NONE && e < n; e++)
        result = read_bytes_at (i, root.table[0] + 32 + 16 * e, &node, sizeof (node))
                     ? find_in_node (i, node, names, name, header)
                     : HEADER_UNKNOWN;
    return result;
}

/* A dataspace with a maximum (IV.A.2.b), a datatype (IV.A.2.d) and a contiguous
 * layout of version 3 (IV.A.2.i).
 */
static void take_of_dataset (struct header_walk *w, uint16_t type, uint64_t at)
{
    static const char simple[8] = { 1, 1, 1 }; /* version, rank, max */
    struct header_dataset *d = w->found;
    uint64_t words[2];

    if (type == DATASPACE && has_bytes (w->image, at, simple, sizeof (simple)))
        d->length = at + 8;
    else if (type == DATATYPE)
        read_bytes_at (w->image, at + 4, &d->size, sizeof (d->size));
    else if (type == STORAGE && has_bytes (w->image, at, "\3\1", 2)
             && read_bytes_at (w->image, at + 2, words, sizeof (words)))
        d->storage = at + 2;
}

enum header_result header_find (const struct header_image *image, const char *name,
                                struct header_dataset *d)
{
    struct header_walk w = { image, take_of_dataset, MESSAGES_MAX, d };
    uint64_t header;
    enum header_result result = find_header (image, name, &header);

    if (result != HEADER_FOUND)
        return result;
    *d = (struct header_dataset){ 0 };
    walk_header (&w, header);
    /* the writer changes the length by writing one aligned word */
    return d->length > 0 && d->length % 8 == 0 && d->storage > 0 && d->size > 0 ? HEADER_FOUND
                                                                                : HEADER_UNKNOWN;
}
