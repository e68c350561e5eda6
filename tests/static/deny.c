/*
 * deny MODE PROGRAM [ARG...]: runs the program on a system that forbids to change code, in one of these ways:
 *   mdwe    as PR_SET_MDWE has it: nothing may become executable
 *   mem     writing through /proc/self/mem fails, as under proc_mem.force_override=never
 *   memfd   that, and there is no memfd
 *   execmem only files may be mapped as code, as SELinux has it
 *   all     that of memfd, and nothing may become executable: no way is left
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define LOW(i)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]))
#define HIGH(i) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]) + 4)
#define GIVE(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(struct sock_filter *f, unsigned short n)
{
    struct sock_fprog p = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) {
        perror("deny: seccomp");
        _exit(2);
    }
}

#define FILTER(...)                                                                                          \
    do {                                                                                                     \
        struct sock_filter f_[] = {__VA_ARGS__};                                                             \
        filter(f_, sizeof(f_) / sizeof(*f_));                                                                \
    } while (0)

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *mode = argv[1];
    int all = !strcmp(mode, "all"), memfd = all || !strcmp(mode, "memfd"),
        mem = memfd || !strcmp(mode, "mem");
    /* An offset as high as an address: this is no file. */
    if (mem)
        FILTER(NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0), ALLOW, HIGH(3),
               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), ALLOW, GIVE(EIO));
    if (memfd)
        FILTER(NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0), ALLOW, GIVE(ENOSYS));
    if (all || !strcmp(mode, "mdwe"))
        FILTER(NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0), ALLOW, LOW(2),
               BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), ALLOW, GIVE(EACCES));
    if (!strcmp(mode, "execmem"))
        FILTER(NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0), ALLOW, LOW(3),
               BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0), ALLOW, LOW(2),
               BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), ALLOW, GIVE(EACCES));
    execvp(argv[2], argv + 2);
    perror("deny: exec");
    return 2;
}
