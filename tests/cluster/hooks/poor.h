/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every file of a variant of the plugin. Calls to the system or
 * to Slurm fail if the file POOR lists their kind: "memory", "fork", "files",
 * "spank", "register", "network".
 */
#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/spank.h>

static inline int is_poor (const char *what)
{
    char text[128];
    int fd = open (POOR, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, text, sizeof (text) - 1);

    if (fd >= 0)
        close (fd);
    if (n < 0)
        return 0;
    text[n] = '\0';
    return strstr (text, what) != NULL;
}

static inline int fail_with (int e)
{
    errno = e;
    return -1;
}

/* clang-format off */
#define POOR_MEMORY(call) (is_poor ("memory") ? (errno = ENOMEM, NULL) : call)
#define malloc(n)      POOR_MEMORY ((malloc) (n))
#define calloc(n, m)   POOR_MEMORY ((calloc) (n, m))
#define realloc(p, n)  POOR_MEMORY ((realloc) (p, n))
#define strdup(s)      POOR_MEMORY ((strdup) (s))
#define fdopendir(fd)  POOR_MEMORY ((fdopendir) (fd))
#define opendir(p)     (is_poor ("files") ? (errno = EACCES, NULL) : (opendir) (p))
#define readlink(...)  (is_poor ("files") ? fail_with (ENOENT) : (readlink) (__VA_ARGS__))
#define readlinkat(...) (is_poor ("files") ? fail_with (ENOENT) : (readlinkat) (__VA_ARGS__))
#define fork()         (is_poor ("fork") ? fail_with (EAGAIN) : (fork) ())
#define open(...)      (is_poor ("files") ? fail_with (ENOENT) : (open) (__VA_ARGS__))
#define openat(...)    (is_poor ("files") ? fail_with (ENOENT) : (openat) (__VA_ARGS__))
#define fopen(p, m)    (is_poor ("files") ? (errno = EACCES, NULL) : (fopen) (p, m))
#define access(p, m)   (is_poor ("files") ? fail_with (ENOENT) : (access) (p, m))
#define faccessat(...) (is_poor ("files") ? fail_with (ENOENT) : (faccessat) (__VA_ARGS__))
#define sched_getaffinity(...) (is_poor ("files") ? fail_with (ENOSYS) : (sched_getaffinity) (__VA_ARGS__))
#define sched_setaffinity(...) (is_poor ("files") ? fail_with (EPERM) : (sched_setaffinity) (__VA_ARGS__))
#define socket(...)    (is_poor ("network") ? fail_with (EMFILE) : (socket) (__VA_ARGS__))
#define getifaddrs(p)  (is_poor ("network") ? fail_with (EACCES) : (getifaddrs) (p))
#define getaddrinfo(...) (is_poor ("network") ? EAI_AGAIN : (getaddrinfo) (__VA_ARGS__))
#define gethostname(...) (is_poor ("network") ? fail_with (ENAMETOOLONG) : (gethostname) (__VA_ARGS__))
#define spank_getenv(...)   (is_poor ("spank") ? ESPANK_ERROR : (spank_getenv) (__VA_ARGS__))
#define spank_setenv(...)   (is_poor ("spank") ? ESPANK_ERROR : (spank_setenv) (__VA_ARGS__))
#define spank_unsetenv(...) (is_poor ("spank") ? ESPANK_ERROR : (spank_unsetenv) (__VA_ARGS__))
#define spank_get_item(...) (is_poor ("spank") ? ESPANK_ERROR : (spank_get_item) (__VA_ARGS__))
#define spank_option_register(...) (is_poor ("register") ? ESPANK_BAD_ARG : (spank_option_register) (__VA_ARGS__))
/* clang-format on */
