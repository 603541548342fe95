/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: put a man in the middle of each loopback connection. A connection
 * to 127.x.x.x:PORT goes to RELAY_PORT, at an address that encodes PORT.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int connect (int fd, const struct sockaddr *to, socklen_t n)
{
    static int (*real) (int, const struct sockaddr *, socklen_t);
    const char *relay = getenv ("RELAY_PORT");
    struct sockaddr_in a;

    if (!real)
        *(void **)&real = dlsym (RTLD_NEXT, "connect");
    if (!relay || to->sa_family != AF_INET)
        return real (fd, to, n);
    memcpy (&a, to, sizeof (a));
    if (ntohl (a.sin_addr.s_addr) >> 24 == 127) {
        a.sin_addr.s_addr = htonl (0x7f4d0000u | ntohs (a.sin_port));
        a.sin_port = htons ((unsigned short)atoi (relay));
    }
    return real (fd, (struct sockaddr *)&a, sizeof (a));
}
