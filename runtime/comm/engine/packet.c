/* SPDX-License-Identifier: Apache-2.0 */
/* Encode packets: numbers of variable length, text, and sets of numbers as runs. */
#include "runtime/comm/engine/packet.h"

#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 1 << 24 }; /* most numbers in a set */

void packet_clear (struct packet *p)
{
    p->n = 0;
    p->at = 0;
    p->bad = false;
}

void packet_free (struct packet *p)
{
    free (p->data);
    memset (p, 0, sizeof (*p));
}

void packet_bytes (struct packet *p, const void *data, size_t n)
{
    if (n == 0)
        return;
    if (p->room - p->n < n) {
        size_t room = 2 * p->room + n + 64;
        void *more = realloc (p->data, room);
        if (!more) {
            p->bad = true;
            return;
        }
        p->data = more;
        p->room = room;
    }
    memcpy (p->data + p->n, data, n);
    p->n += n;
}

void packet_number (struct packet *p, uint64_t v)
{
    unsigned char b[10];
    size_t n = 0;

    for (; v > 127; v >>= 7)
        b[n++] = (unsigned char)(v | 128);
    b[n++] = (unsigned char)v;
    packet_bytes (p, b, n);
}

void packet_real (struct packet *p, double v)
{
    packet_bytes (p, &v, sizeof (v));
}

void packet_text (struct packet *p, const char *text)
{
    size_t n = text ? strlen (text) + 1 : 1;

    packet_number (p, n);
    packet_bytes (p, text ? text : "", n);
}

uint64_t packet_take_number (struct packet *p)
{
    uint64_t v = 0;
    int shift = 0;

    while (p->at < p->n && shift < 64) {
        unsigned char b = p->data[p->at++];
        v |= (uint64_t)(b & 127) << shift;
        if (!(b & 128))
            return v;
        shift += 7;
    }
    p->bad = true;
    p->at = p->n;
    return 0;
}

double packet_take_real (struct packet *p)
{
    double v = 0;

    if (p->n - p->at < sizeof (v)) {
        p->bad = true;
        p->at = p->n;
        return 0;
    }
    memcpy (&v, p->data + p->at, sizeof (v));
    p->at += sizeof (v);
    return v;
}

const char *packet_take_text (struct packet *p)
{
    uint64_t n = packet_take_number (p);
    const char *text = (const char *)p->data + p->at;

    if (n < 1 || n > p->n - p->at || text[n - 1]) {
        p->bad = true;
        p->at = p->n;
        return "";
    }
    p->at += n;
    return text;
}

bool packet_more (const struct packet *p)
{
    return p->at < p->n && !p->bad;
}

static int compare_numbers (const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static size_t run_length (const uint32_t *ids, size_t n)
{
    size_t len = 1;

    while (len < n && ids[len] == ids[0] + len)
        len++;
    return len;
}

void packet_ids (struct packet *p, uint32_t *ids, size_t n)
{
    uint64_t runs = 0;
    size_t len;

    if (n)
        qsort (ids, n, sizeof (*ids), compare_numbers);
    for (size_t i = 0; i < n; i += run_length (ids + i, n - i))
        runs++;
    packet_number (p, runs);
    for (size_t i = 0; i < n; i += len) {
        len = run_length (ids + i, n - i);
        packet_number (p, ids[i]);
        packet_number (p, len);
    }
}

struct packet_run packet_take_ids (struct packet *p)
{
    return (struct packet_run){ .runs = packet_take_number (p) };
}

/* Reject impossible numbers, which would keep a rank busy for years. */
static bool is_too_many (struct packet_run *r)
{
    return r->left > IDS_MAX || (r->total += r->left) > IDS_MAX;
}

bool packet_take_id (struct packet *p, struct packet_run *r, uint32_t *id)
{
    while (!r->left) {
        if (!r->runs || p->bad)
            return false;
        r->runs--;
        r->next = packet_take_number (p);
        r->left = packet_take_number (p);
        if (is_too_many (r)) {
            p->bad = true;
            return false;
        }
    }
    r->left--;
    *id = (uint32_t)r->next++;
    return true;
}
