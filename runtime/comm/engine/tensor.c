/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the tensors of several ranks, and describe how they differ. */
#include "runtime/comm/engine/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const nouns[] = {
    [SLURMDL_ALLREDUCE] = "gradient",
    [SLURMDL_ALLGATHER] = "all-gather",
    [SLURMDL_BROADCAST] = "broadcast",
    [SLURMDL_REDUCE_SCATTER] = "reduce-scatter",
};

static const char *const ops[] = {
    [SLURMDL_SUM] = "sum",     [SLURMDL_AVERAGE] = "average", [SLURMDL_MIN] = "minimum",
    [SLURMDL_MAX] = "maximum", [SLURMDL_PRODUCT] = "product",
};

static const char *const compressions[] = {
    [SLURMDL_PLAIN] = "no compression",
    [SLURMDL_AS_F16] = "compression to f16",
    [SLURMDL_AS_BF16] = "compression to bf16",
};

const char *tensor_noun (const struct tensor *t)
{
    return nouns[t->what];
}

struct tensor *tensor_copy (const struct tensor *t)
{
    struct tensor *c = malloc (sizeof (*c));

    if (!c)
        return NULL;
    *c = *t;
    c->refs = 1;
    c->counts = NULL;
    c->name = t->name ? strdup (t->name) : NULL;
    c->group = t->group ? strdup (t->group) : NULL;
    if ((t->name && !c->name) || (t->group && !c->group)) {
        tensor_free (c);
        return NULL;
    }
    return c;
}

void tensor_free (struct tensor *t)
{
    if (!t || --t->refs)
        return;
    free (t->name);
    free (t->group);
    free (t->counts);
    free (t);
}

size_t tensor_total (const struct tensor *t, long size)
{
    size_t n = 0;

    if (t->what != SLURMDL_ALLGATHER || !t->counts)
        return t->n;
    for (long r = 0; r < size; r++)
        n += t->counts[r];
    return n;
}

size_t tensor_item (const struct tensor *t)
{
    return t->row ? slurmdl_type_size (t->type) : 0;
}

size_t tensor_weight (const struct tensor *t)
{
    return t->n * tensor_item (t);
}

static bool is_same_group (const struct tensor *a, const struct tensor *b)
{
    if (!a->group || !b->group)
        return a->group == b->group;
    return a->members == b->members && !strcmp (a->group, b->group);
}

static bool same_shape (const struct tensor *a, const struct tensor *b)
{
    return a->type == b->type && a->row == b->row && a->ndims == b->ndims
           && !memcmp (a->dims, b->dims, sizeof (a->dims))
           && (a->what == SLURMDL_ALLGATHER || a->n == b->n);
}

static bool same_scale (const struct tensor *a, const struct tensor *b)
{
    return a->prescale == b->prescale && a->postscale == b->postscale;
}

bool tensor_agrees (const struct tensor *a, const struct tensor *b)
{
    return a->what == b->what && same_shape (a, b) && a->op == b->op && a->root == b->root
           && a->compression == b->compression && a->device == b->device && same_scale (a, b)
           && is_same_group (a, b);
}

static void describe_group (const struct tensor *t, char *text, size_t size)
{
    if (t->group)
        snprintf (text, size, "group %s of %zu", t->group, t->members);
    else
        snprintf (text, size, "no group");
}

static void describe_shape (const struct tensor *t, char *text, size_t size)
{
    const char *name = slurmdl_type_name (t->type);
    int from = t->what == SLURMDL_ALLGATHER;
    size_t at = 0;

    if (t->ndims > from) {
        at = (size_t)snprintf (text, size, from ? "rows of" : "%s of", name);
        for (int i = from; i < t->ndims && at < size; i++)
            at += (size_t)snprintf (text + at, size - at, i > from ? " x %llu" : " %llu",
                                    (unsigned long long)t->dims[i]);
        if (from && at < size)
            snprintf (text + at, size - at, " %s", name);
    } else if (t->what == SLURMDL_ALLGATHER)
        snprintf (text, size, "rows of %zu %s", t->row, name);
    else if (t->row > 1)
        snprintf (text, size, "%s of %zu in rows of %zu", name, t->n, t->row);
    else
        snprintf (text, size, "%s of %zu", name, t->n);
}

static void describe_difference (const struct tensor *t, const struct tensor *other, char *text,
                                 size_t size)
{
    if (t->what != other->what)
        snprintf (text, size, "%s", nouns[t->what]);
    else if (!same_shape (t, other))
        describe_shape (t, text, size);
    else if (t->op != other->op)
        snprintf (text, size, "%s", ops[t->op]);
    else if (t->root != other->root)
        snprintf (text, size, "root %ld", t->root);
    else if (t->compression != other->compression)
        snprintf (text, size, "%s", compressions[t->compression]);
    else if (t->device != other->device)
        snprintf (text, size, "memory of %s", t->device ? "a device" : "the host");
    else if (!same_scale (t, other))
        snprintf (text, size, "factors %g, %g", t->prescale, t->postscale);
    else
        describe_group (t, text, size);
}

void tensor_differs (const struct tensor *a, const struct tensor *b, char *ours, char *theirs,
                     size_t size)
{
    describe_difference (a, b, ours, size);
    describe_difference (b, a, theirs, size);
}

bool tensor_fuses (const struct tensor *a, const struct tensor *b)
{
    return a->what == b->what && a->type == b->type && a->op == b->op && a->root == b->root
           && a->compression == b->compression && a->device == b->device
           && (!a->device || same_scale (a, b)); /* the batch has one factor */
}

void tensor_put (struct packet *p, const struct tensor *t)
{
    packet_text (p, t->name);
    packet_text (p, t->group);
    packet_number (p, t->members);
    packet_number (p, t->what);
    packet_number (p, t->type);
    packet_number (p, t->op);
    packet_number (p, t->compression);
    packet_number (p, t->device);
    packet_number (p, t->n);
    packet_number (p, t->row);
    packet_number (p, (uint64_t)t->ndims);
    for (int i = 0; i < t->ndims; i++)
        packet_number (p, t->dims[i]);
    packet_number (p, (uint64_t)t->root);
    packet_real (p, t->prescale);
    packet_real (p, t->postscale);
}

static bool is_valid (const struct tensor *t)
{
    return (unsigned)t->what <= SLURMDL_REDUCE_SCATTER && slurmdl_type_size (t->type)
           && (unsigned)t->op <= SLURMDL_PRODUCT && (unsigned)t->compression <= SLURMDL_AS_BF16
           && (t->row || t->what == SLURMDL_ALLGATHER);
}

struct tensor *tensor_take (struct packet *p)
{
    struct tensor t = { .refs = 1 };
    uint64_t ndims;

    t.name = (char *)packet_take_text (p);
    t.group = (char *)packet_take_text (p);
    if (!*t.group)
        t.group = NULL;
    t.members = packet_take_number (p);
    t.what = (enum slurmdl_what)packet_take_number (p);
    t.type = (enum slurmdl_type)packet_take_number (p);
    t.op = (enum slurmdl_op)packet_take_number (p);
    t.compression = (enum slurmdl_compression)packet_take_number (p);
    t.device = packet_take_number (p);
    t.n = packet_take_number (p);
    t.row = packet_take_number (p);
    if ((ndims = packet_take_number (p)) > SLURMDL_DIMS_MAX)
        return NULL;
    for (; t.ndims < (int)ndims; t.ndims++)
        t.dims[t.ndims] = packet_take_number (p);
    t.root = (long)packet_take_number (p);
    t.prescale = packet_take_real (p);
    t.postscale = packet_take_real (p);
    return p->bad || !is_valid (&t) ? NULL : tensor_copy (&t);
}
