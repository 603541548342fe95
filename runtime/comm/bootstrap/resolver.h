/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the resolver, which may take long, without waiting for it. */
#pragma once

struct lookup;

/* A thread asks for that name.  NULL: there is none, the answer is always
 * NULL.
 */
struct lookup *lookup_start (const char *name);

/* Its first address, as text that lives as long as 'l'; NULL: not known yet, or
 * it has none.
 */
const char *lookup_answer (const struct lookup *l);

/* The thread ends by itself; NULL is accepted, errno is kept. */
void lookup_leave (struct lookup *l);
