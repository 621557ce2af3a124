/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a recording, and tells its objects which build ids the recording saw. */
#include <errno.h>
#include <string.h>

#include "profile/profile.h"

int profile_open(struct profile *p, const char *path, struct perfdata_error *err)
{
	const struct perfdata_features *f;

	*p = (struct profile){.data = perfdata_open(path, err)};
	if (!p->data)
		return -EINVAL;
	p->symbols = profile_symbols_new();
	p->maps = p->symbols ? profile_maps_new(p->symbols) : NULL;
	if (!p->maps) {
		strcpy(err->text, "out of memory");
		profile_close(p);
		return -ENOMEM;
	}
	f = perfdata_features(p->data);
	if (f->hypervisor)
		p->hypervisor = profile_hypervisor_read(f->hypervisor, f->hypervisor_len);
	profile_maps_hypervisor(p->maps, p->hypervisor);
	for (size_t i = 0; i < f->nr_build_ids; i++)
		profile_symbols_expect(p->symbols, f->build_ids[i].path, f->build_ids[i].id,
				       f->build_ids[i].size);
	return 0;
}

void profile_close(struct profile *p)
{
	profile_maps_free(p->maps);
	profile_hypervisor_free(p->hypervisor);
	profile_symbols_free(p->symbols);
	perfdata_close(p->data);
	*p = (struct profile){0};
}
