/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts, packed one after another. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An empty one is all zero.  'bad': out of memory while writing, or nothing left to read, or
 * invalid text; reading then returns 0 and "".
 */
struct packet {
    unsigned char *data;
    size_t n, room;
    size_t at; /* where to read next */
    bool bad;
};

void packet_clear (struct packet *p);
void packet_free (struct packet *p);

/* Numbers are stored with 7 bits in each byte, the lowest first. */
void packet_number (struct packet *p, uint64_t v);
void packet_real (struct packet *p, double v);
void packet_text (struct packet *p, const char *text); /* NULL: "" */
void packet_bytes (struct packet *p, const void *data, size_t n);

uint64_t packet_take_number (struct packet *p);
double packet_take_real (struct packet *p);
const char *packet_take_text (struct packet *p); /* part of the packet */
bool packet_more (const struct packet *p);

/* Write a set of numbers as runs; sorts 'ids'. */
void packet_ids (struct packet *p, uint32_t *ids, size_t n);

/* Read such a set: first the number of its elements, then each of them. */
struct packet_run {
    uint64_t runs, next, left, total;
};
struct packet_run packet_take_ids (struct packet *p);
bool packet_take_id (struct packet *p, struct packet_run *r, uint32_t *id);
