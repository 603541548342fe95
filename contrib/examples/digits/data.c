/* SPDX-License-Identifier: Apache-2.0 */
/* Read the images of handwritten digits. */
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum { IMAGES_MAX = 10000, TRAINING_PERCENT = 70 };

static int read_image (char *line, float *x, int *y)
{
    char *save = NULL;
    char *field = strtok_r (line, ",\n", &save);

    for (int i = 0; i < PIXELS; i++) {
        if (!field)
            return -1;
        x[i] = (float)atof (field) / 16;
        field = strtok_r (NULL, ",\n", &save);
    }
    if (!field)
        return -1;
    *y = atoi (field);
    return *y >= 0 && *y < CLASSES ? 0 : -1;
}

int data_read (const char *path, struct data *d)
{
    gzFile f = gzopen (path, "rb");
    char line[1024];

    d->x = calloc (IMAGES_MAX, sizeof (*d->x));
    d->y = calloc (IMAGES_MAX, sizeof (*d->y));
    d->n = 0;
    if (!f || !d->x || !d->y) {
        fprintf (stderr, "digits: cannot read %s\n", path);
        return -1;
    }
    while (d->n < IMAGES_MAX && gzgets (f, line, sizeof (line)))
        if (read_image (line, d->x[d->n], &d->y[d->n]) == 0)
            d->n++;
    gzclose (f);
    return d->n > 0 ? 0 : -1;
}

void data_free (struct data *d)
{
    free (d->x);
    free (d->y);
    *d = (struct data){ 0 };
}

void data_split (const struct data *all, struct data *train, struct data *valid)
{
    size_t n = all->n * TRAINING_PERCENT / 100;

    *train = (struct data){ n, all->x, all->y };
    *valid = (struct data){ all->n - n, all->x + n, all->y + n };
}
