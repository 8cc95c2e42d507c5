/* The power-loss disk, inner half: a library preloaded (LD_PRELOAD) into a process under test.
 *
 * It watches one folder (POWER_LOSS_ROOT) and lets every call through to the kernel, but before each
 * change it notes in POWER_LOSS_SHADOW what stood there before: the bytes and size of a file, the inode
 * behind a name. A note is dropped only when the file, or the folder that holds the name, was fsynced.
 * After the process was killed, undoing the notes that are left (src/power_loss/image.rs) gives what a
 * power cut would have left under the strictest reading of POSIX.
 *
 * Guarantees. A note is complete before its change begins, and an fsync is one record written after the
 * kernel said yes: a kill at any instant leaves a change noted or not begun, an fsync done or not done.
 * An fsync covers what was finished before it began, not what other threads did meanwhile. If a note
 * cannot be written (disk full), the change is refused with that error. Nothing is copied for new files
 * and for appending; bytes written over are copied once and dropped at the next fsync.
 *
 * The shadow holds
 *     clock                   one number, shared by all processes: the order of all records
 *     log/<process>           the records of one process; a torn last one was never acted upon
 *     old/<inode>.<process>   bytes that were written over since the last fsync of that file
 *     held/<folder>/<n>       hard links: what a name that was removed or moved stood for, until its
 *                             folder is fsynced. They also keep the inode number from being used again.
 *
 * Several processes may work on one root, one after another or together. They share the clock and no
 * lock, because one that is stopped (SIGSTOP) must not stop the others; so a change in one of them may be
 * noted in the wrong order if another one changes or fsyncs the same thing at the same instant.
 *
 * It does not see what bypasses the symbols of libc (raw system calls as by rustix, io_uring, static
 * programs) or stays inside libc (stdio, mkstemp); the outer half finds most of that afterwards and
 * complains, as it does about hard links to files outside of the root. It does not count O_SYNC, O_DSYNC,
 * RWF_SYNC, msync or sync_file_range as an fsync, and does not follow modes, owners, times and extended
 * attributes. A file mapped for writing must be fsynced by the process that mapped it. A change made in a
 * signal handler that interrupted another change waits for ever. The shadow takes its space from the disk
 * of the root: when that is full, even a removal is refused. 64-bit Linux only.
 *
 * notes.c looks and writes the notes, guards.c says what each kind of change needs noted, calls.c wraps
 * the functions of libc.
 */
#ifndef POWER_LOSS_H
#define POWER_LOSS_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

_Static_assert(sizeof(long) == 8, "file offsets travel in one register");

/* src/power_loss/log.rs reads these; both sides change together. */
enum kind {
    KIND_NAME = 1,     /* inode: folder; values: inode and mode behind the name before, inode born, joined */
    KIND_BYTES = 2,    /* inode: file; values: size before, offset, length and place in `old` of the bytes */
    KIND_SYNC = 3,     /* inode: file or folder; values: it covers what is older than this */
    KIND_SYNC_ALL = 4, /* values: it covers what is older than this */
};

/* Where a path ends: an open folder and a name in it. */
struct place {
    int folder;
    ino_t inode;
    char name[NAME_MAX + 1];
};

/* What a wrapper is to do after a change was looked at. */
enum guard {
    PASS,    /* not ours: go on */
    NOTED,   /* go on, then give back the lock */
    REFUSED, /* the note could not be written: fail with errno */
};

enum { HERE = -1 }; /* in place of an offset: where the descriptor stands */

/* notes.c: looking */
bool is_on(void);
bool is_watched(int fd, struct stat *file);
bool is_on_our_device(int fd);
bool find_place(int folder, const char *path, struct place *place);

/* notes.c: noting. Held from before a note until after its change, the lock makes the order of the
 * records the order of the changes. All need it held from `note_name` to `note_bytes`; the rest take it
 * themselves. False, or 0, leaves errno. A name `joined` to an earlier note changes together with it. */
void lock_notes(void);
void unlock_notes(void);
uint64_t note_name(const struct place *place, uint64_t joined);
bool note_nameless(void);
void note_birth(const struct stat *born);
bool note_stranger(const struct stat *file);
bool note_bytes(int fd, const struct stat *file, off_t from, off_t until);
bool note_mapping(int fd);
int note_sync(int fd, long call, const struct stat *file);
uint64_t begin_sync_all(void);
bool note_sync_all(uint64_t since);

/* guards.c. NOTED leaves the lock held until `finish`. */
enum guard before_write(int fd, off_t offset, size_t bytes);
enum guard before_resize(int fd, off_t size);
enum guard before_fallocate(int fd, int mode, off_t offset);
enum guard before_creation(int folder, const char *path);
enum guard before_nameless_creation(int folder, const char *path);
enum guard before_truncating_open(int folder, const char *path);
enum guard before_removal(int folder, const char *path);
enum guard before_rename(int old_folder, const char *old, int new_folder, const char *new);
long finish(enum guard guard, long result);

#endif
