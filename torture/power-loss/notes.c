/* What stood there before: looked up, and written to the shadow (power_loss.h says how and why).
 *
 * Guarantees that a record is whole or absent, also on a full disk, and that a record which follows
 * another in time has the greater sequence. Does not decide what a change needs: that is guards.c.
 */
#include "power_loss.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAPPED_MAX = 256, /* files that one process maps for writing; a SQLite database needs one */
    CHUNK_BYTES = 65536,
};
static const off_t LOG_BYTES_MAX = 1LL << 34; /* some 200 million records: a run that should have ended */

struct record {
    uint32_t bytes; /* of all of it, with the name that follows */
    uint32_t kind;
    uint64_t sequence;
    uint64_t inode;
    union {
        struct {
            uint64_t previous, mode, born, joined;
        } name;
        struct {
            uint64_t size, offset, length, place;
        } old;
        uint64_t since;
    };
};
_Static_assert(sizeof(struct record) == 56, "as src/power_loss/log.rs has it");

static struct {
    bool on;
    bool skip_sync;
    char root[PATH_MAX];
    size_t root_bytes;
    dev_t device;
    int shadow;
    _Atomic uint64_t *clock;
    int log; /* -1 until the first record of this process */
    char log_name[48];
    off_t log_bytes;
    off_t last_record;
    ino_t mapped[MAPPED_MAX];
    size_t mapped_count;
    char chunk[CHUNK_BYTES];
} disk = {.log = -1};

static pthread_mutex_t notes = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *attempt)
{
    dprintf(STDERR_FILENO, "power-loss disk: could not %s: %s\n", attempt, strerror(errno));
    _exit(125);
}

bool is_on(void)
{
    return disk.on;
}

static bool is_inside_root(int fd)
{
    char link[32], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes < (ssize_t)disk.root_bytes || memcmp(path, disk.root, disk.root_bytes) != 0)
        return false;
    path[bytes] = 0;
    return path[disk.root_bytes] == '/' || path[disk.root_bytes] == 0;
}

/* Asked anew each time: a table of descriptors would have to follow every close, dup and fork. */
bool is_watched(int fd, struct stat *file)
{
    return disk.on && fstat(fd, file) == 0 && (S_ISREG(file->st_mode) || S_ISDIR(file->st_mode))
        && is_inside_root(fd);
}

bool is_on_our_device(int fd)
{
    struct stat file;
    return disk.on && fstat(fd, &file) == 0 && file.st_dev == disk.device;
}

/* Divides "a/b/c/" into the folder "a/b/" and the name "c", and opens the folder. */
static bool open_place(int folder, const char *path, struct place *place)
{
    char parent[PATH_MAX];
    size_t end = path ? strlen(path) : 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t bytes = end - start;
    if (bytes == 0 || bytes > NAME_MAX || start >= sizeof parent)
        return false;

    memcpy(place->name, path + start, bytes);
    place->name[bytes] = 0;
    if (strcmp(place->name, ".") == 0 || strcmp(place->name, "..") == 0)
        return false;
    memcpy(parent, path, start);
    parent[start] = 0;
    const char *where = start > 0 ? parent : ".";
    place->folder = (int)syscall(SYS_openat, folder, where, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    return place->folder >= 0;
}

bool find_place(int folder, const char *path, struct place *place)
{
    struct stat parent;
    if (!open_place(folder, path, place))
        return false;
    if (is_watched(place->folder, &parent)) {
        place->inode = parent.st_ino;
        return true;
    }
    close(place->folder);
    return false;
}

void lock_notes(void)
{
    pthread_mutex_lock(&notes);
}

void unlock_notes(void)
{
    int saved = errno;
    pthread_mutex_unlock(&notes);
    errno = saved;
}

static uint64_t tick(void)
{
    return atomic_fetch_add(disk.clock, 1) + 1;
}

static bool open_log(void)
{
    char path[64];
    snprintf(disk.log_name, sizeof disk.log_name, "%d-%ju", getpid(), (uintmax_t)tick());
    snprintf(path, sizeof path, "log/%s", disk.log_name);
    disk.log = (int)syscall(SYS_openat, disk.shadow, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    disk.log_bytes = 0;
    return disk.log >= 0;
}

static bool append(struct record *record, const char *name)
{
    char bytes[sizeof *record + NAME_MAX];
    size_t name_bytes = strlen(name);
    if (disk.log < 0 && !open_log())
        return false;
    if (disk.log_bytes > LOG_BYTES_MAX) {
        errno = EFBIG;
        die("go on without a crash() or settle()");
    }

    record->bytes = (uint32_t)(sizeof *record + name_bytes);
    record->sequence = tick();
    memcpy(bytes, record, sizeof *record);
    memcpy(bytes + sizeof *record, name, name_bytes);
    ssize_t written = syscall(SYS_pwrite64, disk.log, bytes, record->bytes, disk.log_bytes);
    if (written != (ssize_t)record->bytes) {
        int cause = written < 0 ? errno : ENOSPC;
        /* A stump must not stay in front of later records. */
        if (syscall(SYS_ftruncate, disk.log, disk.log_bytes) != 0)
            die("take back half a record");
        errno = cause;
        return false;
    }
    disk.last_record = disk.log_bytes;
    disk.log_bytes += written;
    return true;
}

/* A hard link keeps what the name stands for, until its folder is fsynced. */
static bool hold(const struct place *place, uint64_t sequence)
{
    char folder[64], path[96];
    snprintf(folder, sizeof folder, "held/%ju", (uintmax_t)place->inode);
    snprintf(path, sizeof path, "%s/%ju", folder, (uintmax_t)sequence);
    if (syscall(SYS_linkat, place->folder, place->name, disk.shadow, path, 0) == 0)
        return true;
    if (errno != ENOENT || (syscall(SYS_mkdirat, disk.shadow, folder, 0700) != 0 && errno != EEXIST))
        return false;
    return syscall(SYS_linkat, place->folder, place->name, disk.shadow, path, 0) == 0;
}

uint64_t note_name(const struct place *place, uint64_t joined)
{
    struct record record = {.kind = KIND_NAME, .inode = place->inode, .name.joined = joined};
    struct stat before;
    bool exists = fstatat(place->folder, place->name, &before, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists) {
        record.name.previous = before.st_ino;
        record.name.mode = before.st_mode;
    }
    if (!append(&record, place->name))
        return 0;
    bool needs_hold = exists && !S_ISDIR(before.st_mode);
    return needs_hold && !hold(place, record.sequence) ? 0 : record.sequence;
}

bool note_nameless(void)
{
    struct record record = {.kind = KIND_NAME};
    return append(&record, "");
}

/* Completes the last record: what its change brought is new, whatever had that inode number before.
 * Written into the record, because after the change there is no refusing it any more. */
void note_birth(const struct stat *born)
{
    uint64_t inode = born->st_ino;
    off_t offset = disk.last_record + (off_t)offsetof(struct record, name.born);
    if (syscall(SYS_pwrite64, disk.log, &inode, sizeof inode, offset) != sizeof inode)
        die("note a new inode");
    if (S_ISDIR(born->st_mode)) {
        /* What is held for a removed folder of that number must not go when the new one is fsynced. */
        char from[64], to[96];
        snprintf(from, sizeof from, "held/%ju", (uintmax_t)inode);
        snprintf(to, sizeof to, "%s-%ju", from, (uintmax_t)tick());
        syscall(SYS_renameat2, disk.shadow, from, disk.shadow, to, 0);
    }
}

/* A file about to come in from outside was never fsynced, as far as we know. Follows its name's note. */
bool note_stranger(const struct stat *file)
{
    struct record record = {.kind = KIND_BYTES, .inode = file->st_ino};
    note_birth(file);
    return append(&record, "");
}

static int open_old(ino_t inode, int flags)
{
    char path[96];
    snprintf(path, sizeof path, "old/%ju.%s", (uintmax_t)inode, disk.log_name);
    return (int)syscall(SYS_openat, disk.shadow, path, flags | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
}

static bool copy_bytes(int from, off_t offset, off_t length, int to)
{
    while (length > 0) {
        size_t want = length < CHUNK_BYTES ? (size_t)length : CHUNK_BYTES;
        ssize_t got = pread(from, disk.chunk, want, offset);
        if (got <= 0)
            return false;
        ssize_t put = syscall(SYS_write, to, disk.chunk, got);
        if (put != got) {
            errno = put < 0 ? errno : ENOSPC;
            return false;
        }
        offset += got;
        length -= got;
    }
    return true;
}

/* Copies bytes that are about to be written over; `place` says where in the `old` file they went. */
static bool keep_old(int fd, ino_t inode, off_t offset, off_t length, uint64_t *place)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (disk.log < 0 && !open_log())
        return false;
    /* Opened anew: the descriptor of the program may be write-only. */
    int from = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    int to = from < 0 ? -1 : open_old(inode, O_CREAT);
    bool kept = false;
    if (to >= 0) {
        *place = (uint64_t)lseek(to, 0, SEEK_END);
        kept = copy_bytes(from, offset, length, to);
        close(to);
    }
    if (from >= 0)
        close(from);
    return kept;
}

bool note_bytes(int fd, const struct stat *file, off_t from, off_t until)
{
    struct record record = {.kind = KIND_BYTES, .inode = file->st_ino};
    record.old.size = (uint64_t)file->st_size;
    record.old.offset = (uint64_t)from;
    if (until > file->st_size)
        until = file->st_size;
    if (from < until) {
        record.old.length = (uint64_t)(until - from);
        if (!keep_old(fd, file->st_ino, from, until - from, &record.old.place))
            return false;
    }
    return append(&record, "");
}

static bool is_mapped(ino_t inode)
{
    for (size_t i = 0; i < disk.mapped_count; i++)
        if (disk.mapped[i] == inode)
            return true;
    return false;
}

/* What the program stores through a mapping cannot be seen: all of the file is noted when it is mapped,
 * and again at each fsync. */
bool note_mapping(int fd)
{
    struct stat file;
    if (!is_watched(fd, &file) || !S_ISREG(file.st_mode))
        return true;
    lock_notes();
    if (!is_mapped(file.st_ino)) {
        if (disk.mapped_count == MAPPED_MAX)
            die("follow more mapped files");
        disk.mapped[disk.mapped_count++] = file.st_ino;
    }
    bool done = fstat(fd, &file) == 0 && note_bytes(fd, &file, 0, INT64_MAX);
    unlock_notes();
    return done;
}

static void release_held(ino_t folder, uint64_t since)
{
    char path[64];
    snprintf(path, sizeof path, "held/%ju", (uintmax_t)folder);
    int fd = (int)syscall(SYS_openat, disk.shadow, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *held = fd < 0 ? NULL : fdopendir(fd);
    if (!held)
        return;
    for (struct dirent *entry; (entry = readdir(held));)
        if (entry->d_name[0] != '.' && strtoull(entry->d_name, NULL, 10) < since)
            syscall(SYS_unlinkat, fd, entry->d_name, 0);
    closedir(held);
}

static off_t old_bytes(ino_t inode)
{
    int old = open_old(inode, 0);
    if (old < 0)
        return 0;
    off_t bytes = lseek(old, 0, SEEK_END);
    close(old);
    return bytes;
}

/* Drops what the fsync made worthless, unless something was added while it ran. One byte stays: a file
 * that was cut to nothing is written to the disk by ext4 when it is closed. */
static void release_old(ino_t inode, off_t bytes_then)
{
    if (bytes_then <= 1)
        return;
    int old = open_old(inode, 0);
    if (old < 0)
        return;
    if (lseek(old, 0, SEEK_END) == bytes_then)
        syscall(SYS_ftruncate, old, 1);
    close(old);
}

int note_sync(int fd, long call, const struct stat *file)
{
    struct stat now;
    struct record record = {.kind = KIND_SYNC, .inode = file->st_ino};
    lock_notes();
    record.since = tick();
    off_t old = old_bytes(file->st_ino);
    bool ready = !is_mapped(file->st_ino) || (fstat(fd, &now) == 0 && note_bytes(fd, &now, 0, INT64_MAX));
    unlock_notes();
    if (!ready || (!disk.skip_sync && syscall(call, fd) != 0))
        return -1;

    lock_notes();
    bool done = append(&record, "");
    if (done && S_ISDIR(file->st_mode))
        release_held(file->st_ino, record.since);
    else if (done)
        release_old(file->st_ino, old);
    unlock_notes();
    return done ? 0 : -1;
}

uint64_t begin_sync_all(void)
{
    lock_notes();
    uint64_t since = tick();
    unlock_notes();
    return since;
}

bool note_sync_all(uint64_t since)
{
    struct record record = {.kind = KIND_SYNC_ALL, .since = since};
    lock_notes();
    bool done = append(&record, "");
    unlock_notes();
    return done;
}

/* A log belongs to one process. */
static void after_fork_in_child(void)
{
    if (disk.log >= 0)
        close(disk.log);
    disk.log = -1;
    disk.log_name[0] = 0;
    unlock_notes();
}

__attribute__((constructor)) static void start(void)
{
    const char *root = getenv("POWER_LOSS_ROOT"), *shadow = getenv("POWER_LOSS_SHADOW");
    struct stat folder;
    if (!root || !shadow)
        return;
    if (!realpath(root, disk.root) || stat(root, &folder) != 0)
        die("find POWER_LOSS_ROOT");
    disk.root_bytes = strlen(disk.root);
    disk.device = folder.st_dev;
    disk.skip_sync = getenv("POWER_LOSS_SKIP_SYNC") != NULL;
    disk.shadow = (int)syscall(SYS_openat, AT_FDCWD, shadow, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    /* Stays open and locked: so long as one of us lives, the outer half cuts no power. */
    int clock = (int)syscall(SYS_openat, disk.shadow, "clock", O_RDWR | O_CLOEXEC, 0);
    if (clock < 0 || flock(clock, LOCK_SH) != 0)
        die("take the clock in POWER_LOSS_SHADOW");
    disk.clock = (void *)syscall(SYS_mmap, NULL, sizeof *disk.clock, PROT_READ | PROT_WRITE, MAP_SHARED, clock, 0);
    if ((void *)disk.clock == MAP_FAILED || pthread_atfork(lock_notes, unlock_notes, after_fork_in_child) != 0)
        die("start");
    disk.on = true;
}
