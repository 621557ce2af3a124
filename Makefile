# SPDX-License-Identifier: BSD-2-Clause
# The front door. The build itself is Meson's; this file only knows the way in.
#
#	make            configure and build in $(BUILD)
#	make demo       set up, build, and show the payoff on a real riscv64 program
#	make check      set up, build, and run every test; the last line counts them
#	make check-qemu the bare RISC-V driver under qemu-system-riscv64, beside our model
#	make bench      build, and print the speed ratios beside their targets
#	make install    into $(DESTDIR)$(PREFIX)
#	make clean      remove $(BUILD)
#
# SETUPFLAGS goes to `meson setup` (for example SETUPFLAGS='--werror -Db_sanitize=address'), NINJAFLAGS to ninja.

BUILD      ?= build
PREFIX     ?= /usr/local
DESTDIR    ?=
SETUPFLAGS ?=
NINJAFLAGS ?=

all: build

help:
	@sed -n 's/^#	//p' Makefile

# What is missing of packages.txt is named, then installed through apt.
setup:
	@tools/setup.sh packages.txt

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { \
		echo "make: meson is not installed; 'make setup' installs all that the build needs" >&2; exit 1; }
	meson setup --prefix=$(PREFIX) $(SETUPFLAGS) $(BUILD)

build: $(BUILD)/build.ninja
	ninja $(NINJAFLAGS) -C $(BUILD)

# A make of its own, so that nothing is looked for before the set-up has run.
demo: setup
	@$(MAKE) --no-print-directory build
	@tools/demo.sh $(BUILD)

check:
	@tools/setup.sh packages.txt packages-check.txt
	@tools/check.sh $(BUILD) $(MAKE) --no-print-directory build

# Meson builds what this one test needs, and no more.
check-qemu: $(BUILD)/build.ninja
	meson test -C $(BUILD) --verbose qemu

bench: build
	@python3 bench/ratios.py $(BUILD)
	@python3 bench/engine/b1.py $(BUILD)
	@python3 bench/host.py $(BUILD)
	@$(BUILD)/bench/bench-vtd
	@$(BUILD)/bench/bench-rock
	@if [ -e $(BUILD)/tests/conformance/rock/recurse.sparc64 ]; then \
		python3 bench/rock.py $(BUILD)/src/cli/quipu $(BUILD)/tests/conformance/rock/recurse.sparc64; \
	else echo "rock: the cost of counting is left out: it needs gcc-sparc64-linux-gnu, then make again"; fi
	@python3 bench/lpar.py $(BUILD)
	@! [ -e $(BUILD)/tests/guests/realistic.ppc64le ] || python3 bench/imc.py $(BUILD)/src/cli/quipu $(BUILD)/tests/guests/realistic.ppc64le $(BUILD)/machines/power9.dtb
	@$(BUILD)/bench/bench-gate $(BUILD)/src/cli/quipu

# The prefix is compiled in (where the plugin and the machines lie), so another one is configured before installing.
install: $(BUILD)/build.ninja
	meson configure -Dprefix=$(PREFIX) $(BUILD)
	ninja $(NINJAFLAGS) -C $(BUILD)
	DESTDIR=$(DESTDIR) meson install --no-rebuild -C $(BUILD)

clean:
	rm -rf $(BUILD)

.PHONY: all help setup build demo check check-qemu bench install clean
