/* SPDX-License-Identifier: Apache-2.0 */
/* Put entries of the log. */
#include "launcher/sweep/entry_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

static int sync_folder (struct entry_folder *f)
{
    bool begun = f->begun;

    f->begun = false;
    return begun ? background_sync_end (f->sync) : link_sync_folder (f->fd);
}

int entry_settle (struct entry_folder *f, struct slurmdl_error *err)
{
    if (f->unsettled && sync_folder (f) < 0)
        return errorf (err, "log/%s: cannot sync: %s", f->name, strerror (errno));
    f->unsettled = false;
    return 0;
}

void entry_begin_to_settle (struct entry_folder *f)
{
    if (!f->unsettled || f->begun)
        return;
    if (!f->sync)
        f->sync = background_sync_create ();
    if (f->sync) {
        background_sync_begin (f->sync, f->fd);
        f->begun = true;
    }
}

void entry_close (struct entry_folder *f)
{
    int e = errno; /* why it is closed: a full disk is waited for */

    background_sync_destroy (f->sync);
    f->sync = NULL;
    f->begun = false;
    errno = e;
    f->fd = inside_close (f->fd, -1);
}

/* Its name is to be there as long as those in it. */
static int create_folder (const char *path, struct slurmdl_error *err)
{
    int parent;
    int rv;

    if (folder_create (path, err) < 0)
        return -1;
    parent = inside_parent (path, NULL);
    rv = parent < 0 ? -1 : link_sync_folder (parent);
    if (rv < 0)
        errorf (err, "%s: cannot sync: %s", path, inside_error (errno));
    return inside_close (parent, rv);
}

static int open_folder (struct entry_folder *f, const char *path, bool new,
                        struct slurmdl_error *err)
{
    const char *name = strrchr (path, '/') + 1;

    if (f->fd >= 0 && !strcmp (f->name, name))
        return 0;
    if (entry_settle (f, err) < 0)
        return -1;
    entry_close (f);
    if (new &&create_folder (path, err) < 0)
        return -1;
    snprintf (f->name, sizeof (f->name), "%s", name);
    f->fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    return f->fd < 0 ? errorf (err, "%s: cannot write: %s", path, inside_error (errno)) : 0;
}

static void begin_after (void *folder)
{
    const struct entry_folder *f = folder;

    if (f->after)
        f->after->begin (f->after->arg);
}

/* The entry before is safe first, or there could be a gap. */
static int end_after (void *folder, struct slurmdl_error *err)
{
    struct entry_folder *f = folder;

    if (entry_settle (f, err) < 0)
        return -1;
    return f->after ? f->after->end (f->after->arg, err) : 0;
}

static int put (struct entry_folder *f, const char *folder, bool new, const char *path,
                const char *text, struct slurmdl_error *err)
{
    const struct publish_after after = { begin_after, end_after, f };

    if (open_folder (f, folder, new, err) < 0)
        return -1;
    return publish_unsynced_at (f->fd, path, text, strlen (text), &after, err);
}

int entry_put (struct entry_folder *f, const char *folder, bool new, const char *path,
               const char *text, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    bool kept = f->fd >= 0;
    int rv = put (f, folder, new, path, text, &why);

    /* what was opened long ago may be out of reach by now */
    if (rv < 0 && kept && !f->unsettled && (errno == ESTALE || errno == ENOENT)) {
        entry_close (f);
        why = (struct slurmdl_error){ "" };
        rv = put (f, folder, new, path, text, &why);
    }
    if (rv == 0) {
        f->unsettled = true;
        rv = f->defers ? 0 : entry_settle (f, &why);
    }
    if (rv < 0) {
        errorf (err, "%s", why.text);
        if (!f->unsettled)
            entry_close (f);
    }
    return rv;
}
