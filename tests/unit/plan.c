/* links: plan_x86_64.o */
/* Entries of every kind: which can be moved, why not, and that the moved ones do what they did. */
#include "plan.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Everything lies in one mapping, as code and its near area lie in reach of each other: the function and what
 * it reads and calls, and far behind it the slot. */
#define ENTRY  0
#define DATA   256
#define CALLED 320
#define SLOT   512

static uint8_t *page;
static long (*trampoline)(long);

static long wrapper(long x)
{
    return trampoline(x) + 1000;
}

static long call(long x)
{
    return ((long (*)(long))(void *)(page + ENTRY))(x);
}

static const char *plan(struct plan *p, const char *code, size_t size, size_t readable)
{
    memset(page, 0xcc, 4096);
    memcpy(page, code, size);
    if (readable > size)
        memset(page + size, 0x90, readable - size);
    static const uint8_t seven[4] = {7},
                         called[5] = {0x48, 0x8d, 0x47, 0x03, 0xc3}; /* lea 3(%rdi),%rax; ret */
    memcpy(page + DATA, seven, sizeof(seven));
    memcpy(page + CALLED, called, sizeof(called));
    return plan_entry(p, page, size, readable, (uintptr_t)page);
}

/* Moves it, and compares what it returns. */
static void moves(const char *what, const char *code, size_t size, size_t readable)
{
    struct plan p;
    uint8_t slot[PLAN_SLOT], jump[PLAN_JUMP];
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    const char *why = plan(&p, code, size, readable);
    if (!tap_point(!why, what, __FILE__, __LINE__)) {
        printf("#   refused: %s\n", why);
        return;
    }
    ok(plan_slot(&p, page, (uintptr_t)page + SLOT, (const void *)wrapper, slot));
    ok(plan_jump(&p, (uintptr_t)page + SLOT, jump));
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    long before[4], after[4];
    for (int i = 0; i < 4; i++)
        before[i] = call(i);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    memcpy(page + SLOT, slot, PLAN_SLOT);
    memcpy(page + p.at, jump, PLAN_JUMP);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    trampoline = (long (*)(long))(void *)(page + SLOT + PLAN_TAIL);
    for (int i = 0; i < 4; i++)
        after[i] = call(i);
    for (int i = 0; i < 4; i++)
        is(after[i], before[i] + 1000);
}

static void refuses(const char *reason, const char *code, size_t size, size_t readable)
{
    struct plan p;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    const char *why = plan(&p, code, size, readable);
    is_text(why ? why : "nothing", reason);
}

#define MOVES(what, code)            moves(what, code, sizeof(code) - 1, sizeof(code) - 1)
#define MOVES_PADDED(what, code, n)  moves(what, code, sizeof(code) - 1, n)
#define REFUSES(reason, code)        refuses(reason, code, sizeof(code) - 1, sizeof(code) - 1)
#define REFUSES_PADDED(why, code, n) refuses(why, code, sizeof(code) - 1, n)

int main(void)
{
    if (!plan_possible()) {
        printf("1..0 # skip built without the decoder (scripts/fetch-zydis)\n");
        return 0;
    }
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 1;

    /* push %rbp; mov %rsp,%rbp; lea 1(%rdi),%rax; pop %rbp; ret */
    MOVES("a frame", "\x55\x48\x89\xe5\x48\x8d\x47\x01\x5d\xc3");
    /* endbr64; lea 1(%rdi),%rax; nop; ret */
    MOVES("endbr64", "\xf3\x0f\x1e\xfa\x48\x8d\x47\x01\x90\xc3");
    /* mov DATA(%rip),%eax; add %rdi,%rax; ret */
    MOVES("memory beside the code", "\x8b\x05\xfa\0\0\0\x48\x01\xf8\xc3");
    /* lea DATA(%rip),%rax; mov (%rax),%eax; ret */
    MOVES("an address beside the code", "\x48\x8d\x05\xf9\0\0\0\x8b\x00\xc3");
    /* cmpl $2, DATA(%rip)+imm8 (the immediate stands behind the displacement); setg %al; movzbl %al,%eax; ret
     */
    MOVES("memory with an immediate", "\x83\x3d\xf9\0\0\0\x02\x0f\x9f\xc0\x0f\xb6\xc0\xc3");
    /* vmovd DATA(%rip),%xmm0; vmovd %xmm0,%eax; ret */
    MOVES("memory in a VEX instruction", "\xc5\xf9\x6e\x05\xf8\0\0\0\xc5\xf9\x7e\xc0\xc3");
    /* test %rdi,%rdi; je +8; lea 1(%rdi),%rax; ret; nop3; mov $9,%eax; ret */
    MOVES("a short branch", "\x48\x85\xff\x74\x08\x48\x8d\x47\x01\xc3\x0f\x1f\x00\xb8\x09\0\0\0\xc3");
    /* test %edi,%edi; jne rel32 +1; ret; mov $5,%eax; ret */
    MOVES("a long branch", "\x31\xc0\x85\xff\x0f\x85\x01\0\0\0\xc3\xb8\x05\0\0\0\xc3");
    /* jmp CALLED */
    MOVES("a jump elsewhere", "\xe9\x3b\x01\0\0");
    /* jmp +4 (short); nops; mov $3,%eax; ret */
    MOVES("a short jump, with padding behind it", "\xeb\x04\x90\x90\x90\x90\xb8\x03\0\0\0\xc3");
    /* sub $8,%rsp; call CALLED; add $8,%rsp; ret */
    MOVES("a call", "\x48\x83\xec\x08\xe8\x37\x01\0\0\x48\x83\xc4\x08\xc3");
    /* mov %edi,%eax; ret; padding */
    MOVES_PADDED("a short function with padding", "\x89\xf8\xc3", 16);
    /* xor %eax,%eax; ret */
    MOVES_PADDED("a ret with padding", "\x31\xc0\xc3", 8);
    /* endbr64; jmp CALLED */
    MOVES("endbr64 and a jump", "\xf3\x0f\x1e\xfa\xe9\x37\x01\0\0");
    /* push, sub, then a call to its own entry later on: recursion is a call like any other; never taken here
     */
    MOVES("a call to itself",
          "\x55\x48\x83\xec\x10\x31\xc0\xeb\x05\xe8\xf2\xff\xff\xff\x48\x83\xc4\x10\x5d\xc3");

    REFUSES("it is too short", "\x31\xc0\xc3");
    REFUSES_PADDED("it is too short", "\x31\xc0\xc3", 4);
    REFUSES("it is too short", "\x31\xc0\xc3\xb8\x01\0\0\0\xc3"); /* code behind the ret is no padding */
    refuses("it reaches into another symbol", "\x55\x48\x89\xe5\x5d\xc3", 6, 3);
    REFUSES("its first instructions cannot be moved", "\xcc\x48\x89\xe5\x5d\xc3");     /* a breakpoint */
    REFUSES("its first instructions cannot be moved", "\x0f\x0b\x48\x89\xe5\x5d\xc3"); /* ud2 */
    REFUSES("its first instructions cannot be moved", "\x0f\x05\x48\x89\xe5\x5d\xc3"); /* syscall */
    REFUSES("its first instructions cannot be moved", "\xe2\x10\x48\x89\xe5\x5d\xc3"); /* loop */
    REFUSES("its first instructions cannot be moved", "\xe3\x10\x48\x89\xe5\x5d\xc3"); /* jrcxz */
    REFUSES("its first instructions cannot be moved", "\xff\xd0\x48\x89\xe5\x5d\xc3"); /* call *%rax */
    REFUSES("its first instructions cannot be moved", "\xc7\xf8\x10\0\0\0\x5d\xc3");   /* xbegin */
    REFUSES("its first instructions cannot be decoded", "\x06\x48\x89\xe5\x5d\xc3");   /* no such thing */
    REFUSES("its first instructions cannot be decoded", "\x48\x8b\x05\0");             /* cut off */
    /* push; mov; loop back to the second byte */
    REFUSES("it jumps into its own first bytes", "\x55\x48\x89\xe5\x90\x90\x85\xff\x75\xf7\x5d\xc3");
    /* … back to the entry itself, which would be one more call */
    REFUSES("it jumps into its own first bytes", "\x55\x48\x89\xe5\x90\x90\x85\xff\x75\xf6\x5d\xc3");
    /* a branch among the displaced that stays among them */
    REFUSES("it jumps into its own first bytes", "\x74\x01\x90\x90\x90\x90\x90\xc3");
    /* what cannot be decoded further on may hide such a branch */
    REFUSES("it jumps into its own first bytes", "\x55\x48\x89\xe5\x90\x90\x06\x5d\xc3");

    struct plan p;
    uint8_t slot[PLAN_SLOT], jump[PLAN_JUMP];
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    ok(!plan(&p, "\x8b\x05\xfa\0\0\0\xc3", 7, 7));
    ok(!plan_slot(&p, page, (uintptr_t)page + (1ull << 32), NULL, slot)); /* the memory is out of reach */
    ok(!plan_jump(&p, (uintptr_t)page + (1ull << 32), jump));
    ok(!plan(&p, "\xe9\x3b\x01\0\0", 5, 5));
    ok(!plan_slot(&p, page, (uintptr_t)page - (1ull << 32), NULL, slot));
    /* the cold part: jmp back to the third byte, or past what is displaced */
    ok(!plan(&p, "\x55\x48\x89\xe5\x90\x90\x5d\xc3", 8, 8));
    ok(plan_disturbed(&p, (const uint8_t *)"\xe9\xfe\xfe\xff\xff", 5, (uintptr_t)page + 256));
    ok(!plan_disturbed(&p, (const uint8_t *)"\xe9\x01\xff\xff\xff", 5, (uintptr_t)page + 256));
    return done();
}
