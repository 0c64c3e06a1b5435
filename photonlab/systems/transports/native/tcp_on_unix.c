/* TCP over IPv4's loopback moved onto AF_UNIX, for programs that know nothing of it: LD_PRELOAD this library.
 *
 * A program's sockets begin as what they are. When one is bound or connected to 127.0.0.0/8, a stream of the AF_UNIX
 * family takes its place under the same descriptor, and its name in the abstract namespace is that address and port.
 * From then on the bytes go past the TCP stack; send, recv, poll and close are the system's own, with nothing of this
 * library in between. Whose socket a descriptor is is asked of the system each time, so that copies, children and
 * descriptors passed on need no book-keeping.
 *
 * Ports are the system's: a real socket is bound first, so that a port in use is refused as TCP refuses it and port 0
 * gets one that is free. Where nobody listens under a name, TCP itself is asked: it finds a listener that is not
 * preloaded, or refuses.
 *
 * Not moved: IPv6, datagrams, sockets that listen on all addresses. Not imitated: TCP_INFO, urgent data, and the
 * address that recvfrom and recvmsg give. System calls made past the C library are not seen.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

const char tcp_on_unix[] = "preloaded"; /* by which a program that knows of it sees that it is there */

#define FORWARD(name) static __typeof__(name) *real_##name
FORWARD(bind);
FORWARD(connect);
FORWARD(accept4);
FORWARD(getsockname);
FORWARD(getpeername);
FORWARD(setsockopt);
FORWARD(getsockopt);

static const char MARK[] = "tcp-on-unix:"; /* behind the zero byte of an abstract name; 127.0.0.1:80 is 7f000001:0050 */
enum { MARKED = sizeof MARK - 1, NAMED = 1 + MARKED + 8 + 1 + 4, TRIES = 100 };

__attribute__((constructor)) static void resolve(void) {
#define RESOLVE(name) real_##name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
    RESOLVE(bind);
    RESOLVE(connect);
    RESOLVE(accept4);
    RESOLVE(getsockname);
    RESOLVE(getpeername);
    RESOLVE(setsockopt);
    RESOLVE(getsockopt);
}

static int option(int fd, int which) {
    int value = -1;
    socklen_t size = sizeof value;
    return real_getsockopt(fd, SOL_SOCKET, which, &value, &size) ? -1 : value;
}

static int is_tcp(int fd) {
    return option(fd, SO_DOMAIN) == AF_INET && option(fd, SO_TYPE) == SOCK_STREAM &&
           option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

static int is_loopback(const struct sockaddr *address, socklen_t size) {
    return address && size >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* The name that stands for an address and port; gives its length. */
static socklen_t name_of(const struct sockaddr_in *address, struct sockaddr_un *name) {
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    snprintf(name->sun_path + 1, NAMED, "%s%08x:%04x", MARK, ntohl(address->sin_addr.s_addr), ntohs(address->sin_port));
    return offsetof(struct sockaddr_un, sun_path) + NAMED;
}

/* The address and port that a name stands for; gives 0 if it is none of this library's. */
static int address_of(const struct sockaddr_un *name, socklen_t size, struct sockaddr_in *address) {
    char text[NAMED] = "";
    unsigned host, port;
    if (size != offsetof(struct sockaddr_un, sun_path) + NAMED || name->sun_family != AF_UNIX || name->sun_path[0])
        return 0;
    memcpy(text, name->sun_path + 1, NAMED - 1);
    if (memcmp(text, MARK, MARKED) || sscanf(text + MARKED, "%8x:%4x", &host, &port) != 2) return 0;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons(port)};
    return 1;
}

typedef __typeof__(getsockname) asker;

/* Ask for one of a socket's addresses; gives 1 if the socket is one that was moved. */
static int moved(asker *ask, int fd, struct sockaddr_in *address) {
    struct sockaddr_un name;
    socklen_t size = sizeof name;
    int before = errno, found = !ask(fd, (struct sockaddr *)&name, &size) && address_of(&name, size, address);
    errno = before;
    return found;
}

static void hand_out(const struct sockaddr_in *found, struct sockaddr *address, socklen_t *size) {
    if (!address || !size) return;
    memcpy(address, found, *size < sizeof *found ? *size : sizeof *found);
    *size = sizeof *found;
}

/* A stream of the AF_UNIX family bound to the name of an address whose port TCP grants too; -1 and errno if not. */
static int named(const struct sockaddr_in *wanted, int like) {
    for (int i = 0; i < TRIES; i++) {
        struct sockaddr_in got = *wanted;
        struct sockaddr_un name;
        socklen_t size = sizeof got;
        int reuse = option(like, SO_REUSEADDR), why = 0, trial = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (trial < 0) return -1;
        real_setsockopt(trial, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
        if (real_bind(trial, (const struct sockaddr *)wanted, sizeof *wanted) ||
            real_getsockname(trial, (struct sockaddr *)&got, &size))
            why = errno;
        int fd = why ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!why && (fd < 0 || real_bind(fd, (struct sockaddr *)&name, name_of(&got, &name)))) why = errno;
        close(trial);
        if (!why) return fd;
        if (fd >= 0) close(fd);
        errno = why;
        if (why != EADDRINUSE || wanted->sin_port) return -1; /* instead of port 0 the next one may be free */
    }
    return -1;
}

/* Give a socket what a program has set another one to so far. */
static int dress(int fd, int like) {
    static const int kept[] = {SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER};
    for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++) {
        char value[32];
        socklen_t size = sizeof value;
        if (!real_getsockopt(like, SOL_SOCKET, kept[i], value, &size))
            real_setsockopt(fd, SOL_SOCKET, kept[i], value, size);
    }
    return fcntl(fd, F_SETFL, fcntl(like, F_GETFL));
}

static int fail(int fd, int why) {
    close(fd);
    errno = why;
    return -1;
}

/* Put a socket in another's place. */
static int take_place(int fd, int place) {
    if (dup3(fd, place, fcntl(place, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) return fail(fd, errno);
    close(fd);
    return 0;
}

int bind(int fd, const struct sockaddr *address, socklen_t size) {
    if (!is_loopback(address, size) || !is_tcp(fd)) return real_bind(fd, address, size);
    int stream = named((const struct sockaddr_in *)address, fd);
    if (stream < 0) return -1;
    return dress(stream, fd) ? fail(stream, errno) : take_place(stream, fd);
}

int connect(int fd, const struct sockaddr *address, socklen_t size) {
    struct sockaddr_in mine;
    struct sockaddr_un name;
    if (!is_loopback(address, size)) return real_connect(fd, address, size);
    socklen_t length = name_of((const struct sockaddr_in *)address, &name);
    if (moved(real_getsockname, fd, &mine)) return real_connect(fd, (struct sockaddr *)&name, length);
    socklen_t given = sizeof mine;
    if (!is_tcp(fd) || real_getsockname(fd, (struct sockaddr *)&mine, &given) || mine.sin_port)
        return real_connect(fd, address, size); /* bound to an address that is not moved, or connected */
    mine = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int stream = named(&mine, fd);
    if (stream < 0) return -1;
    if (!dress(stream, fd) && !real_connect(stream, (struct sockaddr *)&name, length)) return take_place(stream, fd);
    fail(stream, errno);
    return errno == ECONNREFUSED ? real_connect(fd, address, size) : -1;
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    struct sockaddr_in found;
    if (!moved(real_getsockname, fd, &found)) return real_accept4(fd, address, size, flags);
    int one = real_accept4(fd, 0, 0, flags);
    if (one >= 0 && moved(real_getpeername, one, &found)) hand_out(&found, address, size);
    return one;
}

int accept(int fd, struct sockaddr *address, socklen_t *size) { return accept4(fd, address, size, 0); }

int getsockname(int fd, struct sockaddr *address, socklen_t *size) {
    struct sockaddr_in found;
    if (!moved(real_getsockname, fd, &found)) return real_getsockname(fd, address, size);
    hand_out(&found, address, size);
    return 0;
}

int getpeername(int fd, struct sockaddr *address, socklen_t *size) {
    struct sockaddr_in found;
    if (!moved(real_getpeername, fd, &found)) return real_getpeername(fd, address, size);
    hand_out(&found, address, size);
    return 0;
}

/* Options of IP and TCP mean nothing to the other family: they are taken, and nothing comes of them. */
int setsockopt(int fd, int level, int which, const void *value, socklen_t size) {
    struct sockaddr_in found;
    if ((level == IPPROTO_TCP || level == IPPROTO_IP || (level == SOL_SOCKET && which == SO_REUSEPORT)) &&
        moved(real_getsockname, fd, &found))
        return 0;
    return real_setsockopt(fd, level, which, value, size);
}

int getsockopt(int fd, int level, int which, void *value, socklen_t *size) {
    struct sockaddr_in found;
    int posed = level == IPPROTO_TCP || level == IPPROTO_IP ? 1 /* TCP_NODELAY: nothing waits here */
                : level != SOL_SOCKET                       ? -1
                : which == SO_DOMAIN                        ? AF_INET
                : which == SO_PROTOCOL                      ? IPPROTO_TCP
                                                            : -1;
    if (posed < 0 || !value || !size || *size < sizeof posed || !moved(real_getsockname, fd, &found))
        return real_getsockopt(fd, level, which, value, size);
    memcpy(value, &posed, sizeof posed);
    *size = sizeof posed;
    return 0;
}
