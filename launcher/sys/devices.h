/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs and cores of this machine, shared out among workers. */
#pragma once

enum { DEVICES_MAX = 256 };

struct devices {
    const char *variable; /* that makes a program see only some GPUs */
    char *text;
    char *gpus[DEVICES_MAX]; /* their names in it */
    int ngpus;
};

/* Find the GPUs that this process may use: those that a variable names, or
 * else the devices nvidia0, nvidia1, ... in the folder 'dev', or NULL for
 * none.  NULL if out of memory.
 */
struct devices *devices_find (const char *dev);
void devices_destroy (struct devices *d);

/* How many places of 'each' GPUs there are. */
int devices_places (const struct devices *d, int each);

/* Make this process see only the GPUs of place 'i'. */
void devices_take (const struct devices *d, int i, int each);

/* Bind this process to the cores of place 'i' of 'n', if all have 'each' cores
 * of their own.
 */
void cores_take (long i, long n, long each);
