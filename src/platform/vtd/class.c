/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A remapping unit's entry in /sys/class/iommu, as Linux 6.12's drivers/iommu/intel/iommu.c makes
 * it of each unit, whether that one has performance monitoring or not (sheet 4.1). Nothing but the
 * six files of intel-iommu/: the links to devices and to the unit's parent are not shown.
 */
#include <inttypes.h>
#include <stdio.h>

#include <quipu/bits.h>

#include "platform/vtd/driver.h"
#include "platform/vtd/registers.h"

void vtd_class_init(struct vtd_class *c, struct quipu_vtd *unit, unsigned number, uint64_t base,
		    unsigned domains)
{
	uint64_t cap = quipu_vtd_read(unit, CAP_REG, 8);
	uint32_t version = (uint32_t)quipu_vtd_read(unit, VER_REG, 4);
	const struct {
		const char *name;
		bool hex;
		uint64_t value;
	} file[VTD_CLASS_FILES] = {
		{"address", true, base},
		{"cap", true, cap},
		{"ecap", true, quipu_vtd_read(unit, ECAP_REG, 8)},
		{"domains_supported", false, bits_one(4 + 2 * (unsigned)(cap & 7))},
		{"domains_used", false, domains},
		{"version", false, 0},
	};

	for (unsigned i = 0; i < VTD_CLASS_FILES; i++) {
		char *path = c->file[i].path, *text = c->file[i].text;

		snprintf(path, sizeof(c->file[i].path), "/sys/class/iommu/dmar%u/intel-iommu/%s",
			 number, file[i].name);
		snprintf(text, sizeof(c->file[i].text), file[i].hex ? "%" PRIx64 : "%" PRIu64,
			 file[i].value);
		c->files[i] = (struct quipu_pmu_file){.path = path, .text = text};
	}
	snprintf(c->file[VTD_CLASS_FILES - 1].text, sizeof(c->file[0].text), "%u:%u",
		 version >> 4 & 0xf, version & 0xf);
	c->files[VTD_CLASS_FILES] = (struct quipu_pmu_file){.path = NULL};
}
