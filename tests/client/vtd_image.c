// SPDX-License-Identifier: BSD-2-Clause
/*
 * A bare x86 program for qemu-system-x86_64 (multiboot, 32 bits, no library): it builds page tables
 * for QEMU's intel-iommu, switches translation on and has QEMU's teaching device "edu" read and
 * write memory through them. What QEMU logs of that (-trace 'vtd_*') is a real log for
 * tools/qemu-dma-trace.py; vtd_qemu.py says what must come of it.
 *
 * Tables: VT-d specification chapter 9; edu: QEMU's docs/specs/edu.txt. Nothing is handled that
 * cannot happen there.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define IOMMU	   0xfed90000u
#define GCMD	   0x18u
#define GSTS	   0x1cu
#define RTADDR	   0x20u
#define FSTS	   0x34u
#define IQT	   0x88u
#define IQA	   0x90u
#define TE	   0x80000000u
#define SRTP	   0x40000000u
#define QIE	   0x04000000u
#define DOMAIN	   5u
#define PAGES	   8u
#define IOVA	   0x8000000u /* edu reaches 28 bits */
#define EDU_BUFFER 0x40000u

__attribute__((section(".multiboot"), used)) static const u32 multiboot[] = {0x1badb002, 0,
									     (u32)-0x1badb002};

static u8 stack[8192] __attribute__((aligned(16), used));
static u64 root[512] __attribute__((aligned(4096)));
static u64 context[512] __attribute__((aligned(4096)));
static u64 table[3][512] __attribute__((aligned(4096)));
static u64 queue[512] __attribute__((aligned(4096)));
static u8 memory[PAGES * 4096] __attribute__((aligned(4096)));
static volatile u32 done;
static u32 tail;

__asm__(".globl _start\n_start:\n\tmov $stack+8192, %esp\n\tcall run\n1:\thlt\n\tjmp 1b\n");

static void out32(unsigned short port, u32 v)
{
	__asm__ volatile("outl %0, %1" ::"a"(v), "Nd"(port));
}

static u32 in32(unsigned short port)
{
	u32 v;

	__asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

static void put32(u32 at, u32 v)
{
	*(volatile u32 *)at = v;
}

static u32 get32(u32 at)
{
	return *(volatile u32 *)at;
}

static void put64(u32 at, u64 v)
{
	put32(at, (u32)v);
	put32(at + 4, (u32)(v >> 32));
}

static u32 address(const volatile void *p)
{
	return (u32)p;
}

static u32 pci_read(u32 device, u32 offset)
{
	out32(0xcf8, 0x80000000u | device << 11 | offset);
	return in32(0xcfc);
}

static void pci_write(u32 device, u32 offset, u32 v)
{
	out32(0xcf8, 0x80000000u | device << 11 | offset);
	out32(0xcfc, v);
}

/* Memory-mapped registers of edu, with bus mastering on. */
static u32 find_edu(void)
{
	for (u32 device = 0; device < 32; device++) {
		if (pci_read(device, 0) != 0x11e81234u)
			continue;
		pci_write(device, 4, pci_read(device, 4) | 6);
		return pci_read(device, 0x10) & ~15u;
	}
	return 0;
}

static void wait_status(u32 bit)
{
	while (!(get32(IOMMU + GSTS) & bit))
		;
}

/* A descriptor, and one that waits for it. */
static void invalidate(u64 lo, u64 hi)
{
	queue[tail++] = lo;
	queue[tail++] = hi;
	done = 0;
	queue[tail++] = 0x25 | (u64)1 << 32;
	queue[tail++] = address(&done);
	put64(IOMMU + IQT, tail * 8);
	while (!done)
		;
}

/* Three levels, as many as QEMU's unit has by default; one domain for all of bus 0. */
static void translate(void)
{
	root[0] = address(context) | 1;
	for (u32 i = 0; i < 256; i++) {
		context[2 * i] = address(table[0]) | 1;
		context[2 * i + 1] = 1 | DOMAIN << 8;
	}
	table[0][0] = address(table[1]) | 3;
	table[1][IOVA >> 21] = address(table[2]) | 3;
	for (u32 i = 0; i < PAGES; i++)
		table[2][i] = address(memory + 4096 * i) | 3;
	put64(IOMMU + RTADDR, address(root));
	put32(IOMMU + GCMD, SRTP);
	wait_status(SRTP);
	put64(IOMMU + IQA, address(queue));
	put32(IOMMU + GCMD, QIE);
	wait_status(QIE);
	invalidate(0x11, 0); /* all context entries */
	invalidate(0x12, 0); /* all translations */
	put32(IOMMU + GCMD, QIE | TE);
	wait_status(TE);
}

static void dma(u32 edu, u32 iova, u32 bytes, int to_memory)
{
	put64(edu + 0x80, to_memory ? EDU_BUFFER : iova);
	put64(edu + 0x88, to_memory ? iova : EDU_BUFFER);
	put64(edu + 0x90, bytes);
	put64(edu + 0x98, to_memory ? 3 : 1);
	while (get32(edu + 0x98) & 1)
		;
}

__attribute__((used)) static void run(void)
{
	u32 edu = find_edu();

	if (!edu)
		out32(0xf4, 1);
	translate();
	for (u32 i = 0; i < 3; i++)
		dma(edu, IOVA + 64 * i, 64, 0); /* the same page */
	for (u32 i = 1; i < PAGES; i++)
		dma(edu, IOVA + 4096 * i, 512, 1);
	dma(edu, IOVA, 128, 0);
	table[2][3] = 0;
	invalidate(0x32 | DOMAIN << 16, IOVA + 3 * 4096);
	dma(edu, IOVA + 3 * 4096, 256, 1); /* faults */
	dma(edu, IOVA + 4 * 4096, 256, 1); /* still there */
	invalidate(0x22 | DOMAIN << 16, 0);
	dma(edu, IOVA, 64, 0);
	out32(0xf4, 0);
}
