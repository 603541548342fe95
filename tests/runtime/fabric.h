/* SPDX-License-Identifier: Apache-2.0 */
/* Unpack the description of a node's network (tests/runtime/fabric/) into a
 * directory that looks like sysfs, and compare what fabric_read() finds.  Lines:
 *
 *     hca NAME DRIVER|VENDOR LAYER STATE RATE   an adapter with one port
 *     soft NAME LAYER STATE RATE                one without a device
 *     rnic NAME DRIVER LAYER STATE RATE         one for iWARP
 *     cxi NAME INTERFACE
 *     net NAME INDEX TYPE FLAGS STATE SPEED [MASTER]
 *     is TEXT, choice INTERFACE, default NAME=VALUE...   what the test expects
 */
#pragma once

#include "runtime/network/fabric.h"
#include "runtime/network/nccl.h"
#include "tests/unit.h"

static char root[] = "/tmp/dl-nccl.XXXXXX";

/* ---- trees ---- */

static inline void put (const char *text, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static inline void put (const char *text, const char *fmt, ...)
{
    char path[512];
    va_list ap;
    int n = snprintf (path, sizeof (path), "%s/", root);
    FILE *f;

    va_start (ap, fmt);
    vsnprintf (path + n, sizeof (path) - (size_t)n, fmt, ap);
    va_end (ap);
    for (char *p = path + n; (p = strchr (p, '/')); *p++ = '/') {
        *p = '\0';
        assert_true (mkdir (path, 0777) == 0 || errno == EEXIST);
    }
    f = fopen (path, "w");
    assert_non_null (f);
    fprintf (f, "%s\n", text);
    fclose (f);
}

static inline void put_port (const char *hca, const char *layer, const char *state,
                             const char *rate)
{
    char text[64];

    put (layer, "class/infiniband/%s/ports/1/link_layer", hca);
    snprintf (text, sizeof (text), "%c: %s", *state, state + 2);
    put (text, "class/infiniband/%s/ports/1/state", hca);
    snprintf (text, sizeof (text), "%s Gb/sec (4X)", rate);
    put (text, "class/infiniband/%s/ports/1/rate", hca);
}

static inline void put_device (const char *hca, const char *driver)
{
    char path[256];
    char link[128];

    put (*driver == '0' ? driver : "0x15b3", "class/infiniband/%s/device/vendor", hca);
    snprintf (path, sizeof (path), "%s/class/infiniband/%s/device/driver", root, hca);
    snprintf (link, sizeof (link), "../../../bus/pci/drivers/%s", *driver == '0' ? "x" : driver);
    assert_int_equal (symlink (link, path), 0);
}

static inline void put_net (char w[8][64])
{
    put (w[2], "class/net/%s/ifindex", w[1]);
    put (w[3], "class/net/%s/type", w[1]);
    put (w[4], "class/net/%s/flags", w[1]);
    put (w[5], "class/net/%s/operstate", w[1]);
    put (w[6], "class/net/%s/speed", w[1]);
    if (*w[7])
        put (w[7], "class/net/%s/master", w[1]);
}

static inline void put_line (const char *line)
{
    char w[8][64] = { "" };

    sscanf (line, "%63s %63s %63s %63s %63s %63s %63s %63s", w[0], w[1], w[2], w[3], w[4], w[5],
            w[6], w[7]);
    if (!strcmp (w[0], "hca") || !strcmp (w[0], "rnic")) {
        put (*w[0] == 'r' ? "4: RNIC" : "1: CA", "class/infiniband/%s/node_type", w[1]);
        put_device (w[1], w[2]);
        put_port (w[1], w[3], w[4], w[5]);
    } else if (!strcmp (w[0], "soft")) {
        put_port (w[1], w[2], w[3], w[4]);
    } else if (!strcmp (w[0], "cxi")) {
        put ("", "class/cxi/%s/device/net/%s/x", w[1], w[2]);
    } else if (!strcmp (w[0], "net")) {
        put_net (w);
    }
}

static inline void check_line (const char *line, const struct fabric *f,
                               const struct nccl_profile *p, int *defaults)
{
    const struct fabric_interface *i = fabric_nccl_choice (f);
    char text[512];

    if (!strncmp (line, "is ", 3)) {
        fabric_text (f, text, sizeof (text));
        assert_string_equal (text, line + 3);
    } else if (!strncmp (line, "choice ", 7)) {
        assert_string_equal (i ? i->name : "-", line + 7);
    } else if (!strncmp (line, "default ", 8)) {
        assert_true (*defaults < p->n);
        snprintf (text, sizeof (text), "%s=%s", p->settings[*defaults].name,
                  p->settings[*defaults].value);
        assert_int_equal (strncmp (text, line + 8, strlen (line + 8)), 0);
        (*defaults)++;
    }
}

static inline void remove_tree (void)
{
    char command[128];

    snprintf (command, sizeof (command), "rm -rf %s", root);
    assert_int_equal (system (command), 0);
    assert_int_equal (mkdir (root, 0777), 0);
}

static inline void read_tree (const char *name, struct fabric *f, int check)
{
    char path[512];
    char lines[64][256];
    int n = 0;
    int defaults = 0;
    struct nccl_profile p = { .n = 0 };
    FILE *in;

    remove_tree ();
    snprintf (path, sizeof (path), "%s/tests/runtime/fabric/%s", getenv ("srcdir"), name);
    in = fopen (path, "r");
    assert_non_null (in);
    for (; n < 64 && fgets (lines[n], sizeof (lines[n]), in); n++) {
        lines[n][strcspn (lines[n], "\n")] = '\0';
        put_line (lines[n]);
    }
    fclose (in);
    fabric_read (root, f);
    nccl_defaults (f, &p);
    for (int i = 0; check && i < n; i++)
        check_line (lines[i], f, &p, &defaults);
    assert_true (!check || defaults == p.n);
}
