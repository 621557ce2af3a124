/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of VT-d registers, fields and codes, as in the Architecture Specification 5.10 (chapters 6,
 * 9, 10, 11). */
#ifndef VTD_REGISTERS_H
#define VTD_REGISTERS_H

#include <quipu/bits.h>

/* A constant expression, for tables. */
#define VTD_BIT(n) (UINT64_C(1) << (n))

/* Offsets (11.4). */
#define VER_REG		0x000u
#define CAP_REG		0x008u
#define ECAP_REG	0x010u
#define GCMD_REG	0x018u
#define GSTS_REG	0x01cu
#define RTADDR_REG	0x020u
#define CCMD_REG	0x028u
#define FSTS_REG	0x034u
#define FECTL_REG	0x038u
#define IQH_REG		0x080u
#define IQT_REG		0x088u
#define IQA_REG		0x090u
#define ICS_REG		0x09cu
#define IECTL_REG	0x0a0u
#define IQERCD_REG	0x0b0u
#define IRTA_REG	0x0b8u
#define PQH_REG		0x0c0u
#define PQT_REG		0x0c8u
#define PQA_REG		0x0d0u
#define PRS_REG		0x0dcu
#define PECTL_REG	0x0e0u
#define PERFCAP_REG	0x300u
#define PERFCFGOFF_REG	0x310u
#define PERFFRZOFF_REG	0x314u
#define PERFOVFOFF_REG	0x318u
#define PERFCNTROFF_REG 0x31cu
#define PERFINTRSTS_REG 0x324u
#define PERFINTRCTL_REG 0x328u
#define PERFEVNTCAP_REG 0x380u
#define ECMD_REG	0x400u
#define ECEO_REG	0x408u
#define ECRSP_REG	0x410u
#define ECCAP_REG	0x430u

/* An event's four interrupt registers follow each other: control, data, address, upper address. */
#define IRQ_DATA  4u
#define IRQ_ADDR  8u
#define IRQ_UADDR 12u
#define IRQ_IM	  VTD_BIT(31)
#define IRQ_IP	  VTD_BIT(30)

/* CAP_REG, ECAP_REG */
#define CAP_SAGAW(c) bits_get(c, 12, 8)
#define CAP_MGAW(c)  ((unsigned)bits_get(c, 21, 16) + 1)
#define CAP_ZLR	     VTD_BIT(22)
#define CAP_FRO(c)   ((uint32_t)bits_get(c, 33, 24) * 16)
#define CAP_SSLPS(c) bits_get(c, 37, 34)
#define CAP_NFR(c)   ((unsigned)bits_get(c, 47, 40) + 1)
#define CAP_MAMV(c)  ((unsigned)bits_get(c, 53, 48))
#define CAP_FS1GP    VTD_BIT(56)
#define CAP_FS5LP    VTD_BIT(60)
#define CAP_ECMDS    VTD_BIT(61)
#define CAP_ESIRTPS  VTD_BIT(62)
#define CAP_ESRTPS   VTD_BIT(63)
#define ECAP_DT	     VTD_BIT(2)
#define ECAP_IR	     VTD_BIT(3)
#define ECAP_PT	     VTD_BIT(6)
#define ECAP_SC	     VTD_BIT(7)
#define ECAP_IRO(e)  ((uint32_t)bits_get(e, 17, 8) * 16)
#define ECAP_NEST    VTD_BIT(26)
#define ECAP_PRS     VTD_BIT(29)
#define ECAP_SRS     VTD_BIT(31)
#define ECAP_PSS(e)  ((unsigned)bits_get(e, 39, 35))
#define ECAP_SMTS    VTD_BIT(43)
#define ECAP_SSADS   VTD_BIT(45)
#define ECAP_SSTS    VTD_BIT(46)
#define ECAP_FSTS    VTD_BIT(47)
#define ECAP_PMS     VTD_BIT(51)
#define ECAP_HPTS    VTD_BIT(55)

/* GCMD_REG and GSTS_REG share positions. */
#define G_TE	VTD_BIT(31)
#define G_SRTP	VTD_BIT(30)
#define G_WBF	VTD_BIT(27)
#define G_QIE	VTD_BIT(26)
#define G_IRE	VTD_BIT(25)
#define G_SIRTP VTD_BIT(24)
#define G_CFI	VTD_BIT(23)

/* RTADDR_REG.TTM */
#define TTM_LEGACY   0u
#define TTM_SCALABLE 1u
#define TTM_RESERVED 2u
#define TTM_ABORT    3u

#define FSTS_PFO  VTD_BIT(0)
#define FSTS_PPF  VTD_BIT(1)
#define FSTS_IQE  VTD_BIT(4)
#define FSTS_ICE  VTD_BIT(5)
#define FSTS_ITE  VTD_BIT(6)
#define FRCD_F	  VTD_BIT(63) /* of the upper quadword */
#define PRS_PPR	  VTD_BIT(0)
#define PRS_PRO	  VTD_BIT(1)
#define IRTA_EIME VTD_BIT(11)

/* PERFCAP_REG and the per-counter registers (11.4.13). */
#define PERFCAP_NCNTR(p)   ((unsigned)bits_get(p, 15, 0))
#define PERFCAP_CW(p)	   ((unsigned)bits_get(p, 22, 16))
#define PERFCAP_EGCNT(p)   ((unsigned)bits_get(p, 28, 24))
#define PERFCAP_FILTERS(p) ((unsigned)bits_get(p, 36, 32))
#define PERFCAP_CWE	   VTD_BIT(48)
#define PERFCAP_GFS	   VTD_BIT(49)
#define PERFCAP_IOS	   VTD_BIT(50)
#define PERFCAP_PCCS	   VTD_BIT(51)
#define PERFCAP_STRIDE(p)  (1024u << bits_get(p, 54, 52))
#define CNTRCAP_PCC	   VTD_BIT(0)
#define CNTRCAP_CW(c)	   ((unsigned)bits_get(c, 15, 8))
#define CNTRCAP_IOS	   VTD_BIT(16)
#define CNTRCAP_GFS	   VTD_BIT(17)
#define CNTRCAP_EGCNT(c)   ((unsigned)bits_get(c, 31, 28))
#define EVCAP_ES(e)	   ((uint32_t)bits_get(e, 27, 0))
#define EVCAP_EGI(e)	   ((unsigned)bits_get(e, 31, 28))
#define CNTRCFG_EN	   VTD_BIT(0)
#define CNTRCFG_IO	   VTD_BIT(1)
#define CNTRCFG_GFO	   VTD_BIT(2)
#define CNTRCFG_EGI(c)	   ((unsigned)bits_get(c, 11, 8))
#define CNTRCFG_ES(c)	   ((uint32_t)bits_get(c, 59, 32))
#define CNTRCFG_WRITABLE   UINT64_C(0x0fffffff00000f06)
#define CFG_BLOCK	   0x100u
#define CFG_FILTER	   0x08u
#define CFG_CNTRCAP	   0x80u
#define CFG_CNTREVCAP	   0x84u
#define FILTER_EN	   VTD_BIT(31)

/* Filters in the order of PERFCAP 36:32 and of their registers. */
enum vtd_filter { FILTER_RID, FILTER_DID, FILTER_PASID, FILTER_AT, FILTER_PTL, FILTERS };

/* Enhanced commands (11.4.14) and their status codes. */
#define ECMD_ENABLE	  240u
#define ECMD_DISABLE	  241u
#define ECMD_RESET_CONFIG 242u
#define ECMD_RESET_VALUES 243u
#define ECMD_FREEZE	  244u
#define ECMD_UNFREEZE	  245u
#define ECMD_SUCCESS	  0u
#define ECMD_UNSUPPORTED  1u
#define ECMD_FAILED	  16u /* ENABLE: error checks; DISABLE: no such counter */
#define ECRSP_IP	  VTD_BIT(0)

/* PASIDFLTR.PFM */
#define PFM_EQUAL 0u
#define PFM_ANY	  1u
#define PFM_NONE  2u

/* Legacy context entry TT, PASID table entry PGTT. */
#define TT_SS	  0u
#define TT_SS_ATS 1u
#define TT_PT	  2u

#endif
