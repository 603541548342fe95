/* SPDX-License-Identifier: Apache-2.0 */
/* Preload before libasan to keep threads out of the allocator during fork().
 *
 * The sanitizer's allocator in gcc 12 does not survive a fork in a process with threads, such as
 * slurmstepd: if a thread holds a lock of the allocator, the child waits for it forever.
 */
#include <sched.h>
#include <string.h>
#include <sys/types.h>

static char lock; /* no mutex, because the sanitizer intercepts those functions */
/* other TLS models may allocate memory */
#define EARLY __attribute__ ((tls_model ("initial-exec")))

static __thread int depth EARLY; /* the allocator may call itself */

static void enter (void)
{
    if (depth++ == 0)
        while (__atomic_test_and_set (&lock, __ATOMIC_ACQUIRE))
            sched_yield ();
}

static void leave (void)
{
    if (--depth == 0)
        __atomic_clear (&lock, __ATOMIC_RELEASE);
}

#define LOCKED(type, name, real, parameters, ...)                                                  \
    type real parameters;                                                                          \
    type name parameters;                                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        type rv;                                                                                   \
        enter ();                                                                                  \
        rv = real (__VA_ARGS__);                                                                   \
        leave ();                                                                                  \
        return rv;                                                                                 \
    }

#define ASAN(type, name, parameters, ...)                                                          \
    LOCKED (type, name, __interceptor_##name, parameters, __VA_ARGS__)

ASAN (void *, malloc, (size_t size), size)
ASAN (void *, calloc, (size_t n, size_t size), n, size)
ASAN (void *, realloc, (void *p, size_t size), p, size)
ASAN (char *, strdup, (const char *s), s)
LOCKED (pid_t, fork, __fork, (void), )

void __interceptor_free (void *p);
void free (void *p);
void free (void *p)
{
    enter ();
    __interceptor_free (p);
    leave ();
}
