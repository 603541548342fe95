/* SPDX-License-Identifier: Apache-2.0 */
/* Divide the GPUs and cores of this machine among workers.  Worker 'i' has place 'i'. */
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

/* Restrict this process to the GPUs of place 'i'. */
void devices_take (const struct devices *d, int i, int each);

/* Bind this process to the cores of place 'i', if there are enough for 'n' places of 'each' cores.
 */
void cores_take (long i, long n, long each);
