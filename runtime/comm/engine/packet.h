/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts one after the other in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: empty.  'bad': there was no memory to write, or nothing left to
 * read, or what is there is no text; what is read then is 0 and "".
 */
struct packet {
    unsigned char *data;
    size_t n, room;
    size_t at; /* of the next to read */
    bool bad;
};

void packet_clear (struct packet *p);
void packet_free (struct packet *p);

/* Numbers take 7 bits a byte, low ones first. */
void packet_number (struct packet *p, uint64_t v);
void packet_real (struct packet *p, double v);
void packet_text (struct packet *p, const char *text); /* NULL: "" */
void packet_bytes (struct packet *p, const void *data, size_t n);

uint64_t packet_take_number (struct packet *p);
double packet_take_real (struct packet *p);
const char *packet_take_text (struct packet *p); /* lives in the packet */
bool packet_more (const struct packet *p);

/* A set of numbers as runs; 'ids' gets sorted. */
void packet_ids (struct packet *p, uint32_t *ids, size_t n);

/* How many numbers, and then each of them, with '*left' and '*next' 0 at the
 * start. */
struct packet_run {
    uint64_t runs, next, left, total;
};
struct packet_run packet_take_ids (struct packet *p);
bool packet_take_id (struct packet *p, struct packet_run *r, uint32_t *id);
