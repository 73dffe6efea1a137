/* Counts the file operations of a process below one folder, and lets one of them fail.

Preloaded (LD_PRELOAD), so that what native libraries write is met as well. Nothing happens until
faults_arm(). An operation is an open for writing, write, truncation, fsync, close of a written
file, rename, link, unlink, mkdir or chmod. With a log, each is written down with its bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, FULL, BROKEN, SHORT, KILL, TORN }; /* as in shim.py */
enum { FDS = 1 << 16, READ = 1, WRITTEN = 2, FAIL = 1, HALF = 2 };

static char root[PATH_MAX];
static size_t root_size;
static int kind, log_fd = -1, armed;
static long at, count, hits;
static unsigned char tracked[FDS]; /* of each descriptor: is it below the folder? */

void faults_arm(const char *folder, int what, long when, int log) {
    root_size = (size_t)snprintf(root, sizeof root, "%s/", folder);
    kind = what, at = when, log_fd = log, count = hits = 0, armed = 1;
}

long faults_count(void) { return count; }

long faults_hits(void) { return hits; }

void faults_disarm(void) { armed = 0; }

#define REAL(type, name, ...)                                                                     \
    static type (*real)(__VA_ARGS__);                                                             \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* The absolute path, if it is below the folder; else NULL. */
static const char *below(int folder, const char *path, char *whole) {
    if (!armed || !path) return NULL;
    if (path[0] == '/') {
        snprintf(whole, PATH_MAX, "%s", path);
    } else {
        char place[PATH_MAX], link[64];
        ssize_t size;
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d",
                 folder);
        if ((size = readlink(link, place, sizeof place - 1)) < 0) return NULL;
        place[size] = 0;
        if (snprintf(whole, PATH_MAX, "%s/%s", place, path) >= PATH_MAX) return NULL;
    }
    return strncmp(whole, root, root_size) == 0 ? whole : NULL;
}

static const char *path_of(int fd, char *whole) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, whole, PATH_MAX - 1);
    if (size < 0) return NULL;
    whole[size] = 0;
    return whole;
}

static int is(int fd, int what) { return armed && fd >= 0 && fd < FDS && (tracked[fd] & what); }

static void note(const char *name, const char *path, const char *other, long long place,
                 const void *bytes, size_t size) {
    char line[2 * PATH_MAX + 100];
    if (log_fd < 0) return;
    int saved = errno, length = snprintf(line, sizeof line, "%s\t%s\t%s\t%lld\t%zu\n", name,
                                         path ? path : "", other ? other : "", place, size);
    syscall(SYS_write, log_fd, line, (size_t)length);
    while (bytes && size) {
        long done = syscall(SYS_write, log_fd, bytes, size);
        if (done <= 0) break;
        bytes = (const char *)bytes + done, size -= (size_t)done;
    }
    errno = saved;
}

static int failing(int what, int error) { return hits++, errno = error ? error : errno, what; }

/* Counts an operation and notes its name, after "?". room: a full disk refuses it each time. */
static int step(const char *name, const char *path, int room) {
    int is_write = strcmp(name, "?write") == 0;
    note(name, path, NULL, 0, NULL, 0);
    long now = __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    if (now == at && (kind == SHORT || kind == TORN) && !is_write) at++; /* waits for a write */
    if (now < at || kind == NONE) return 0;
    if (now > at) {
        if ((kind == FULL || kind == SHORT) && room) return failing(FAIL, ENOSPC);
        return 0;
    }
    if (kind == KILL) raise(SIGKILL);
    if (kind == FULL) return failing(FAIL, ENOSPC);
    if (kind == BROKEN) return failing(FAIL, EIO);
    return failing(HALF, 0);
}

static int opened(int fd, int writing) {
    if (fd >= 0 && fd < FDS) tracked[fd] = writing ? WRITTEN : READ;
    return fd;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    REAL(int, "openat64", int, const char *, int, ...);
    char whole[PATH_MAX];
    if (!below(folder, path, whole)) {
        int fd = real(folder, path, flags, mode);
        if (armed && fd >= 0 && fd < FDS) tracked[fd] = 0;
        return fd;
    }
    int writing = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    if (writing && step("?open", whole, flags & O_CREAT)) return -1;
    int fd = opened(real(folder, path, flags, mode), writing);
    if (writing && fd >= 0) note(flags & O_TRUNC ? "create" : "open", whole, NULL, 0, NULL, 0);
    return fd;
}

#define MODE                                                                                      \
    mode_t mode = 0;                                                                              \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                          \
        va_list more;                                                                             \
        va_start(more, flags);                                                                    \
        mode = va_arg(more, mode_t);                                                              \
        va_end(more);                                                                             \
    }
int open(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int openat(int f, const char *path, int flags, ...) { MODE return open_at(f, path, flags, mode); }
int openat64(int f, const char *path, int flags, ...) { MODE return open_at(f, path, flags, mode); }
int __open_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __openat_2(int f, const char *path, int flags) { return open_at(f, path, flags, 0); }
int __openat64_2(int f, const char *path, int flags) { return open_at(f, path, flags, 0); }
int creat(const char *path, mode_t mode) {
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* As C's streams are opened inside the library, theirs are met by name. */
static FILE *open_stream(const char *symbol, const char *path, const char *mode) {
    FILE *(*real)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, symbol);
    char whole[PATH_MAX];
    if (!below(AT_FDCWD, path, whole)) return real(path, mode);
    int writing = mode[0] != 'r' || strchr(mode, '+') != NULL;
    if (writing && step("?open", whole, mode[0] != 'r')) return NULL;
    FILE *stream = real(path, mode);
    if (stream) opened(fileno(stream), writing);
    if (stream && writing) note(mode[0] == 'w' ? "create" : "open", whole, NULL, 0, NULL, 0);
    return stream;
}
FILE *fopen(const char *path, const char *mode) { return open_stream("fopen", path, mode); }
FILE *fopen64(const char *path, const char *mode) { return open_stream("fopen64", path, mode); }

static ssize_t write_at(int fd, const void *bytes, size_t size, off_t place) {
    REAL(ssize_t, "write", int, const void *, size_t);
    static ssize_t (*real_at)(int, const void *, size_t, off_t);
    if (!real_at)
        real_at = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    if (!is(fd, WRITTEN)) return place < 0 ? real(fd, bytes, size) : real_at(fd, bytes, size, place);
    char whole[PATH_MAX];
    int act = step("?write", NULL, 1);
    if (act == FAIL) return -1;
    if (act == HALF) size = (size + 1) / 2;
    ssize_t done = place < 0 ? real(fd, bytes, size) : real_at(fd, bytes, size, place);
    if (act == HALF && kind == TORN) raise(SIGKILL);
    if (done >= 0 && log_fd >= 0) {
        off_t begin = place < 0 ? lseek(fd, 0, SEEK_CUR) - done : place;
        note("write", path_of(fd, whole), NULL, begin, bytes, (size_t)done);
    }
    return done;
}
ssize_t write(int fd, const void *bytes, size_t size) { return write_at(fd, bytes, size, -1); }
ssize_t pwrite(int fd, const void *b, size_t size, off_t place) {
    return write_at(fd, b, size, place);
}
ssize_t pwrite64(int fd, const void *b, size_t size, off64_t place) {
    return write_at(fd, b, size, place);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (!is(fd, WRITTEN)) return real(fd, parts, number);
    for (int i = 0; i < number; i++) /* may write less than it was asked: callers go on */
        if (parts[i].iov_len) return write_at(fd, parts[i].iov_base, parts[i].iov_len, -1);
    return 0;
}

size_t fwrite(const void *bytes, size_t each, size_t number, FILE *stream) {
    REAL(size_t, "fwrite", const void *, size_t, size_t, FILE *);
    int fd = armed ? fileno(stream) : -1;
    if (!is(fd, WRITTEN)) return real(bytes, each, number, stream);
    char whole[PATH_MAX];
    int act = step("?write", NULL, 1);
    if (act == FAIL) return 0;
    if (act == HALF) number = (number + 1) / 2;
    long begin = ftell(stream);
    size_t done = real(bytes, each, number, stream);
    if (act == HALF && kind == TORN) fflush(stream), raise(SIGKILL);
    note("write", path_of(fd, whole), NULL, begin, bytes, done * each);
    return done;
}

#define COPY(name, types, names, out)                                                             \
    ssize_t name types {                                                                          \
        REAL(ssize_t, #name, int, int, off64_t *, size_t);                                        \
        (void)real;                                                                               \
        if (is(out, WRITTEN)) return errno = EINVAL, -1; /* callers then read and write */        \
        return real names;                                                                        \
    }
COPY(sendfile, (int to, int from, off_t *place, size_t size), (to, from, place, size), to)
COPY(sendfile64, (int to, int from, off64_t *place, size_t size), (to, from, place, size), to)

int ftruncate(int fd, off_t size) {
    REAL(int, "ftruncate64", int, off_t);
    char whole[PATH_MAX];
    if (is(fd, WRITTEN) && step("?truncate", NULL, 1)) return -1;
    int done = real(fd, size);
    if (is(fd, WRITTEN) && !done) note("truncate", path_of(fd, whole), NULL, size, NULL, 0);
    return done;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

#define SYNC(name)                                                                                \
    int name(int fd) {                                                                            \
        REAL(int, #name, int);                                                                    \
        char whole[PATH_MAX];                                                                     \
        if (is(fd, READ | WRITTEN) && step("?fsync", NULL, 0)) return -1;                         \
        int done = real(fd);                                                                      \
        if (is(fd, READ | WRITTEN) && !done) note("fsync", path_of(fd, whole), NULL, 0, NULL, 0); \
        return done;                                                                              \
    }
SYNC(fsync)
SYNC(fdatasync)

int close(int fd) {
    REAL(int, "close", int);
    int act = is(fd, WRITTEN) ? step("?close", NULL, 0) : 0, saved = errno;
    if (fd >= 0 && fd < FDS) tracked[fd] = 0;
    int done = real(fd); /* it is closed whatever it says */
    return act == FAIL ? (errno = saved, -1) : done;
}
int fclose(FILE *stream) {
    REAL(int, "fclose", FILE *);
    int fd = armed ? fileno(stream) : -1, act = is(fd, WRITTEN) ? step("?close", NULL, 0) : 0, saved = errno;
    if (fd >= 0 && fd < FDS) tracked[fd] = 0;
    int done = real(stream);
    return act == FAIL ? (errno = saved, EOF) : done;
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    char source[PATH_MAX], target[PATH_MAX];
    const char *one = below(from, old, source), *other = below(to, new, target);
    if ((one || other) && step("?rename", one, 0)) return -1;
    int done = (int)syscall(SYS_renameat2, from, old, to, new, flags);
    if ((one || other) && !done) note("rename", source, target, 0, NULL, 0);
    return done;
}
int renameat(int from, const char *old, int to, const char *new) {
    return renameat2(from, old, to, new, 0);
}
int rename(const char *old, const char *new) {
    return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

/* A name more for a file: how one is given that may not replace another. */
int linkat(int from, const char *old, int to, const char *new, int flags) {
    char source[PATH_MAX], target[PATH_MAX];
    const char *one = below(from, old, source), *other = below(to, new, target);
    if ((one || other) && step("?link", one, 1)) return -1;
    int done = (int)syscall(SYS_linkat, from, old, to, new, flags);
    if ((one || other) && !done) note("link", source, target, 0, NULL, 0);
    return done;
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *path, int flags) {
    char whole[PATH_MAX];
    const char *one = below(folder, path, whole);
    if (one && step(flags & AT_REMOVEDIR ? "?rmdir" : "?unlink", one, 0)) return -1;
    int done = (int)syscall(SYS_unlinkat, folder, path, flags);
    if (one && !done) note(flags & AT_REMOVEDIR ? "rmdir" : "unlink", whole, NULL, 0, NULL, 0);
    return done;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    struct stat there; /* of a folder that exists nothing is made */
    const char *one = below(folder, path, whole);
    if (one && stat(whole, &there) != 0 && step("?mkdir", one, 1)) return -1;
    int done = (int)syscall(SYS_mkdirat, folder, path, mode);
    if (one && !done) note("mkdir", whole, NULL, 0, NULL, 0);
    return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int fchmodat(int folder, const char *path, mode_t mode, int flags) {
    REAL(int, "fchmodat", int, const char *, mode_t, int);
    char whole[PATH_MAX];
    if (below(folder, path, whole) && step("?chmod", whole, 0)) return -1;
    return real(folder, path, mode, flags);
}
int chmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, 0); }
