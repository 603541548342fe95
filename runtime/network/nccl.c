/* SPDX-License-Identifier: Apache-2.0 */
/* Site profiles of network variables, and the defaults without one. */
#include "runtime/network/nccl.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/nearest_word.h"
#include "runtime/rank/variables.h"

void nccl_path (char path[static NCCL_PATH], const char *dir, const char *name)
{
    snprintf (path, NCCL_PATH, "%s/%s.conf", dir, name);
}

/* Whether only root and the owner of 'dir' can put a file there, or replace the
 * folder.
 */
static bool is_closed (const char *dir)
{
    char path[NCCL_PATH];
    struct stat st;
    uid_t owner;
    char *slash;

    if (stat (dir, &st) < 0)
        return true; /* it does not exist */
    owner = st.st_uid;
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return false;
    snprintf (path, sizeof (path), "%s", dir);
    while ((slash = strrchr (path, '/'))) {
        slash[slash == path] = '\0';
        if (stat (path, &st) < 0 || (st.st_uid != 0 && st.st_uid != owner)
            || (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX)))
            return false;
        if (slash == path)
            break;
    }
    return true;
}

/* Whether the file belongs to root or to the owner of the folder. */
static bool is_theirs (const char *dir, const char *path)
{
    struct stat folder, file;

    return stat (dir, &folder) < 0 || stat (path, &file) < 0 || file.st_uid == 0
           || file.st_uid == folder.st_uid;
}

static int read_profile (const char *dir, const char *path, struct nccl_profile *p, nccl_say_f *say,
                         void *arg)
{
    if (is_closed (dir) && is_theirs (dir, path))
        return nccl_read (path, p, say, arg);
    errno = EPERM;
    return -1;
}

static void read_named (const char *dir, const char *name, struct nccl_profile *p, nccl_say_f *say,
                        void *arg)
{
    char path[NCCL_PATH];
    char line[NCCL_LINE + NCCL_PATH];

    nccl_path (path, dir, name);
    if (read_profile (dir, path, p, say, arg) >= 0 || !say)
        return;
    snprintf (line, sizeof (line), "--dl-nccl=%s: nothing is set: %s: %s", name, path,
              errno == EPERM ? "others than root and its owner may write there" : strerror (errno));
    say (arg, line);
}

/* Do not override what the administrator configured for NCCL itself. */
static void drop_configured (const char *file, struct nccl_profile *p)
{
    struct nccl_profile conf = { .n = 0 };
    int n = 0;

    if (nccl_read (file, &conf, NULL, NULL) < 0)
        return;
    for (int i = 0; i < p->n; i++) {
        bool is_there = false;
        for (int j = 0; j < conf.n; j++)
            if (!strcmp (conf.settings[j].name, p->settings[i].name))
                is_there = true;
        if (!is_there)
            p->settings[n++] = p->settings[i];
    }
    p->n = n;
}

void nccl_choose (const char *dir, const char *conf, const char *name, const struct fabric *f,
                  struct nccl_profile *p, nccl_say_f *say, void *arg)
{
    char path[NCCL_PATH];

    if (!strcmp (name, "auto")) {
        nccl_path (path, dir, fabric_names[f->kind]);
        if (access (path, F_OK) < 0) {
            nccl_defaults (f, p);
            drop_configured (conf, p);
            return;
        }
        name = fabric_names[f->kind];
    }
    read_named (dir, name, p, say, arg);
}

void nccl_set (const struct variables *v, const struct nccl_profile *p)
{
    struct given g;

    given_begin (&g, v, "DL_NCCL_SET");
    for (int i = 0; i < p->n; i++)
        given_set (&g, p->settings[i].name, p->settings[i].value);
    given_end (&g, "DL_NCCL_SET");
}

struct parser {
    const char *file;
    int line;
    struct nccl_profile *p;
    nccl_say_f *say;
    void *arg;
};

struct span {
    const char *at;
    size_t n;
};

int nccl_check_name (const char *name)
{
    static const char taken[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t n = strspn (name, taken);

    if (n > 0 && n <= NCCL_PROFILE_NAME && !name[n] && *name != '.')
        return 0;
    errno = EINVAL;
    return -1;
}

static struct span trim (struct span s)
{
    while (s.n > 0 && isspace ((unsigned char)*s.at)) {
        s.at++;
        s.n--;
    }
    while (s.n > 0 && isspace ((unsigned char)s.at[s.n - 1]))
        s.n--;
    return s;
}

static bool is_printable (struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.at[i] < ' ' || s.at[i] > '~')
            return false;
    return true;
}

/* Pass 'name' only if it has no byte that a terminal would interpret. */
static int refuse_line (struct parser *x, const char *name, const char *why)
{
    char line[NCCL_LINE];

    snprintf (line, sizeof (line), "%s:%d: %s%s%s", x->file, x->line, name, *name ? ": " : "", why);
    if (x->say)
        x->say (x->arg, line);
    return 1;
}

static const char *reject_reason (const struct nccl_setting *s, char why[static NCCL_WHY])
{
    const struct nccl_variable *v = nccl_find (s->name);
    const char *meant = v ? NULL : nccl_nearest (s->name);

    if (!v)
        snprintf (why, NCCL_WHY, "no variable that a profile may set%s%s%s",
                  DID_YOU_MEAN (meant, "", "", ""));
    if (!v || nccl_value_is_wrong (s->name, s->value, why))
        return why;
    if (v->class == NCCL_GONE)
        return v->what;
    if (v->class == NCCL_DEBUG)
        return "for debugging only, by NVIDIA's manual";
    return NULL;
}

static bool profile_sets (const struct nccl_profile *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp (p->settings[i].name, name))
            return true;
    return false;
}

static int add_setting (struct parser *x, struct span name, struct span value)
{
    struct nccl_setting s = { "", "" };
    char text[NCCL_WHY];
    const char *why;

    if (!is_printable (name) || !is_printable (value))
        return refuse_line (x, "", "a byte that is not printable ASCII");
    if (name.n >= sizeof (s.name) || value.n >= sizeof (s.value))
        return refuse_line (x, "", "too long");
    memcpy (s.name, name.at, name.n);
    memcpy (s.value, value.at, value.n);
    if ((why = reject_reason (&s, text)))
        return refuse_line (x, s.name, why);
    if (profile_sets (x->p, s.name))
        return refuse_line (x, s.name, "set a second time");
    if (x->p->n == NCCL_SETTINGS)
        return refuse_line (x, s.name, "too many variables");
    x->p->settings[x->p->n++] = s;
    return 0;
}

static int parse_line (struct parser *x, struct span line)
{
    const char *eq;
    struct span value;

    line = trim (line);
    if (line.n == 0 || *line.at == '#')
        return 0;
    eq = memchr (line.at, '=', line.n);
    if (!eq)
        return refuse_line (x, "", "no NAME=VALUE");
    value = trim ((struct span){ eq + 1, line.n - (size_t)(eq + 1 - line.at) });
    if (value.n > 1 && *value.at == '"' && value.at[value.n - 1] == '"')
        value = (struct span){ value.at + 1, value.n - 2 };
    return add_setting (x, trim ((struct span){ line.at, (size_t)(eq - line.at) }), value);
}

static int parse_profile (const char *text, size_t size, const char *file, struct nccl_profile *p,
                          nccl_say_f *say, void *arg)
{
    struct parser x = { file, 0, p, say, arg };
    const char *end = text + size;
    int refused = 0;

    while (text < end) {
        const char *nl = memchr (text, '\n', (size_t)(end - text));
        const char *to = nl ? nl : end;
        x.line++;
        refused += parse_line (&x, (struct span){ text, (size_t)(to - text) });
        text = nl ? nl + 1 : end;
    }
    return refused;
}

int nccl_read (const char *path, struct nccl_profile *p, nccl_say_f *say, void *arg)
{
    char text[NCCL_PROFILE_BYTES];
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    size_t used = 0;
    ssize_t n = -1;

    if (fd < 0)
        return -1;
    if (fstat (fd, &st) < 0)
        goto out;
    if (!S_ISREG (st.st_mode) || st.st_size > (off_t)sizeof (text)) {
        errno = S_ISREG (st.st_mode) ? EFBIG : EINVAL;
        goto out;
    }
    /* NCCL loads plugins that the profile names */
    if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        errno = EPERM;
        goto out;
    }
    while ((n = read (fd, text + used, sizeof (text) - used)) > 0)
        used += (size_t)n;
out:
    close (fd);
    return n < 0 ? -1 : parse_profile (text, used, path, p, say, arg);
}

static void set_nccl_variable (struct nccl_profile *p, const char *name, const char *value)
{
    struct nccl_setting *s = &p->settings[p->n++];

    snprintf (s->name, sizeof (s->name), "%s", name);
    snprintf (s->value, sizeof (s->value), "%s", value);
}

static bool has_hsn (const struct fabric *f)
{
    for (int i = 0; i < f->ninterfaces; i++)
        if (!f->interfaces[i].unused && !strncmp (f->interfaces[i].name, "hsn", 3))
            return true;
    return false;
}

static bool has_socket_interface (const struct fabric *f)
{
    for (int i = 0; i < f->ninterfaces; i++)
        if (!f->interfaces[i].unused)
            return true;
    return false;
}

/* The values are the same on all nodes, even if something is broken on one. */
void nccl_defaults (const struct fabric *f, struct nccl_profile *p)
{
    const struct fabric_interface *first = fabric_nccl_choice (f);

    p->n = 0;
    set_nccl_variable (p, "NCCL_DEBUG", "WARN");
    if (f->kind == FABRIC_SLINGSHOT && has_hsn (f))
        set_nccl_variable (p, "NCCL_SOCKET_IFNAME", "hsn");
    else if (first && first->unused && has_socket_interface (f))
        set_nccl_variable (p, "NCCL_SOCKET_IFNAME",
                           "^lo,docker,virbr,veth,br-,cni,cali,flannel,podman,lxcbr,lxdbr,"
                           "tunl,dummy,kube-ipvs,vnet,tap,tun,wg,cilium,vxlan,usb,idrac");
}
