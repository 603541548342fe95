/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which ranks agree on the members of a generation. */
#pragma once

#include "runtime/comm/elastic/elastic.h"
#include "runtime/storage/link.h"

/* A file about a process; 'member' is read when the file is first seen. */
struct sign {
    uint64_t generation; /* of a member; 0: of one that asks */
    uint64_t nonce;
    struct elastic_member member;
    bool seen; /* in this look */
};

/* The contents of the folder at one time. */
struct signs {
    uint64_t highest; /* number of the newest generation, 0: none */
    struct sign *signs;
    long nsigns;
    uint64_t *byes; /* of ranks of the newest generation */
    long nbyes;
    char (*ended)[32]; /* units */
    long nended;
    long target; /* 0: none */
};

/* Read the folder; data read by an earlier call into the same view are kept. */
int signs_look (struct signs *v, const char *dir, struct slurmdl_error *err);
void signs_free (struct signs *v);

/* The sign of a process; generation 0: its request to join. */
const struct sign *signs_find (const struct signs *v, uint64_t generation, uint64_t nonce);
long signs_count (const struct signs *v, uint64_t generation);
/* Whether that process has ended, or has completed the training. */
bool signs_is_over (const struct signs *v, const struct elastic_member *s,
                    const struct elastic_member *self);
/* Number of processes that want to join and have not answered; next 0: all that want to join. */
long signs_waiting (const struct signs *v, const struct elastic_member *self, uint64_t next);
bool signs_has_bye (const struct signs *v, uint64_t nonce);

/* The address of a rank of a generation, as seen from another one. */
const char *member_host (const struct generation *w, const struct elastic_member *of,
                         const struct elastic_member *from);

/* ---- files ---- */

int folder_put_member (const char *dir, uint64_t generation, const struct elastic_member *s);
void folder_take_ask (const char *dir, uint64_t nonce);
void folder_take_member (const char *dir, uint64_t generation, uint64_t nonce);
/* LINK_TAKEN: another process has put a generation of that number. */
enum link_result folder_put_generation (const char *dir, const struct generation *w);
/* The caller frees it; NULL if it cannot be read. */
struct generation *folder_get_generation (const char *dir, uint64_t generation);
void folder_take_generation (const char *dir, uint64_t generation);
int folder_put_empty (const char *dir, const char *name);
