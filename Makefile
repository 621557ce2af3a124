# SPDX-License-Identifier: BSD-2-Clause
# The front door. The build itself is Meson's; this file only knows the way in.
#
#	make            configure and build in $(BUILD)
#	make demo       set up, build, and show the payoff on a real riscv64 program
#	make check      set up, build, and run every test; the last line counts them
#	make bench      build, and print the speed ratios beside their targets
#	make install    into $(DESTDIR)$(PREFIX)
#	make clean      remove $(BUILD)
#
# SETUPFLAGS goes to `meson setup` (for example SETUPFLAGS='--werror -Db_sanitize=address').

BUILD      ?= build
PREFIX     ?= /usr/local
DESTDIR    ?=
SETUPFLAGS ?=
MESON      ?= meson
NINJA      ?= ninja

all: build

help:
	@sed -n 's/^#	//p' Makefile

# What is missing of packages.txt is named, then installed through apt.
setup:
	@tools/setup.sh packages.txt

$(BUILD)/build.ninja:
	@command -v $(MESON) >/dev/null || { \
		echo "make: $(MESON) is not installed; 'make setup' installs all that the build needs" >&2; exit 1; }
	$(MESON) setup --prefix=$(PREFIX) $(SETUPFLAGS) $(BUILD)

build: $(BUILD)/build.ninja
	$(NINJA) -C $(BUILD)

# A make of its own, so that nothing is looked for before the set-up has run.
demo: setup
	@$(MAKE) --no-print-directory build
	@tools/demo.sh $(BUILD)

check: setup
	@MESON=$(MESON) tools/check.sh $(BUILD) $(MAKE) --no-print-directory build

bench: build
	@python3 bench/ratios.py $(BUILD)

# The prefix is compiled in (where the plugin and the machines lie), so another one is configured before installing.
install: $(BUILD)/build.ninja
	$(MESON) configure -Dprefix=$(PREFIX) $(BUILD)
	$(NINJA) -C $(BUILD)
	DESTDIR=$(DESTDIR) $(MESON) install --no-rebuild -C $(BUILD)

clean:
	rm -rf $(BUILD)

.PHONY: all help setup build demo check bench install clean
