/*
 * lookup_aarch64.S: dlsym and dlopen. Both depend on who calls them (RTLD_NEXT, $ORIGIN, RUNPATH), so what is not
 * ours to answer must reach the real one with the caller's own return address: a branch, not a call (musl
 * src/ldso/aarch64/dlsym.s). C does the thinking, before the branch.
 */
	.text
	.globl dlsym
	.type dlsym,%function
dlsym:
	.cfi_startproc
	stp x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	stp x0, x1, [sp, #16]
	mov x29, sp
	mov x2, x30
	bl rdg_lookup
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #32
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	cbnz x16, 1f
	adrp x16, rdg_real_dlsym
	ldr x16, [x16, #:lo12:rdg_real_dlsym]
	br x16
1:	cmp x16, #1
	csel x0, xzr, x16, eq
	ret
	.cfi_endproc
	.size dlsym,.-dlsym

	.globl dlopen
	.type dlopen,%function
dlopen:
	.cfi_startproc
	stp x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	str x0, [sp, #16]
	mov x29, sp
	bl rdg_open_flags
	mov w1, w0
	ldr x0, [sp, #16]
	ldp x29, x30, [sp], #32
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	adrp x16, rdg_real_dlopen
	ldr x16, [x16, #:lo12:rdg_real_dlopen]
	br x16
	.cfi_endproc
	.size dlopen,.-dlopen

	.section .note.GNU-stack,"",%progbits
