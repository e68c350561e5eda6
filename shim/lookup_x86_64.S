/*
 * lookup_x86_64.S: dlsym and dlopen. Both depend on who calls them (RTLD_NEXT, $ORIGIN, RUNPATH), so what is not
 * ours to answer must reach the real one with the caller's own return address: a jump, not a call (musl
 * src/ldso/x86_64/dlsym.s). C does the thinking, before the jump.
 */
	.text
	.globl dlsym
	.type dlsym,@function
dlsym:
	.cfi_startproc
	endbr64
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movq 24(%rsp), %rdx
	call rdg_lookup
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	testq %rax, %rax
	jnz 1f
	movq rdg_real_dlsym(%rip), %rax
	jmp *%rax
1:	cmpq $1, %rax
	jne 2f
	xorl %eax, %eax
2:	ret
	.cfi_endproc
	.size dlsym,.-dlsym

	.globl dlopen
	.type dlopen,@function
dlopen:
	.cfi_startproc
	endbr64
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	call rdg_open_flags
	popq %rdi
	.cfi_adjust_cfa_offset -8
	movl %eax, %esi
	movq rdg_real_dlopen(%rip), %rax
	jmp *%rax
	.cfi_endproc
	.size dlopen,.-dlopen

	.section .note.GNU-stack,"",@progbits
