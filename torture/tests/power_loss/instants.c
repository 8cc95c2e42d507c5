/* Does something at a chosen instant inside of the preloaded library, then waits to be killed.
 *
 * The library asks the kernel through `syscall`, which is ours here: so we know when an fsync has begun and
 * not yet ended, and can die before each of the library's own steps. Works in the working folder, on a file
 * `a` that was fsynced with five bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define check(truth) ((truth) ? (void)0 : (perror(#truth), exit(1)))

static const char *scene = "";
static int steps_to_live = -1;
static int file;

static void meanwhile(void)
{
    const char *now = scene;
    scene = "";
    if (strcmp(now, "write") == 0)
        check(pwrite(file, "zz", 2, 1) == 2);
    else if (strcmp(now, "rename") == 0)
        check(rename("a", "b") == 0 && unlink("b") == 0);
    else if (strcmp(now, "die") == 0)
        raise(SIGKILL);
}

static long kernel(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (steps_to_live >= 0 && steps_to_live-- == 0)
        raise(SIGKILL);
    if (number == SYS_fsync && strcmp(scene, "fail") == 0) {
        errno = EIO;
        return -1;
    }
    if (number == SYS_fsync)
        meanwhile();
    long result = kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

static void store_through_a_mapping(void)
{
    char *bytes = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(bytes != MAP_FAILED);
    bytes[1] = 'y';
    check(fsync(file) == 0);
    bytes[2] = 'z';
}

static void sync_while(const char *what, int fd)
{
    check(pwrite(file, "yy", 2, 0) == 2);
    scene = what;
    check(fsync(fd) == (strcmp(what, "fail") == 0 ? -1 : 0));
    scene = "";
}

/* Durable are, one after another: a = xxxxx, a = yyxxx, a = zzzzz, and no file. */
static void save_and_remove(int folder)
{
    check(pwrite(file, "yy", 2, 0) == 2 && fsync(file) == 0);
    int aside = open("aside", O_CREAT | O_EXCL | O_WRONLY, 0600);
    check(aside >= 0 && write(aside, "zzzzz", 5) == 5 && fsync(aside) == 0);
    check(rename("aside", "a") == 0 && fsync(folder) == 0);
    check(unlink("a") == 0 && fsync(folder) == 0);
}

int main(int count, char **arguments)
{
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    check(count == 2 && folder >= 0 && (file = open("a", O_RDWR)) >= 0);
    const char *what = arguments[1];
    if (strcmp(what, "map") == 0) {
        store_through_a_mapping();
    } else if (what[0] >= '0' && what[0] <= '9') {
        steps_to_live = atoi(what);
        save_and_remove(folder);
        steps_to_live = -1;
    } else {
        sync_while(what, strcmp(what, "rename") == 0 ? folder : file);
    }
    check(write(STDOUT_FILENO, "done\n", 5) == 5);
    char end;
    return (int)read(STDIN_FILENO, &end, 1);
}
