/* The functions of libc through which a program changes files, each with its guard.
 *
 * Guarantees that the kernel gets the same arguments and the program the same answer as without us. Calls
 * the kernel directly, so that no wrapper meets another. Functions that change nothing are not here.
 */
#include "power_loss.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* On 64-bit Linux both names of each pair mean the same. */
#define WITH_64(type, name, parameters, body) \
    EXPORT type name parameters body          \
    EXPORT type name##64 parameters body

/* `call` may look at `guard`. */
#define GUARDED(before, call)                          \
    ({                                                 \
        enum guard guard = (before);                   \
        guard == REFUSED ? -1 : finish(guard, (call)); \
    })

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    enum guard guard = PASS;
    if (is_on() && nameless)
        guard = before_nameless_creation(folder, path);
    else if (is_on() && (flags & O_CREAT))
        guard = before_creation(folder, path);
    bool creates = guard == NOTED;
    if (is_on() && guard == PASS && (flags & O_TRUNC) && !(flags & O_EXCL))
        guard = before_truncating_open(folder, path);
    if (guard == REFUSED)
        return -1;

    int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    struct stat born;
    if (creates && fd >= 0 && fstat(fd, &born) == 0)
        note_birth(&born);
    return (int)finish(guard, fd);
}

static mode_t mode_of(int flags, va_list rest)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

WITH_64(int, open, (const char *path, int flags, ...), {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_at(AT_FDCWD, path, flags, mode);
})

WITH_64(int, openat, (int folder, const char *path, int flags, ...), {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_at(folder, path, flags, mode);
})

WITH_64(int, creat, (const char *path, mode_t mode),
    { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); })

/* What the headers make of `open` under _FORTIFY_SOURCE. */
#define FORTIFIED(name, parameters, folder)                     \
    EXPORT int name parameters;                                 \
    EXPORT int name parameters { return open_at(folder, path, flags, 0); }
FORTIFIED(__open_2, (const char *path, int flags), AT_FDCWD)
FORTIFIED(__open64_2, (const char *path, int flags), AT_FDCWD)
FORTIFIED(__openat_2, (int folder, const char *path, int flags), folder)
FORTIFIED(__openat64_2, (int folder, const char *path, int flags), folder)

static size_t total(const struct iovec *parts, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    return GUARDED(before_write(fd, HERE, bytes), syscall(SYS_write, fd, data, bytes));
}

WITH_64(ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t offset),
    { return GUARDED(before_write(fd, offset, bytes), syscall(SYS_pwrite64, fd, data, bytes, offset)); })

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return GUARDED(before_write(fd, HERE, total(parts, count)), syscall(SYS_writev, fd, parts, count));
}

WITH_64(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t offset), {
    return GUARDED(before_write(fd, offset, total(parts, count)),
        syscall(SYS_pwritev, fd, parts, count, offset, 0));
})

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return GUARDED(before_write(fd, offset, total(parts, count)),
        syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags));
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return pwritev2(fd, parts, count, offset, flags);
}

EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes, unsigned flags)
{
    return GUARDED(before_write(out, out_at ? *out_at : HERE, bytes),
        syscall(SYS_copy_file_range, in, in_at, out, out_at, bytes, flags));
}

EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes, unsigned flags)
{
    /* Waits for the pipe before the lock is taken, not under it. */
    struct pollfd source = {.fd = in, .events = POLLIN};
    if (!(flags & SPLICE_F_NONBLOCK))
        poll(&source, 1, -1);
    return GUARDED(before_write(out, out_at ? *out_at : HERE, bytes),
        syscall(SYS_splice, in, in_at, out, out_at, bytes, flags));
}

WITH_64(ssize_t, sendfile, (int out, int in, off_t *in_at, size_t bytes),
    { return GUARDED(before_write(out, HERE, bytes), syscall(SYS_sendfile, out, in, in_at, bytes)); })

WITH_64(int, ftruncate, (int fd, off_t size),
    { return (int)GUARDED(before_resize(fd, size), syscall(SYS_ftruncate, fd, size)); })

WITH_64(int, truncate, (const char *path, off_t size), {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int result = (int)GUARDED(before_resize(fd, size), syscall(SYS_ftruncate, fd, size));
    int saved = errno;
    close(fd);
    errno = saved;
    return result;
})

WITH_64(int, fallocate, (int fd, int mode, off_t offset, off_t bytes), {
    return (int)GUARDED(before_fallocate(fd, mode, offset), syscall(SYS_fallocate, fd, mode, offset, bytes));
})

WITH_64(int, posix_fallocate, (int fd, off_t offset, off_t bytes),
    { return GUARDED(before_fallocate(fd, 0, offset), syscall(SYS_fallocate, fd, 0, offset, bytes)) ? errno : 0; })

EXPORT int renameat2(int old_folder, const char *old, int new_folder, const char *new, unsigned flags)
{
    return (int)GUARDED(before_rename(old_folder, old, new_folder, new),
        syscall(SYS_renameat2, old_folder, old, new_folder, new, flags));
}

EXPORT int renameat(int old_folder, const char *old, int new_folder, const char *new)
{
    return renameat2(old_folder, old, new_folder, new, 0);
}

EXPORT int rename(const char *old, const char *new)
{
    return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

EXPORT int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags)
{
    return (int)GUARDED(before_creation(new_folder, new),
        syscall(SYS_linkat, old_folder, old, new_folder, new, flags));
}

EXPORT int link(const char *old, const char *new)
{
    return linkat(AT_FDCWD, old, AT_FDCWD, new, 0);
}

/* Under the lock, after a name was created. */
static long born_at(enum guard guard, int folder, const char *path, long result)
{
    struct stat born;
    if (guard == NOTED && result == 0 && fstatat(folder, path, &born, AT_SYMLINK_NOFOLLOW) == 0)
        note_birth(&born);
    return result;
}

EXPORT int symlinkat(const char *target, int folder, const char *path)
{
    return (int)GUARDED(before_creation(folder, path),
        born_at(guard, folder, path, syscall(SYS_symlinkat, target, folder, path)));
}

EXPORT int symlink(const char *target, const char *path)
{
    return symlinkat(target, AT_FDCWD, path);
}

EXPORT int mkdirat(int folder, const char *path, mode_t mode)
{
    return (int)GUARDED(before_creation(folder, path),
        born_at(guard, folder, path, syscall(SYS_mkdirat, folder, path, mode)));
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

EXPORT int unlinkat(int folder, const char *path, int flags)
{
    return (int)GUARDED(before_removal(folder, path), syscall(SYS_unlinkat, folder, path, flags));
}

EXPORT int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

EXPORT int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

EXPORT int remove(const char *path)
{
    int result = unlinkat(AT_FDCWD, path, 0);
    return result != 0 && errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

static int sync_fd(int fd, long call)
{
    struct stat file;
    return is_watched(fd, &file) ? note_sync(fd, call, &file) : (int)syscall(call, fd);
}

EXPORT int fsync(int fd)
{
    return sync_fd(fd, SYS_fsync);
}

EXPORT int fdatasync(int fd)
{
    return sync_fd(fd, SYS_fdatasync);
}

EXPORT void sync(void)
{
    uint64_t since = is_on() ? begin_sync_all() : 0;
    syscall(SYS_sync);
    if (is_on())
        note_sync_all(since); /* cannot say no; if this failed, nothing counts as synced */
}

EXPORT int syncfs(int fd)
{
    bool ours = is_on_our_device(fd);
    uint64_t since = ours ? begin_sync_all() : 0;
    if (syscall(SYS_syncfs, fd) != 0)
        return -1;
    return !ours || note_sync_all(since) ? 0 : -1;
}

WITH_64(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset), {
    bool shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
    if (shared && fd >= 0 && (protection & PROT_WRITE) && !note_mapping(fd))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
})
