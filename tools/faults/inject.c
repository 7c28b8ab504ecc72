// Makes one file operation of a program fail, or kills the program there. Loaded with LD_PRELOAD.
//
// An operation counts if it changes a file or folder below FAULT_ROOT: creating, writing, truncating, renaming, removing
// and syncing. The operations are numbered from 1 in the order of the calls.
//
// FAULT_ROOT  the folder whose operations count (absolute, without links)
// FAULT_AT    the number of the operation to disturb; 0 or unset for none
// FAULT_KIND  no-space, io-error, kill-before, or kill-after (a write is then done only in part)
// FAULT_LOG   a file that gets one line for each operation
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int n_operations;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int is_below_root(const char* path) {
    const char* root = getenv("FAULT_ROOT");
    if (root == NULL || path == NULL) return 0;
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

// Writes the absolute path of `path`, relative to the folder `dir`, to `out`.
static int absolute(int dir, const char* path, char* out) {
    if (path[0] == '/') return snprintf(out, PATH_MAX, "%s", path);
    char folder[PATH_MAX];
    if (dir == AT_FDCWD) {
        if (getcwd(folder, sizeof folder) == NULL) return -1;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t n = readlink(link, folder, sizeof folder - 1);
        if (n < 0) return -1;
        folder[n] = '\0';
    }
    return snprintf(out, PATH_MAX, "%s%s%s", folder, path[0] ? "/" : "", path);
}

static int path_of(int fd, char* out) { return absolute(fd, "", out); }

static void record(int number, const char* name, const char* path) {
    const char* log = getenv("FAULT_LOG");
    if (log == NULL) return;
    char line[PATH_MAX + 64];
    int n = snprintf(line, sizeof line, "%d %s %s\n", number, name, path);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (fd >= 0) {
        syscall(SYS_write, fd, line, n);
        syscall(SYS_close, fd);
    }
}

enum fault { NONE, FAIL, KILL_AFTER };

// Counts an operation on `path`. Returns what is to happen to it; for FAIL, errno is set.
static enum fault next(const char* name, const char* path) {
    if (!is_below_root(path)) return NONE;
    int number = atomic_fetch_add(&n_operations, 1) + 1;
    record(number, name, path);
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND");
    if (at == NULL || kind == NULL || atoi(at) != number) return NONE;
    if (strcmp(kind, "kill-before") == 0) die();
    if (strcmp(kind, "kill-after") == 0) return KILL_AFTER;
    errno = strcmp(kind, "no-space") == 0 ? ENOSPC : EIO;
    return FAIL;
}

static enum fault next_at(const char* name, int dir, const char* path) {
    char full[PATH_MAX];
    return absolute(dir, path, full) < 0 ? NONE : next(name, full);
}

static enum fault next_fd(const char* name, int fd) {
    char full[PATH_MAX];
    return path_of(fd, full) < 0 ? NONE : next(name, full);
}

// Runs `call` unless the operation is to fail.
#define DISTURB(wanted, call)               \
    do {                                    \
        enum fault found = (wanted);        \
        if (found == FAIL) return -1;       \
        __typeof__(call) result = (call);   \
        if (found == KILL_AFTER) die();     \
        return result;                      \
    } while (0)

static int changes(int flags) { return (flags & (O_CREAT | O_TRUNC)) || (flags & O_ACCMODE) != O_RDONLY; }

#define OPEN(name)                                                                                        \
    int name(const char* path, int flags, ...) {                                                          \
        va_list list;                                                                                     \
        va_start(list, flags);                                                                            \
        mode_t mode = va_arg(list, int);                                                                  \
        va_end(list);                                                                                     \
        DISTURB(changes(flags) ? next_at("open", AT_FDCWD, path) : NONE, REAL(name)(path, flags, mode));  \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                      \
    int name(int dir, const char* path, int flags, ...) {                                                 \
        va_list list;                                                                                     \
        va_start(list, flags);                                                                            \
        mode_t mode = va_arg(list, int);                                                                  \
        va_end(list);                                                                                     \
        DISTURB(changes(flags) ? next_at("open", dir, path) : NONE, REAL(name)(dir, path, flags, mode));  \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void* bytes, size_t n) {
    enum fault fault = next_fd("write", fd);
    if (fault == FAIL) return -1;
    if (fault == KILL_AFTER) {
        REAL(write)(fd, bytes, n / 2);
        die();
    }
    return REAL(write)(fd, bytes, n);
}

ssize_t writev(int fd, const struct iovec* parts, int n) { DISTURB(next_fd("writev", fd), REAL(writev)(fd, parts, n)); }
ssize_t pwrite64(int fd, const void* bytes, size_t n, off64_t at) {
    DISTURB(next_fd("pwrite", fd), REAL(pwrite64)(fd, bytes, n, at));
}
ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t n, unsigned flags) {
    DISTURB(next_fd("copy", out), REAL(copy_file_range)(in, from, out, to, n, flags));
}
int ftruncate(int fd, off_t n) { DISTURB(next_fd("truncate", fd), REAL(ftruncate)(fd, n)); }
int ftruncate64(int fd, off64_t n) { DISTURB(next_fd("truncate", fd), REAL(ftruncate64)(fd, n)); }
int fsync(int fd) { DISTURB(next_fd("sync", fd), REAL(fsync)(fd)); }
int fdatasync(int fd) { DISTURB(next_fd("sync", fd), REAL(fdatasync)(fd)); }
int rename(const char* from, const char* to) { DISTURB(next_at("rename", AT_FDCWD, to), REAL(rename)(from, to)); }
int link(const char* from, const char* to) { DISTURB(next_at("link", AT_FDCWD, to), REAL(link)(from, to)); }
int symlink(const char* from, const char* to) { DISTURB(next_at("symlink", AT_FDCWD, to), REAL(symlink)(from, to)); }
int mkdir(const char* path, mode_t mode) { DISTURB(next_at("mkdir", AT_FDCWD, path), REAL(mkdir)(path, mode)); }
int rmdir(const char* path) { DISTURB(next_at("rmdir", AT_FDCWD, path), REAL(rmdir)(path)); }
int unlink(const char* path) { DISTURB(next_at("unlink", AT_FDCWD, path), REAL(unlink)(path)); }
int unlinkat(int dir, const char* path, int flags) {
    DISTURB(next_at("unlink", dir, path), REAL(unlinkat)(dir, path, flags));
}
int fchmod(int fd, mode_t mode) { DISTURB(next_fd("chmod", fd), REAL(fchmod)(fd, mode)); }
