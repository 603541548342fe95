/* SPDX-License-Identifier: Apache-2.0 */
/* Measure how fast checkpoints are written and read, compared with plain file I/O.
 *
 *     checkpoint DIR WHAT MIB    prints "NAME SECONDS" lines; see checkpoint.py
 */
#include <stdbool.h>
#include <sys/mman.h>

#include "runtime/slurmdl.h"
#include "tests/bench/bench.h"

enum { LARGE = 100, SMALL = 100, RANKS = 4, REQUEST = 8 << 20, PAGE = 4096 };

static void check (bool ok, const char *what)
{
    if (ok)
        return;
    fprintf (stderr, "checkpoint: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* Returns memory with random bytes, which do not compress. */
static unsigned char *memory (size_t n)
{
    unsigned char *p;
    uint64_t x = 88172645463325252u;

    check (posix_memalign ((void **)&p, PAGE, n + PAGE) == 0, "memory");
    for (size_t i = 0; i < n; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy (p + i, &x, 8);
    }
    return p;
}

static const char *in (const char *dir, const char *name)
{
    static char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return path;
}

/* ---- plain file I/O ---- */

static void raw_write (const char *name, const char *path, int flags, const unsigned char *p,
                       size_t n)
{
    int fd;
    double t;

    unlink (path);
    t = now ();
    fd = open (path, O_WRONLY | O_CREAT | flags, 0666);
    check (fd >= 0, path);
    for (size_t at = 0; at < n; at += REQUEST) {
        size_t k = n - at < REQUEST ? n - at : REQUEST;
        check (write (fd, p + at, k) == (ssize_t)k, path);
    }
    check (fsync (fd) == 0 && close (fd) == 0, path);
    printf ("%s %.6f\n", name, now () - t);
}

/* Returns the share of a file that is in the page cache. */
static double resident (int fd)
{
    size_t n = (size_t)lseek (fd, 0, SEEK_END), pages = (n + PAGE - 1) / PAGE;
    void *map = mmap (NULL, n, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *in = malloc (pages);
    size_t found = 0;

    check (map != MAP_FAILED && in && mincore (map, n, in) == 0, "mincore");
    for (size_t i = 0; i < pages; i++)
        found += in[i] & 1;
    munmap (map, n);
    free (in);
    return (double)found / (double)pages;
}

/* Drop a file from the page cache.  Retry, because the kernel keeps pages that it still uses. */
static void drop (const char *path)
{
    int fd = open (path, O_RDONLY);

    for (int i = 0; i < 100; i++) {
        fsync (fd);
        posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
        if (resident (fd) < 0.001)
            break;
        usleep (50000);
    }
    check (resident (fd) < 0.001, "the page cache keeps the file");
    close (fd);
}

static void raw_read (const char *name, const char *path, unsigned char *p, size_t n)
{
    double t = now ();
    int fd = open (path, O_RDONLY);

    for (size_t at = 0; at < n; at += REQUEST)
        check (pread (fd, p + at, n - at < REQUEST ? n - at : REQUEST, (off_t)at) > 0, path);
    close (fd);
    if (name)
        printf ("%s %.6f\n", name, now () - t);
}

/* Each rank writes its part of one file: an upper bound for several writers. */
static void raw_ranks (const char *path, const unsigned char *p, size_t n)
{
    size_t part = n / RANKS / PAGE * PAGE;
    double t;
    int fd;

    unlink (path);
    t = now ();
    fd = open (path, O_WRONLY | O_CREAT, 0666);
    check (ftruncate (fd, (off_t)n) == 0, path);
    for (int r = 0; r < RANKS; r++)
        if (fork () == 0) {
            int d = open (path, O_WRONLY | O_DIRECT);
            for (size_t at = 0; at < part; at += REQUEST) {
                size_t k = part - at < REQUEST ? part - at : REQUEST;
                off_t to = (off_t)((size_t)r * part + at);
                check (pwrite (d, p + to, k, to) == (ssize_t)k, path);
            }
            check (fdatasync (d) == 0, path);
            _exit (0);
        }
    while (wait (NULL) > 0)
        ;
    check (fsync (fd) == 0 && close (fd) == 0, path);
    printf ("raw-4-ranks %.6f\n", now () - t);
}

/* ---- ours ---- */

/* Protect large and small tensors of odd sizes.  Like those of numpy and torch, they are not
 * aligned to pages.
 */
static struct slurmdl *open_run (const char *dir, unsigned char *p, size_t n)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (dir, &err);
    uint64_t large = (n - SMALL * 16384) / LARGE / 4 - 1000;
    char name[32];

    check (run, err.text);
    p += 64;
    for (uint64_t i = 0; i < LARGE; i++, p += (large + i) * 4 / 64 * 64 + 64) {
        uint64_t dims = large + i;
        snprintf (name, sizeof (name), "layer%llu/weight", (unsigned long long)i);
        check (slurmdl_protect (run, name, SLURMDL_F32, 1, &dims, p) == 0, name);
    }
    for (uint64_t i = 0; i < SMALL; i++, p += 16384) {
        uint64_t dims = 1000 + i * 25;
        snprintf (name, sizeof (name), "layer%llu/bias", (unsigned long long)i);
        check (slurmdl_protect (run, name, SLURMDL_F32, 1, &dims, p) == 0, name);
    }
    return run;
}

static void save (const char *dir, unsigned char *p, size_t n)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = open_run (dir, p, n);
    double t = now ();

    check (slurmdl_save (run, 1, &err) == 0, err.text);
    printf ("save %.6f\n", now () - t);
    t = now ();
    check (slurmdl_save_wait (run, &err) == 0, err.text);
    printf ("read-back %.6f\n", now () - t);
    slurmdl_close (run);
}

/* Prepare the staging memory first, so that even the first save does not have to allocate it. */
static void save_async (const char *dir, unsigned char *p, size_t n)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = open_run (dir, p, n);

    slurmdl_save_prepare (run);
    check (slurmdl_save_wait (run, &err) == 0, err.text);
    for (int i = 1; i <= 4; i++) {
        double t = now ();
        check (slurmdl_save_async (run, i, &err) == 0 && !*err.text, err.text);
        printf ("%s %.6f\n", i > 1 ? "async-stall" : "async-first", now () - t);
        check (slurmdl_save_wait (run, &err) == 0, err.text);
    }
    slurmdl_close (run);
}

static void restore (const char *dir, unsigned char *p, size_t n, const char *name)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = open_run (dir, p, n);
    int64_t step;
    double t = now ();

    check (slurmdl_restore (run, &step, &err) == 1, err.text);
    printf ("%s %.6f\n", name, now () - t);
    slurmdl_close (run);
}

/* Read the same file in alternating order, because the previous read may slow the disk down. */
static void read_in_turns (const char *dir, unsigned char *p, size_t n)
{
    char file[PATH_MAX], run[PATH_MAX];

    snprintf (file, sizeof (file), "%s/run/a.1/ckpt/00000001.h5", dir);
    snprintf (run, sizeof (run), "%s/run", dir);
    for (int i = 0; i < 4; i++) {
        drop (file);
        if (i % 2 == 0)
            raw_read ("raw-read-cold", file, p, n);
        else
            restore (run, p, n, "restore-cold");
        drop (file);
        if (i % 2 == 0)
            restore (run, p, n, "restore-cold");
        else
            raw_read ("raw-read-cold", file, p, n);
        raw_read (NULL, file, p, n); /* fill the page cache */
        raw_read ("raw-read-warm", file, p, n);
        restore (run, p, n, "restore-warm");
    }
}

static void rank (const char *dir, unsigned char *p, size_t n, int r)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run;
    char text[16];
    double t;

    snprintf (text, sizeof (text), "%d", r);
    setenv ("RANK", text, 1);
    setenv ("WORLD_SIZE", "4", 1);
    run = slurmdl_open (dir, &err);
    check (run, err.text);
    for (int i = 0; i < LARGE; i++) {
        uint64_t all = n / LARGE / 4;
        uint64_t from = all * (uint64_t)r / RANKS;
        uint64_t part = all * (uint64_t)(r + 1) / RANKS - from;
        snprintf (text, sizeof (text), "w%d", i);
        check (slurmdl_protect_shard (run, text, SLURMDL_F32, 1, &all, &from, &part,
                                      p + (size_t)i * all + 64)
                   == 0,
               text);
    }
    /* wait for all ranks before the measurement */
    check (slurmdl_stop_here (run, 0) == 0, "stop_here");
    t = now ();
    check (slurmdl_save (run, 1, &err) == 0, err.text);
    if (r == 0)
        printf ("save-4-ranks %.6f\n", now () - t);
    fflush (stdout);
    slurmdl_close (run);
    _exit (0);
}

static void ranks (const char *dir, unsigned char *p, size_t n)
{
    fflush (stdout);
    for (int r = 0; r < RANKS; r++)
        if (fork () == 0)
            rank (dir, p, n, r);
    while (wait (NULL) > 0)
        ;
}

/* Measure slurmdl_stop_here() with four ranks. */
static void stop (const char *dir)
{
    enum { CALLS = 20000000 };
    char text[16];

    fflush (stdout);
    for (int r = 0; r < RANKS; r++)
        if (fork () == 0) {
            snprintf (text, sizeof (text), "%d", r);
            setenv ("RANK", text, 1);
            setenv ("WORLD_SIZE", "4", 1);
            struct slurmdl *run = slurmdl_open (dir, NULL);
            check (run && slurmdl_stop_here (run, 0) == 0, "stop_here");
            double t = now ();
            for (int i = 1; i < CALLS; i++)
                check (slurmdl_stop_here (run, i) == 0, "stop_here");
            if (r == 0)
                printf ("stop-here-1G-calls %.6f\n", (now () - t) / CALLS * 1e9);
            fflush (stdout);
            slurmdl_close (run);
            _exit (0);
        }
    while (wait (NULL) > 0)
        ;
}

int main (int argc, char **argv)
{
    size_t n;
    unsigned char *p;

    if (argc != 4)
        return 64;
    n = (size_t)atol (argv[3]) << 20;
    p = memory (n + n / 16);
    setvbuf (stdout, NULL, _IOLBF, 0);
    if (!strcmp (argv[2], "raw-direct"))
        raw_write ("raw-direct", in (argv[1], "raw"), O_DIRECT, p, n);
    else if (!strcmp (argv[2], "raw-buffered"))
        raw_write ("raw-buffered", in (argv[1], "raw"), 0, p, n);
    else if (!strcmp (argv[2], "raw-ranks"))
        raw_ranks (in (argv[1], "raw"), p, n);
    else if (!strcmp (argv[2], "save"))
        save (in (argv[1], "run"), p, n);
    else if (!strcmp (argv[2], "async"))
        save_async (in (argv[1], "run"), p, n);
    else if (!strcmp (argv[2], "stop"))
        stop (in (argv[1], "run"));
    else if (!strcmp (argv[2], "ranks"))
        ranks (in (argv[1], "run"), p, n);
    else if (!strcmp (argv[2], "restore")) {
        save (in (argv[1], "run"), p, n);
        read_in_turns (argv[1], p, n);
    }
    return 0;
}
