/* SPDX-License-Identifier: Apache-2.0 */
/* The roll call of a step: the first task of each node answers srun, which reports
 * the nodes that do not.  A process beside srun keeps lines that ranks post for
 * others.
 */
#include "spank/hooks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/rank/layout.h"
#include "runtime/rank/slurmconf.h"
#include "spank/context.h"
#include "spank/helper.h"

enum {
    NAME = 256,
    LIST = 4096,
    ANSWER = LIST + NAME + 128,
    CALLERS = 64,   /* clients read at once */
    LISTS = 16,     /* lists for the components of a heterogeneous step */
    WAITING = 4096, /* backlog of listen() */
    POSTS = 64,
    POST_NAME = 33,
    POST_TEXT = 600,
    KEEP_S = 30,
    SILENT_S = 5, /* seconds that the kernel keeps a silent connection */
    NAMED = 8,
    LATE_S = 20, /* after the first answer */
    CONNECT_MS = 2000,
    END_MS = 1000,
    NODES_TEXT = 65536,
    ASKED_TEXT = 512
};

/* ---- the process beside srun ---- */

struct caller {
    int fd;
    size_t used;
    char text[ANSWER];
};

/* A line that a process of the step has posted.  It lives as long as the poster's
 * connection, or for KEEP_S.
 */
struct post {
    int fd;     /* -1: none */
    long until; /* second at which it expires */
    char name[POST_NAME], text[POST_TEXT];
};

struct node_answer {
    char node[NAME], build[PLUGIN_BUILD];
};

struct rollcall {
    volatile bool *content; /* shared with srun: everybody has answered; NULL: no process */
    int srun, listener, port;
    char token[SECRET_TEXT];
    char asked[ASKED_TEXT];           /* options that the user gave, or "" */
    bool launched, on, is_told, same; /* 'same': all builds are the same */
    long first;                       /* second of the first answer; 0: none yet */
    struct caller callers[CALLERS];
    int ncallers;
    struct post posts[POSTS];
    int nposts;
    struct node_answer *answers;
    size_t n;
    char lists[LISTS][LIST]; /* node lists, as the tasks report them */
    int nlists;
    size_t expected;        /* number of nodes in these lists */
    char nodes[NODES_TEXT]; /* the step's nodes, as srun reports them at its end */
};

/* Node names for one line of output. */
struct names {
    const struct rollcall *r;
    size_t n;
    char text[NAMED * 64];
};

static long monotonic_seconds (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void name_node (struct names *names, const char *node)
{
    size_t used = strlen (names->text);

    if (names->n++ < NAMED)
        snprintf (names->text + used, sizeof (names->text) - used, "%s%.60s", used ? "," : "",
                  node);
}

static const char *ellipsis_of (const struct names *names)
{
    return names->n > NAMED ? ", ..." : "";
}

static int by_node_name (const void *a, const void *b)
{
    return strcmp (((const struct node_answer *)a)->node, ((const struct node_answer *)b)->node);
}

static int note_missing (void *arg, const char *node)
{
    struct names *names = arg;
    struct node_answer key;

    snprintf (key.node, sizeof (key.node), "%s", node);
    if (names->r->n == 0
        || !bsearch (&key, names->r->answers, names->r->n, sizeof (key), by_node_name))
        name_node (names, node);
    return 0;
}

static void find_missing (struct rollcall *r, struct names *names)
{
    names->r = r;
    if (r->n > 0)
        qsort (r->answers, r->n, sizeof (*r->answers), by_node_name);
    for (int i = 0; i < r->nlists; i++)
        layout_each_host (r->lists[i], note_missing, names);
    if (r->n == 0 && *r->nodes == '=')
        layout_each_host (r->nodes + 1, note_missing, names);
}

/* The most frequent build.  Between equals, the first wins. */
static const char *usual_build (const struct rollcall *r)
{
    const char *usual = r->answers[0].build;
    size_t most = 0;

    for (size_t i = 0; i < r->n; i++) {
        const char *build = r->answers[i].build;
        size_t count = 0;
        for (size_t k = i; k < r->n; k++)
            count += !strcmp (r->answers[k].build, build);
        if (count > most) {
            most = count;
            usual = build;
        }
        if (most > r->n / 2)
            break;
    }
    return usual;
}

static void find_other_names (const struct rollcall *r, struct names *names)
{
    const char *usual = r->n > 0 ? usual_build (r) : "";

    for (size_t i = 0; i < r->n; i++)
        if (strcmp (r->answers[i].build, usual))
            name_node (names, r->answers[i].node);
}

/* Print everything in one line.  If the user asked for nothing, leave builds out,
 * and print nothing at all if no node has what the site wanted.
 */
static void print_rollcall (struct rollcall *r, const char *since)
{
    struct names missing = { 0 }, others = { 0 };
    char line[4 * sizeof (missing.text)] = "";
    bool none = r->n == 0;

    if (!r->launched || r->is_told || (none ? !*r->asked : !r->on))
        return;
    find_missing (r, &missing);
    if (*r->asked)
        find_other_names (r, &others);
    if (missing.n == 0 && !none && others.n == 0)
        return;
    if (missing.n > 0 || none)
        snprintf (line, sizeof (line),
                  "no answer from %s%s%s: dl.so is missing there, so that tasks run without %s, or "
                  "it cannot reach TCP port %d of "
                  "this host, or no task ran",
                  missing.n > 0 ? missing.text : "any node of this step", ellipsis_of (&missing),
                  since, *r->asked ? r->asked : "the site's defaults", r->port);
    if (others.n > 0)
        snprintf (line + strlen (line), sizeof (line) - strlen (line),
                  "%sanother build of dl.so on %s%s", *line ? "; " : "", others.text,
                  ellipsis_of (&others));
    dprintf (STDERR_FILENO, "dl: %s; see dl-spank(8)\n", line);
    r->is_told = true;
}

static int count_expected_node (void *arg, const char *node)
{
    (void)node;
    ++*(size_t *)arg;
    return 0;
}

static void take_node_list (struct rollcall *r, const char *list)
{
    for (int i = 0; i < r->nlists; i++)
        if (!strcmp (r->lists[i], list))
            return;
    if (r->nlists == LISTS || !strcmp (list, "-"))
        return;
    snprintf (r->lists[r->nlists++], LIST, "%s", list);
    layout_each_host (list, count_expected_node, &r->expected);
}

/* "on|off BUILD NODE NODES", from the first task of a node. */
static void take_answer (struct rollcall *r, const char *text)
{
    char on[4], list[LIST];
    struct node_answer a, *grown;

    if (sscanf (text, "%3s %19s %255s %4095s", on, a.build, a.node, list) != 4)
        return;
    if (!(grown = reallocarray (r->answers, r->n + 1, sizeof (*grown))))
        return;
    r->answers = grown;
    r->answers[r->n++] = a;
    r->on |= !strcmp (on, "on");
    r->first = r->first ? r->first : monotonic_seconds ();
    r->same = r->same && !strcmp (a.build, r->answers[0].build);
    take_node_list (r, list);
    if (r->content)
        *r->content = r->n == r->expected && r->same;
}

static int find_post (const struct rollcall *r, const char *name)
{
    int i = 0;

    while (i < r->nposts && strcmp (r->posts[i].name, name))
        i++;
    return i;
}

static void drop_post (struct rollcall *r, int i)
{
    if (r->posts[i].fd >= 0)
        close (r->posts[i].fd);
    r->posts[i] = r->posts[--r->nposts];
}

static void drop_old_posts (struct rollcall *r)
{
    long now = monotonic_seconds ();

    for (int i = r->nposts - 1; i >= 0; i--)
        if (r->posts[i].fd < 0 && now > r->posts[i].until)
            drop_post (r, i);
}

/* "NAME TEXT": replaces an older line of that name. */
static bool take_post (struct rollcall *r, int fd, const char *text)
{
    struct post p = { .fd = fd, .until = monotonic_seconds () + KEEP_S };
    int i;

    if (sscanf (text, "%32s %599[^\n]", p.name, p.text) != 2)
        return false;
    if ((i = find_post (r, p.name)) < r->nposts)
        drop_post (r, i);
    if (r->nposts == POSTS)
        return false;
    r->posts[r->nposts++] = p;
    return true;
}

/* "get NAME": answer at once, even if nothing was posted yet. */
static void tell_post (const struct rollcall *r, int fd, const char *text)
{
    char name[POST_NAME] = "", line[POST_TEXT + 1];
    int i, n;

    sscanf (text, "%32s", name);
    if ((i = find_post (r, name)) == r->nposts)
        return;
    n = snprintf (line, sizeof (line), "%s\n", r->posts[i].text);
    send (fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Compare in constant time. */
static bool has_token (const struct rollcall *r, const char *text)
{
    unsigned char differs = 0;

    if (strnlen (text, SECRET_TEXT) < SECRET_TEXT)
        return false;
    for (int i = 0; i < SECRET_TEXT - 1; i++)
        differs |= (unsigned char)(text[i] ^ r->token[i]);
    return !differs && text[SECRET_TEXT - 1] == ' ';
}

/* "TOKEN ...", from a process that has the token.  Returns whether to keep the connection. */
static bool take_line (struct rollcall *r, int fd, const char *text)
{
    if (!has_token (r, text))
        return false;
    text += SECRET_TEXT;
    drop_old_posts (r);
    if (!strncmp (text, "put ", 4))
        return take_post (r, fd, text + 4);
    if (!strncmp (text, "get ", 4))
        tell_post (r, fd, text + 4);
    else if (strncmp (text, "keep ", 5) != 0)
        take_answer (r, text);
    else if (take_post (r, -1, text + 5))
        send (fd, "ok\n", 3, MSG_NOSIGNAL | MSG_DONTWAIT);
    return false;
}

static void forget_client (struct rollcall *r, int i)
{
    memmove (&r->callers[i], &r->callers[i + 1],
             (size_t)(--r->ncallers - i) * sizeof (*r->callers));
}

static void drop_client (struct rollcall *r, int i)
{
    close (r->callers[i].fd);
    forget_client (r, i);
}

/* Each client sends one line. */
static void hear_client (struct rollcall *r, int i)
{
    struct caller *c = &r->callers[i];
    ssize_t n = read (c->fd, c->text + c->used, ANSWER - 1 - c->used);

    if (n < 0 && errno == EAGAIN)
        return;
    c->used += n > 0 ? (size_t)n : 0;
    c->text[c->used] = '\0';
    if (n > 0 && c->used < ANSWER - 1 && !strchr (c->text, '\n'))
        return;
    if (n >= 0 && take_line (r, c->fd, c->text))
        forget_client (r, i);
    else
        drop_client (r, i);
}

/* Silent clients give way to new ones.  Most have sent their line by then. */
static void accept_callers (struct rollcall *r)
{
    int fd;

    for (int i = 0; i < CALLERS; i++) {
        if ((fd = accept4 (r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
            return;
        if (r->ncallers == CALLERS)
            drop_client (r, 0);
        r->callers[r->ncallers++] = (struct caller){ .fd = fd };
        hear_client (r, r->ncallers - 1);
    }
}

/* The nodes of the step, sent when srun ends.  Returns -1 if srun was killed. */
static int read_step_nodes (struct rollcall *r)
{
    ssize_t n = recv (r->srun, r->nodes, sizeof (r->nodes) - 1, 0);

    r->nodes[n > 0 ? n : 0] = '\0';
    return n > 0 ? 0 : -1;
}

/* Returns 0 when srun ends, or -1 if it was killed. */
static int serve (struct rollcall *r)
{
    struct pollfd p[CALLERS + POSTS + 2];
    int turns = 0;

    for (;;) {
        int late = r->first && !r->is_told;
        long left = r->first + LATE_S - monotonic_seconds ();
        p[0] = (struct pollfd){ .fd = r->srun, .events = POLLIN };
        p[1] = (struct pollfd){ .fd = r->listener, .events = POLLIN };
        for (int i = 0; i < r->ncallers; i++)
            p[i + 2] = (struct pollfd){ .fd = r->callers[i].fd, .events = POLLIN };
        for (int i = 0; i < r->nposts; i++)
            p[r->ncallers + i + 2] = (struct pollfd){ .fd = r->posts[i].fd, .events = POLLIN };
        if (late && left <= 0) {
            char since[32];
            snprintf (since, sizeof (since), " for %d s", LATE_S);
            print_rollcall (r, since);
            r->first = 0;
            late = 0;
        }
        if (poll (p, (nfds_t)(r->ncallers + r->nposts) + 2, late ? (int)left * 1000 : -1) < 0)
            continue;
        for (int i = r->nposts - 1; i >= 0; i--)
            if (p[r->ncallers + i + 2].revents)
                drop_post (r, i);
        for (int i = r->ncallers - 1; i >= 0; i--)
            if (p[i + 2].revents)
                hear_client (r, i);
        if (p[1].revents)
            accept_callers (r);
        /* serve the clients that came earlier, but do not let a flood delay the end */
        turns = p[0].revents ? turns + 1 : 0;
        if (turns > (p[1].revents ? WAITING / CALLERS : 0))
            return read_step_nodes (r);
    }
}

static void live_beside (struct rollcall *r)
{
    if (serve (r) == 0)
        print_rollcall (r, "");
    _exit (0);
}

/* ---- srun ---- */

/* "PORT TOKEN".  Processes of the step get it too (runtime/comm/net/board.h). */
static const char board_variable[] = "SLURM_DL_BOARD";

static struct rollcall *own_rollcall; /* this srun's roll call, or NULL */
static int beside = -1;               /* srun's end of the socket pair with the process */
static int components;                /* components of a heterogeneous job */
static bool in_allocation;

static int bind_to (int fd, int family, int port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons ((uint16_t)port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons ((uint16_t)port) };

    return family == AF_INET6 ? bind (fd, (struct sockaddr *)&six, sizeof (six))
                              : bind (fd, (struct sockaddr *)&four, sizeof (four));
}

/* Use the site's port range for srun, if there is one.  A firewall may block other
 * ports.
 */
static int bind_any (int fd, int family)
{
    long from, to, first;

    if (slurmconf_srun_ports (&from, &to) < 0)
        return bind_to (fd, family, 0);
    first = getpid () % (to - from + 1);
    for (long i = 0; i <= to - from; i++)
        if (bind_to (fd, family, (int)(from + (first + i) % (to - from + 1))) == 0)
            return 0;
    return -1;
}

static int listen_rollcall (int *port)
{
    static const int families[] = { AF_INET6, AF_INET };
    struct sockaddr_in6 bound;
    socklen_t size = sizeof (bound);
    static const int off = 0, silent = SILENT_S;

    for (int i = 0; i < 2; i++) {
        int fd = socket (families[i], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        if (i == 0)
            setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof (off));
        setsockopt (fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent, sizeof (silent));
        if (bind_any (fd, families[i]) == 0 && listen (fd, WAITING) == 0
            && getsockname (fd, (struct sockaddr *)&bound, &size) == 0) {
            *port = ntohs (bound.sin6_port); /* at the same offset for IPv4 */
            return fd;
        }
        close (fd);
    }
    return -1;
}

static void open_rollcall (void)
{
    struct rollcall *r = calloc (1, sizeof (*r));
    char where[SECRET_TEXT + 16];

    if (!r)
        return;
    r->same = true;
    r->listener = listen_rollcall (&r->port);
    if (r->listener < 0 || secret_random (r->token) < 0) {
        if (r->listener >= 0)
            close (r->listener);
        free (r);
        return;
    }
    snprintf (where, sizeof (where), "%d %s", r->port, r->token);
    setenv (board_variable, where, 1);
    own_rollcall = r;
}

/* srun calls this for each component of a heterogeneous job. */
void rollcall_start (bool wanted)
{
    static pid_t done;

    if (done == getpid ()) {
        components++;
        return;
    }
    unsetenv (board_variable); /* left by a step that contains this srun */
    if (!wanted)
        return;
    in_allocation = getenv ("SLURM_JOB_ID") != NULL;
    open_rollcall ();
    components = 1;
    done = getpid ();
}

/* A single task has no peers to post for, and its node cannot be late. srun then
 * reads the answer at its end, which saves a fork.
 */
static bool is_alone (spank_t sp)
{
    uint32_t nodes = 0, tasks = 0;

    return components == 1 && spank_get_item (sp, S_JOB_NNODES, &nodes) == ESPANK_SUCCESS
           && spank_get_item (sp, S_JOB_TOTAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS && nodes == 1
           && tasks == 1;
}

/* If the process cannot start, srun still reads the answers at its end. */
static void start_beside (struct rollcall *r)
{
    bool *content =
        mmap (NULL, sizeof (*content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int pair[2] = { -1, -1 };
    int fds[2];
    pid_t pid = -1;

    if (content == MAP_FAILED)
        return;
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        r->content = content;
        fds[0] = pair[1];
        fds[1] = r->listener;
        if ((pid = helper_fork (fds)) == 0) {
            r->srun = fds[0];
            r->listener = fds[1];
            live_beside (r);
        }
        close (pair[1]);
    }
    if (pid > 0) {
        close (r->listener);
        beside = pair[0];
    } else if (pair[0] >= 0) {
        close (pair[0]);
    }
}

void rollcall_launch (spank_t sp)
{
    size_t n = 0;

    if (!own_rollcall)
        return;
    for (int row = 0; row < PLUGIN_OPTIONS && n < ASKED_TEXT; row++)
        if (option_is_on (row) && option_is_given (row))
            n += (size_t)snprintf (own_rollcall->asked + n, ASKED_TEXT - n, "%s--%s=%s",
                                   n ? " " : "", plugin_options[row].name, option_value (row));
    own_rollcall->launched = true;
    if (!is_alone (sp))
        start_beside (own_rollcall);
}

/* Do not wait if everybody has answered. */
static void end_beside (const struct rollcall *r)
{
    struct pollfd p = { .fd = beside, .events = POLLIN };

    send (beside, r->nodes, strlen (r->nodes), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!*r->content)
        poll (&p, 1, END_MS);
    close (beside);
}

/* Read the answers at the end: tasks sent them before they started their programs. */
static void read_answers (struct rollcall *r)
{
    struct pollfd p = { .fd = r->listener, .events = POLLIN };

    for (int i = 0; i < WAITING / CALLERS && poll (&p, 1, 0) == 1; i++)
        accept_callers (r);
    close (r->listener);
}

/* In an allocation, srun knows only the nodes of the whole allocation. */
void rollcall_end (void)
{
    const char *nodes = getenv ("SLURM_NODELIST");

    if (!own_rollcall)
        return;
    if (snprintf (own_rollcall->nodes, NODES_TEXT, "%c%s", in_allocation ? '~' : '=', nodes ?: "")
        >= NODES_TEXT)
        own_rollcall->nodes[1] = '\0';
    if (beside >= 0) {
        end_beside (own_rollcall);
    } else {
        read_answers (own_rollcall);
        print_rollcall (own_rollcall, "");
    }
    free (own_rollcall->answers);
    free (own_rollcall);
    own_rollcall = NULL;
}

/* ---- a task ---- */

static int connect_to_peer (const char *address, int port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons ((uint16_t)port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons ((uint16_t)port) };
    bool is_four = inet_pton (AF_INET, address, &four.sin_addr) == 1;
    struct sockaddr *to = is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    struct pollfd p = { .events = POLLOUT };

    if (!is_four && inet_pton (AF_INET6, address, &six.sin6_addr) != 1)
        return -1;
    p.fd = socket (to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p.fd < 0)
        return -1;
    if (connect (p.fd, to, is_four ? sizeof (four) : sizeof (six)) == 0
        || (errno == EINPROGRESS && poll (&p, 1, CONNECT_MS) == 1))
        return p.fd;
    close (p.fd);
    return -1;
}

static void answer_client (spank_t sp, const char *token, int port, bool on)
{
    char address[64], node[NAME], list[LIST] = "", build[PLUGIN_BUILD], text[ANSWER];
    int fd;

    if (variable_text (sp, "SLURM_LAUNCH_NODE_IPADDR", address, sizeof (address)) < 0
        || variable_text (sp, "SLURMD_NODENAME", node, sizeof (node)) < 0)
        return;
    if (variable_text (sp, "SLURM_STEP_NODELIST", list, sizeof (list)) < 0 || !*list)
        snprintf (list, sizeof (list), "-");
    plugin_build (build);
    snprintf (text, sizeof (text), "%s %s %s %s %s\n", token, on ? "on" : "off", build, node, list);
    if ((fd = connect_to_peer (address, port)) < 0)
        return;
    send (fd, text, strlen (text), MSG_NOSIGNAL | MSG_DONTWAIT);
    close (fd);
}

/* For a single task, hide the board, because no process beside srun would answer. */
void rollcall_answer (spank_t sp, bool on)
{
    char where[64] = "", token[SECRET_TEXT];
    int port;

    if (variable_number (sp, "SLURM_LOCALID") != 0
        || variable_text (sp, board_variable, where, sizeof (where)) < 0
        || sscanf (where, "%d %32s", &port, token) != 2)
        return;
    answer_client (sp, token, port, on);
    if (variable_number (sp, "SLURM_STEP_NUM_TASKS") == 1
        && variable_number (sp, "SLURM_HET_SIZE") <= 1)
        spank_unsetenv (sp, board_variable);
}
