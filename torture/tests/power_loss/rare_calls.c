/* Changes files in the working folder by calls that our own code does not make, but others might.
 *
 * `prepare` makes files a to z of 10,000 equal letters, `change` changes them, `change-and-sync` also
 * calls sync() at the end. Then it waits to be killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 10000 };
static const struct iovec parts[] = {{"one", 3}, {"three", 5}};

#define check(truth) ((truth) ? (void)0 : (perror(#truth), exit(1)))

static void prepare(void)
{
    char bytes[BYTES];
    for (char name[] = "a"; name[0] <= 'z'; name[0]++) {
        memset(bytes, name[0], BYTES);
        int fd = open(name, O_CREAT | O_WRONLY, 0644);
        check(write(fd, bytes, BYTES) == BYTES && close(fd) == 0);
    }
    check(mkdir("folder", 0755) == 0);
}

static int opened(const char *name)
{
    int fd = open(name, O_RDWR);
    check(fd >= 0);
    return fd;
}

static void write_in_other_ways(void)
{
    off64_t offset = 5000;
    int pipes[2];
    check(writev(opened("a"), parts, 2) == 8);
    check(pwritev(opened("b"), parts, 2, 100) == 8);
    check(pwritev2(opened("c"), parts, 2, 100, 0) == 8);
    check(pwrite64(opened("d"), "four", 4, 9998) == 4);
    check(copy_file_range(opened("a"), NULL, opened("e"), &offset, 7000, 0) == 7000);
    check(sendfile(opened("f"), opened("a"), NULL, 300) == 300);
    check(pipe(pipes) == 0 && write(pipes[1], "piped", 5) == 5);
    check(splice(pipes[0], NULL, opened("g"), NULL, 5, 0) == 5);
}

static void resize_in_other_ways(void)
{
    check(truncate("h", 10) == 0);
    check(ftruncate64(opened("i"), 20000) == 0);
    check(fallocate(opened("j"), 0, 5000, 20000) == 0);
    check(fallocate(opened("k"), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
    check(fallocate(opened("l"), FALLOC_FL_ZERO_RANGE, 4096, 8192) == 0 || errno == EOPNOTSUPP);
    check(posix_fallocate(opened("m"), 0, 15000) == 0);
    check(creat("n", 0644) >= 0);
    check(openat(AT_FDCWD, "o", O_WRONLY | O_TRUNC) >= 0);
}

static void write_through_a_mapping(void)
{
    char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, opened("p"), 0);
    check(bytes != MAP_FAILED);
    memset(bytes + 50, '-', 5000);
}

static void name_in_other_ways(void)
{
    char link[64];
    int folder = open("folder", O_DIRECTORY | O_RDONLY);
    check(renameat2(AT_FDCWD, "q", AT_FDCWD, "r", RENAME_EXCHANGE) == 0);
    check(renameat2(AT_FDCWD, "s", AT_FDCWD, "t", RENAME_NOREPLACE) == -1);
    check(renameat(AT_FDCWD, "s", folder, "s") == 0);
    check(linkat(AT_FDCWD, "t", folder, "t", 0) == 0);
    check(symlinkat("t", folder, "u") == 0);
    check(mkdirat(folder, "v", 0755) == 0);
    check(unlinkat(AT_FDCWD, "w", 0) == 0);
    check(remove("x") == 0);
    int nameless = open("folder", O_TMPFILE | O_RDWR, 0600);
    check(nameless >= 0 && write(nameless, "nameless", 8) == 8);
    snprintf(link, sizeof link, "/proc/self/fd/%d", nameless);
    check(linkat(AT_FDCWD, link, AT_FDCWD, "named", AT_SYMLINK_FOLLOW) == 0);
}

static void write_after_fork(void)
{
    int fd = opened("y");
    check(write(fd, "parent", 6) == 6);
    pid_t child = fork();
    if (child == 0) {
        check(write(fd, "child", 5) == 5 && rename("z", "zz") == 0);
        _exit(0);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0);
    check(write(fd, "parent", 6) == 6);
}

int main(int count, char **arguments)
{
    check(count == 2);
    if (strcmp(arguments[1], "prepare") == 0) {
        prepare();
    } else {
        write_in_other_ways();
        resize_in_other_ways();
        write_through_a_mapping();
        name_in_other_ways();
        write_after_fork();
    }
    if (strcmp(arguments[1], "change-and-sync") == 0)
        sync();
    check(write(STDOUT_FILENO, "done\n", 5) == 5);
    char end;
    return (int)read(STDIN_FILENO, &end, 1);
}
