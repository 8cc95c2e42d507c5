/* What each kind of change needs noted before it may happen.
 *
 * Guarantees that NOTED holds the lock until `finish`, and that PASS and REFUSED do not. May note more
 * than the change will touch, never less. Does not make the change: that is calls.c.
 */
#include "power_loss.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static enum guard noted(bool done)
{
    if (done)
        return NOTED;
    unlock_notes();
    return REFUSED;
}

static enum guard pass(void)
{
    unlock_notes();
    return PASS;
}

long finish(enum guard guard, long result)
{
    if (guard == NOTED)
        unlock_notes();
    return result;
}

/* True with the lock held, if `fd` is a regular file of ours. */
static bool lock_file(int fd, struct stat *file)
{
    if (!is_watched(fd, file) || !S_ISREG(file->st_mode))
        return false;
    lock_notes();
    fstat(fd, file); /* its size may have changed while we waited */
    return true;
}

/* A descriptor opened with O_APPEND writes at the end, wherever it stands: the size alone undoes that. */
enum guard before_write(int fd, off_t offset, size_t bytes)
{
    struct stat file;
    if (!lock_file(fd, &file))
        return PASS;
    off_t from = offset == HERE ? lseek(fd, 0, SEEK_CUR) : offset;
    if (from < 0)
        from = 0; /* the call will fail */
    off_t until = bytes > (size_t)(INT64_MAX - from) ? INT64_MAX : from + (off_t)bytes;
    return noted(note_bytes(fd, &file, from, until));
}

enum guard before_resize(int fd, off_t size)
{
    struct stat file;
    if (!lock_file(fd, &file))
        return PASS;
    return noted(note_bytes(fd, &file, size < 0 ? 0 : size, INT64_MAX));
}

/* Plain allocation changes the size at most; the other modes punch, zero, insert or take out bytes. */
enum guard before_fallocate(int fd, int mode, off_t offset)
{
    struct stat file;
    if (mode == FALLOC_FL_KEEP_SIZE || !lock_file(fd, &file))
        return PASS;
    return noted(note_bytes(fd, &file, mode == 0 || offset < 0 ? file.st_size : offset, INT64_MAX));
}

/* A name that exists is left alone: the call fails, or opens what is there. */
enum guard before_creation(int folder, const char *path)
{
    struct place place;
    struct stat before;
    if (!is_on())
        return PASS;
    lock_notes();
    if (!find_place(folder, path, &place))
        return pass();
    bool exists = fstatat(place.folder, place.name, &before, AT_SYMLINK_NOFOLLOW) == 0;
    bool done = !exists && note_name(&place, 0);
    close(place.folder);
    return exists ? pass() : noted(done);
}

enum guard before_nameless_creation(int folder, const char *path)
{
    struct stat parent;
    int fd = (int)syscall(SYS_openat, folder, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return PASS;
    bool ours = is_watched(fd, &parent);
    close(fd);
    if (!ours)
        return PASS;
    lock_notes();
    return noted(note_nameless());
}

enum guard before_truncating_open(int folder, const char *path)
{
    int fd = (int)syscall(SYS_openat, folder, path, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return PASS;
    enum guard guard = before_resize(fd, 0);
    close(fd);
    return guard;
}

enum guard before_removal(int folder, const char *path)
{
    struct place place;
    if (!is_on())
        return PASS;
    lock_notes();
    if (!find_place(folder, path, &place))
        return pass();
    bool done = note_name(&place, 0);
    close(place.folder);
    return noted(done);
}

static bool note_stranger_at(int folder, const char *path)
{
    struct stat file;
    return fstatat(folder, path, &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(file.st_mode)
        || note_stranger(&file);
}

enum guard before_rename(int old_folder, const char *old, int new_folder, const char *new)
{
    struct place from, to;
    if (!is_on())
        return PASS;
    lock_notes();
    bool leaves = find_place(old_folder, old, &from);
    bool enters = find_place(new_folder, new, &to);
    uint64_t first = leaves ? note_name(&from, 0) : 0;
    bool done = (!leaves || first) && (!enters || note_name(&to, first))
        && (leaves || !enters || note_stranger_at(old_folder, old));
    if (leaves)
        close(from.folder);
    if (enters)
        close(to.folder);
    return leaves || enters ? noted(done) : pass();
}
