/* SPDX-License-Identifier: Apache-2.0 */
/* Divide the GPUs and cores of this machine among processes. */
#pragma once

enum { DEVICES_MAX = 256 };

struct devices {
    const char *variable; /* environment variable that selects the GPUs a program sees */
    char *text;
    char *gpus[DEVICES_MAX]; /* their names in 'variable'; they point into 'text' */
    int ngpus;
};

/* Find the GPUs that this process may use: those that an environment variable names, or else the
 * devices nvidia0, nvidia1, ... in the folder 'dev' (NULL: none).
 */
struct devices *devices_find (const char *dev);
void devices_destroy (struct devices *d);

/* Number of places with 'each' GPUs. */
int devices_places (const struct devices *d, int each);

/* Restrict this process to 'n' of these GPUs. */
void devices_take (const struct devices *d, int first, int n);

/* The number of cores that this process may use. */
int cores_count (void);

/* Bind this process to 'n' of these cores. */
void cores_take (long first, long n);
