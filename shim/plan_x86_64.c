/*
 * plan_x86_64.c: see plan.h. The displaced instructions are told by opcode; what cannot be moved beyond doubt
 * is refused. The only file that knows the decoder (Zydis, in its minimal mode: lengths, opcodes and raw
 * fields).
 */
#include "plan.h"

#if defined(__x86_64__) && defined(RDGATE_ZYDIS)
#    include <Zydis/Zydis.h>
#    include <string.h>

typedef ZydisDecodedInstruction insn;

static bool decode(insn *i, const uint8_t *code, size_t size)
{
    ZydisDecoder d;
    return ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, NULL, code, size, i)) && i->length;
}

bool plan_possible(void)
{
    return true;
}

enum what { PLAIN, JUMP, BRANCH, CALLS, ENDS, NEVER };

static bool legacy(const insn *i, ZydisOpcodeMap map)
{
    return i->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && i->opcode_map == map;
}

static enum what what(const insn *i)
{
    uint8_t op = i->opcode, reg = i->raw.modrm.reg;
    if (legacy(i, ZYDIS_OPCODE_MAP_0F)) {
        if (op >= 0x80 && op <= 0x8f)
            return BRANCH;
        /* syscall, sysret, ud2, sysenter, sysexit, ud1, ud0 */
        return op == 0x05 || op == 0x07 || op == 0x0b || op == 0x34 || op == 0x35 || op == 0xb9 || op == 0xff
                   ? NEVER
                   : PLAIN;
    }
    if (!legacy(i, ZYDIS_OPCODE_MAP_DEFAULT))
        return PLAIN;
    if (op >= 0x70 && op <= 0x7f)
        return BRANCH;
    switch (op) {
    case 0xe8: return CALLS;
    case 0xe9:
    case 0xeb: return JUMP;
    case 0xc2:
    case 0xc3: return ENDS;
    case 0xc6:
    case 0xc7: return reg == 7 ? NEVER : PLAIN; /* xabort, xbegin */
    case 0xff: return reg == 4 ? ENDS : reg == 2 || reg == 3 || reg == 5 ? NEVER : PLAIN;
    case 0xe0: /* loop and its kin, */
    case 0xe1:
    case 0xe2:
    case 0xe3:
    case 0xca: /* far returns, */
    case 0xcb:
    case 0xcc: /* traps, */
    case 0xcd:
    case 0xcf:
    case 0xf1:
    case 0xf4: return NEVER; /* hlt */
    default: return PLAIN;
    }
}

/* rel8, rel16 or rel32 of a branch, as address. */
static bool branch_target(const insn *i, uint64_t at, uint64_t *target)
{
    if (!i->raw.imm[0].is_relative)
        return false;
    *target = at + i->length + (uint64_t)i->raw.imm[0].value.s;
    return true;
}

static bool is_padding(const insn *i)
{
    if (legacy(i, ZYDIS_OPCODE_MAP_0F))
        return i->opcode == 0x1f;
    return legacy(i, ZYDIS_OPCODE_MAP_DEFAULT) && (i->opcode == 0x90 || i->opcode == 0xcc);
}

static bool padded(const uint8_t *code, size_t off, size_t until, size_t readable)
{
    insn i;
    for (; off < until; off += i.length)
        if (off >= readable || !decode(&i, code + off, readable - off) || !is_padding(&i))
            return false;
    return true;
}

bool plan_disturbed(const struct plan *p, const uint8_t *code, size_t size, uint64_t address)
{
    insn i;
    for (size_t off = 0; off < size; off += i.length) {
        if (!decode(&i, code + off, size - off))
            return true;
        uint64_t to, at = address + off;
        if (!branch_target(&i, at, &to))
            continue;
        /* To call itself by its entry is no harm: that is a call like any other. */
        if (to - p->entry < p->moved && !(to == p->entry && what(&i) == CALLS))
            return true;
    }
    return false;
}

const char *plan_entry(struct plan *p, const uint8_t *code, size_t size, size_t readable, uint64_t entry)
{
    static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (readable < size)
        return "it reaches into another symbol";
    p->entry = entry;
    p->at = size >= 4 && memcmp(code, endbr64, 4) == 0 ? 4 : 0;
    size_t off = p->at, need = p->at + PLAN_JUMP;
    bool ended = false;
    while (off < need && off < size && !ended) {
        insn i;
        if (!decode(&i, code + off, size - off))
            return "its first instructions cannot be decoded";
        enum what w = what(&i);
        uint64_t target = 0;
        if (w == NEVER)
            return "its first instructions cannot be moved";
        if ((w == JUMP || w == BRANCH || w == CALLS) &&
            (i.raw.prefix_count || !branch_target(&i, entry + off, &target)))
            return "it begins with an unusual branch";
        ended = w == JUMP || w == ENDS;
        off += i.length;
        if (w == CALLS && off < need)
            return "it calls too early";
    }
    if (off < need) {
        if (!padded(code, off, need, readable))
            return "it is too short";
        off = need;
    }
    p->moved = (uint32_t)off;
    uint8_t trial[PLAN_SLOT];
    if (!plan_slot(p, code, entry, NULL, trial))
        return "its first instructions cannot be moved";
    return plan_disturbed(p, code, size, entry) ? "it jumps into its own first bytes" : NULL;
}

/* ------------------------------------------------------------------ writing */

struct out {
    uint8_t *bytes;
    size_t used;
    uint64_t address;
    bool far;
};

static void put(struct out *o, const void *bytes, size_t n)
{
    if (n > PLAN_SLOT - o->used) {
        o->far = true;
        return;
    }
    memcpy(o->bytes + o->used, bytes, n);
    o->used += n;
}

static void put_rel32(struct out *o, uint64_t target)
{
    int64_t d = (int64_t)(target - (o->address + o->used + 4));
    int32_t d32 = (int32_t)d;
    o->far |= d != d32;
    put(o, &d32, sizeof(d32));
}

static void put_jump(struct out *o, uint64_t target)
{
    put(o, "\xe9", 1);
    put_rel32(o, target);
}

/* Pushes the genuine return address: no address of ours is ever on a stack that somebody unwinds. */
static void put_call(struct out *o, uint64_t target, uint64_t back)
{
    put(o, "\xff\x35\x05\x00\x00\x00", 6); /* push 5(%rip) */
    put_jump(o, target);
    put(o, &back, sizeof(back));
}

static void put_plain(struct out *o, const uint8_t *code, const insn *i, uint64_t from)
{
    uint8_t copy[ZYDIS_MAX_INSTRUCTION_LENGTH];
    memcpy(copy, code, i->length);
    if ((i->attributes & ZYDIS_ATTRIB_HAS_MODRM) && i->raw.modrm.mod == 0 && i->raw.modrm.rm == 5) {
        int64_t d = i->raw.disp.value + (int64_t)(from - (o->address + o->used));
        int32_t d32 = (int32_t)d;
        o->far |= d != d32;
        memcpy(copy + i->raw.disp.offset, &d32, sizeof(d32));
    }
    put(o, copy, i->length);
}

bool plan_slot(const struct plan *p, const uint8_t *code, uint64_t address, const void *wrapper,
               uint8_t slot[PLAN_SLOT])
{
    struct out o = {slot, 0, address, false};
    memset(slot, 0xcc, PLAN_SLOT);
    put(&o, "\xff\x25\x00\x00\x00\x00", 6); /* jmp *0(%rip) */
    put(&o, &wrapper, sizeof(wrapper));
    o.used = PLAN_TAIL;
    put(&o, "\xf3\x0f\x1e\xfa", 4); /* endbr64: it is called through a pointer */
    bool goes_on = true;
    for (size_t off = p->at; goes_on && off < p->moved;) {
        insn i;
        uint64_t target = 0;
        if (!decode(&i, code + off, p->moved - off))
            return false;
        branch_target(&i, p->entry + off, &target);
        switch (what(&i)) {
        case JUMP:
            put_jump(&o, target);
            goes_on = false;
            break;
        case BRANCH: {
            uint8_t jcc[2] = {0x0f, (uint8_t)(0x80 | (i.opcode & 15))};
            put(&o, jcc, 2);
            put_rel32(&o, target);
            break;
        }
        case CALLS:
            put_call(&o, target, p->entry + off + i.length);
            goes_on = false;
            break;
        case ENDS: goes_on = false; /* fall through */
        default: put_plain(&o, code + off, &i, p->entry + off);
        }
        off += i.length;
    }
    if (goes_on)
        put_jump(&o, p->entry + p->moved);
    return !o.far;
}

bool plan_jump(const struct plan *p, uint64_t slot, uint8_t jump[PLAN_JUMP])
{
    int64_t d = (int64_t)(slot - (p->entry + p->at + PLAN_JUMP));
    int32_t d32 = (int32_t)d;
    jump[0] = 0xe9;
    memcpy(jump + 1, &d32, sizeof(d32));
    return d == d32;
}

#else

bool plan_possible(void)
{
    return false;
}

const char *plan_entry(struct plan *p, const uint8_t *code, size_t size, size_t readable, uint64_t entry)
{
    (void)p, (void)code, (void)size, (void)readable, (void)entry;
    return "the decoder is missing";
}

bool plan_disturbed(const struct plan *p, const uint8_t *code, size_t size, uint64_t address)
{
    (void)p, (void)code, (void)size, (void)address;
    return true;
}

bool plan_slot(const struct plan *p, const uint8_t *code, uint64_t address, const void *wrapper,
               uint8_t slot[PLAN_SLOT])
{
    (void)p, (void)code, (void)address, (void)wrapper, (void)slot;
    return false;
}

bool plan_jump(const struct plan *p, uint64_t slot, uint8_t jump[PLAN_JUMP])
{
    (void)p, (void)slot, (void)jump;
    return false;
}

#endif
