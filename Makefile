# rdgate: build, test, install. Everything made goes to build/. V=1 shows the commands; config.mak may
# override any variable.
-include config.mak

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
BINDIR  ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share/rdgate
DESTDIR ?=
CC      ?= cc
OPT     ?= -O2
WERROR  ?=
B       ?= build
VERSION := 0.1.0

Q = $(if $(V),,@)
say = @$(if $(V),true,echo "  $(1)	$(2)")

ARCH := $(shell $(CC) -dumpmachine | cut -d- -f1)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes $(WERROR)
# dwarf-4: Debian 12's valgrind does not read what clang writes as version 5
BASE := -std=gnu11 $(OPT) -g -gdwarf-4 $(WARN) -D_GNU_SOURCE -DRDGATE_VERSION='"$(VERSION)"' -MMD -MP -iquote shim

# hidden + no-semantic-interposition: nobody interposes us, our own calls stay direct
# initial-exec: TLS without __tls_get_addr, which may allocate
# frame pointers and unwind tables: stacks through the shim always unwind
# no fortify: no __*_chk imports that another libc lacks; no stack protector: the wrappers are hot and hold no buffers
SHIM_CFLAGS := $(BASE) -fPIC -fvisibility=hidden -fno-semantic-interposition -ftls-model=initial-exec \
	-fno-omit-frame-pointer -fasynchronous-unwind-tables -U_FORTIFY_SOURCE -fno-stack-protector $(CFLAGS)
# anonymous version node: with a named one dlsym@GLIBC_x is no longer ours
# symbolic: our table of wrappers means ours, also in an executable that exports its own copy of librdkafka
# now, relro: nothing is bound lazily inside a call; nodelete: wrappers outlive dlclose; defs: nothing undefined
SHIM_LDFLAGS := -shared -Wl,--version-script=$(B)/exports.map -Wl,-Bsymbolic-functions -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
	-Wl,-z,defs -Wl,-z,nodelete -Wl,--as-needed -Wl,-soname,librdgate.so $(LDFLAGS)

# The decoder for entry patching (scripts/setup fetches it). Without it everything else still works.
ZYDIS := $(wildcard build/zydis/libzydis.a)
ifneq ($(ZYDIS),)
ZYDIS_CFLAGS := -DRDGATE_ZYDIS -isystem build/zydis/include $(shell cat build/zydis/defines)
endif

SHIM_C   := $(wildcard shim/*.c)
SHIM_S   := shim/lookup_$(ARCH).S
SHIM_OBJ := $(SHIM_C:shim/%.c=$(B)/shim/%.o) $(SHIM_S:shim/%.S=$(B)/shim/%.o)
CLI_C    := $(wildcard shim/cli/*.c)
# What the shim and the command must agree on is the same code.
CLI_OBJ  := $(CLI_C:shim/cli/%.c=$(B)/cli/%.o) $(addprefix $(B)/cli/,options.o say.o call.o verdict.o report.o page.o \
	symbols.o inside.o copy.o maps.o plan_x86_64.o)
# JSON and the terminal; only the command needs them
CLI_LIBS ?= -ljansson -lncursesw
UNITS    := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/*.c))
BENCHES  := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
PROBES   := $(patsubst tests/probes/%.c,$(B)/probes/%,$(wildcard tests/probes/*.c)) \
	$(patsubst tests/probes/%.cpp,$(B)/probes/%,$(wildcard tests/probes/*.cpp))
SCENES   := $(patsubst tests/scenes/%.c,$(B)/scenes/%,$(wildcard tests/scenes/*.c))
CLIENTS  := $(addprefix $(B)/clients/,mockcluster host plugin.so count.so cppclient goclient)

BROKERS  := $(addprefix $(B)/broker/,fill member)

FUZZERS  := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/*.c))

CALM     := $(patsubst tests/calm/%.c,$(B)/calm/%,$(wildcard tests/calm/*.c)) \
	$(patsubst tests/calm/lib/%.c,$(B)/calm/lib/%.so,$(wildcard tests/calm/lib/*.c))

all: $(B)/librdgate.so $(B)/rdgate
probes: $(PROBES) $(CALM) $(SCENES) $(FUZZERS)
units: $(UNITS)
benches: $(BENCHES)
clients: $(CLIENTS)
brokers: $(BROKERS)

# Changed flags rebuild everything (libfiu's stamp).
FLAGS := $(CC) $(SHIM_CFLAGS) $(SHIM_LDFLAGS) $(ZYDIS_CFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(B)/shim $(B)/cli $(B)/probes $(B)/unit $(B)/bench $(B)/clients
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

# The command knows where its library is installed.
$(B)/cli/flags: $(B)/flags FORCE
	@echo '$(LIBDIR)' | cmp -s - $@ || echo '$(LIBDIR)' > $@

$(B)/exports.map: shim/exports.map.in shim/calls.def $(B)/flags
	$(call say,MAP,$@)
	$(Q)$(CC) -E -P -x c $< > $@.tmp && mv $@.tmp $@

$(B)/shim/%.o: shim/%.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(SHIM_CFLAGS) -c -o $@ $<

$(B)/shim/plan_x86_64.o: SHIM_CFLAGS += $(ZYDIS_CFLAGS)
$(B)/cli/plan_x86_64.o: BASE += $(ZYDIS_CFLAGS)

$(B)/shim/%.o: shim/%.S $(B)/flags
	$(call say,AS,$@)
	$(Q)$(CC) $(SHIM_CFLAGS) -c -o $@ $<

$(B)/librdgate.so: $(SHIM_OBJ) $(B)/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(OPT) -o $@.tmp $(SHIM_OBJ) $(ZYDIS) $(SHIM_LDFLAGS)
	$(Q)$(if $(ZYDIS),objcopy --add-section .zydis.license=build/zydis/LICENSE $@.tmp) # it has to go with it
	$(Q)mv $@.tmp $@ # whole for whoever runs under it

$(B)/cli/%.o: shim/cli/%.c $(B)/flags $(B)/cli/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE) -DRDGATE_LIBDIR='"$(LIBDIR)"' $(CFLAGS) -c -o $@ $<

$(B)/cli/%.o: shim/%.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE) $(CFLAGS) -c -o $@ $<

# The page that it fills in is inside.
$(B)/cli/trace.o: shim/cli/trace.html

$(B)/rdgate: $(CLI_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(OPT) -o $@ $(CLI_OBJ) $(ZYDIS) $(LDFLAGS) $(CLI_LIBS)

# Stacks of other processes, where elfutils is there.
ifneq ($(wildcard /usr/include/elfutils/libdwfl.h),)
$(B)/cli/stacks.o: CFLAGS += -DRDGATE_DWFL
$(B)/rdgate: CLI_LIBS += -ldw -lelf
endif

# Probes are linked with librdkafka as a user's program is, and never with the shim.
$(B)/probes/%: tests/probes/%.c $(B)/flags
	$(call say,PROBE,$@)
	$(Q)$(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP -rdynamic -o $@ $< -lrdkafka -lpthread -ldl

$(B)/probes/%: tests/probes/%.cpp $(B)/flags
	$(call say,PROBE,$@)
	$(Q)$(CXX) -std=gnu++17 -O1 -g -Wall -Wextra -MMD -MP -o $@ $< -lrdkafka++ -lrdkafka -lpthread

# Unit tests name the objects that they need, those of the command with its directory: /* links: say.o cli/flight.o */
.SECONDEXPANSION:
links = $(patsubst $(B)/shim/cli/%,$(B)/cli/%,$(addprefix $(B)/shim/,$(shell sed -n 's,.*links:\(.*\)\*/.*,\1,p' $(1))))
$(B)/unit/%: tests/unit/%.c $(B)/flags $$(call links,tests/unit/$$*.c)
	$(call say,UNIT,$@)
	$(Q)$(CC) $(BASE) $(CFLAGS) -o $@ $< $(call links,$<) $(ZYDIS) $(LDFLAGS) -lpthread -ldl

# Flight files made by hand, to be shown.
$(B)/scenes/%: tests/scenes/%.c $(B)/flags
	$(call say,SCENE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(CFLAGS) -o $@ $<

# What reads files of others, under the sanitizers: each fuzzer names the sources that it needs.
SANITIZED = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
sources = $(addprefix shim/,$(shell sed -n 's,.*sources:\(.*\)\*/.*,\1,p' $(1)))
$(B)/fuzz/%: tests/fuzz/%.c $(B)/flags $$(call sources,tests/fuzz/$$*.c)
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(SANITIZED) $(CFLAGS) -o $@ $< $(call sources,$<) $(CLI_LIBS)

# Benchmarks are linked as probes are, with the optimization of the shim.
$(B)/bench/%: tests/bench/%.c $(B)/flags
	$(call say,BENCH,$@)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -MMD -MP -o $@ $< -lrdkafka -lpthread

# Calm programs behave well without the shim, and must with it. Their libraries are plugins to load.
CALM_LIBS = -lrdkafka -lpthread -ldl
$(B)/calm/alone $(B)/calm/loader $(B)/calm/twolibs $(B)/calm/lib/own.so $(B)/calm/lib/outer.so \
	$(B)/calm/lib/sibling.so: CALM_LIBS = -lpthread -ldl
$(B)/calm/static: CALM_LIBS = -static
$(B)/calm/lib/outer.so: CALM_LD = -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/deep'
$(B)/calm/%: tests/calm/%.c $(B)/flags
	$(call say,CALM,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP -rdynamic -o $@ $< $(CALM_LD) $(CALM_LIBS)

$(B)/calm/lib/%.so: tests/calm/lib/%.c $(B)/flags
	$(call say,CALM,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP -fPIC -shared -o $@ $< $(CALM_LD) $(CALM_LIBS)

# Clients are other people's: each is built as its users build it.
CLIENT_CC := $(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP

$(B)/clients/mockcluster: tests/clients/mockcluster.c $(B)/flags
	$(call say,CLIENT,$@)
	$(Q)$(CLIENT_CC) -o $@ $< -lrdkafka
$(B)/clients/host: tests/clients/host.c $(B)/flags
	$(call say,CLIENT,$@)
	$(Q)$(CLIENT_CC) -o $@ $< -ldl
$(B)/clients/plugin.so: tests/clients/plugin.c $(B)/flags
	$(call say,CLIENT,$@)
	$(Q)$(CLIENT_CC) -shared -fPIC -o $@ $< -lrdkafka
$(B)/clients/count.so: tests/clients/count.c $(B)/flags
	$(call say,CLIENT,$@)
	$(Q)$(CLIENT_CC) -shared -fPIC -o $@ $< -ldl
$(B)/clients/cppclient: tests/clients/cppclient.cpp $(B)/flags
	$(call say,CLIENT,$@)
	$(Q)$(CXX) -std=gnu++17 -O1 -g -Wall -Wextra -MMD -MP -o $@ $< -lrdkafka++ -lpthread
$(B)/broker/%: tests/broker/%.c $(B)/flags
	$(call say,BROKER,$@)
	@mkdir -p $(@D)
	$(Q)$(CLIENT_CC) -o $@ $< -lrdkafka -lpthread
# From Debian's Go sources alone, no network.
$(B)/clients/goclient: tests/clients/goclient.go
	$(call say,GO,$@)
	$(Q)mkdir -p $(@D)
	$(Q)GO111MODULE=off GOTOOLCHAIN=local GOFLAGS= GOPATH=/usr/share/gocode GOCACHE=$(CURDIR)/$(B)/gocache \
		go build -tags dynamic -o $@ $<

# Programs with librdkafka inside. What the tests strip and split is made of these.
STATIC_A  := build/librdkafka/2.15/lib/librdkafka.a
STATIC_CC := $(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP -isystem build/librdkafka/2.15/include
STATICS   := $(addprefix $(B)/static/,close_wakes_poll destroy_vs_poll destroy_in_callback two_closes storm errnos \
	queues events inside table every spin unittest deny lto host module.so early.so busy.so close_exported close_nopie \
	debian_close_wakes_poll debian_nopie debian_unittest static_pie restless restless_exported \
	$(if $(wildcard build/go.absent),,govictim govictim-race))
static: $(STATICS)

$(STATIC_A):
	@echo 'librdkafka 2.15 is missing: scripts/fetch-librdkafka 2.15' >&2; exit 1
# What a program is made of: a probe, or a calm program, or one of its own.
$(B)/static/%: tests/probes/%.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(STATIC_CC) -o $@ $< $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/%: tests/calm/%.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(STATIC_CC) -rdynamic -o $@ $< $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/%: tests/static/%.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(STATIC_CC) -iquote shim -o $@ $< $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/close_exported: tests/probes/close_wakes_poll.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(STATIC_CC) -rdynamic -o $@ $< $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/close_nopie: tests/probes/close_wakes_poll.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(STATIC_CC) -no-pie -Wl,-z,now -o $@ $< $(STATIC_A) -lz -lm -ldl -lpthread
# Debian's own librdkafka.a, with all that it calls for.
DEBIAN_A = -l:librdkafka.a -llz4 -lm -lzstd -lsasl2 -lssl -lcrypto -lz -ldl -lpthread -lrt
DEBIAN_CC = $(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP
$(B)/static/debian_%: tests/probes/%.c $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(DEBIAN_CC) -o $@ $< $(DEBIAN_A)
$(B)/static/debian_%: tests/static/%.c $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(DEBIAN_CC) -o $@ $< $(DEBIAN_A)
$(B)/static/debian_nopie: tests/probes/close_wakes_poll.c $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(DEBIAN_CC) -no-pie -o $@ $< $(DEBIAN_A)
# A program without a dynamic loader: nobody asks for a preload.
$(B)/static/static_pie: tests/probes/close_wakes_poll.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(STATIC_CC) -static-pie -o $@ $< $(STATIC_A) -lz -lm -ldl -lpthread 2>/dev/null
# As large as large Go programs: 100 MB, 200000 functions with long names.
$(B)/static/large.o: $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && awk 'BEGIN { print ".text"; for (i = 0; i < 200000; i++) { \
		n = sprintf("\"example.org/services/billing/internal/package%d.(*Receiver).Method%06d\"", i % 97, i); \
		print ".type " n ",@function\n" n ": ret\n.fill 255,1,0xcc\n.size " n ",256" } \
		print ".section .rodata\n.fill 50000000,1,0x2e\n.section .note.GNU-stack,\"\",@progbits" }' | $(CC) -x assembler -c -o $@ -
$(B)/static/large: tests/static/start.c $(B)/static/large.o $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(STATIC_CC) -o $@ $(filter %.c %.o,$^) $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/large_alone: tests/static/start.c $(B)/static/large.o $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(STATIC_CC) -DALONE -o $@ $(filter %.c %.o,$^)
# Threads and signals before anything else; the second lets libraries see its functions.
$(B)/static/restless.so: tests/static/restless.c $(B)/flags
	$(call say,STATIC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -fPIC -shared -o $@ $< -lpthread
RESTLESS = tests/probes/close_wakes_poll.c -Wl,--no-as-needed $(B)/static/restless.so -Wl,-rpath,$(abspath $(B)/static) \
	$(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/restless: tests/probes/close_wakes_poll.c $(B)/static/restless.so $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(STATIC_CC) -o $@ $(RESTLESS)
$(B)/static/restless_exported: tests/probes/close_wakes_poll.c $(B)/static/restless.so $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(STATIC_CC) -rdynamic -o $@ $(RESTLESS)
# Modules that keep their copy to themselves; the second has a constructor, and the third one that starts a thread.
MODULE = mkdir -p $(@D) && $(STATIC_CC) -Dmain=run -fPIC -shared -Wl,--exclude-libs,ALL -o $@
$(B)/static/module.so: tests/probes/close_wakes_poll.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(MODULE) -Dconstructor=unused $< $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/early.so: tests/probes/close_wakes_poll.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(MODULE) $< $(STATIC_A) -lz -lm -ldl -lpthread
$(B)/static/busy.so: tests/probes/close_wakes_poll.c tests/static/busy.c $(STATIC_A) $(B)/flags
	$(call say,STATIC,$@)
	$(Q)$(MODULE) $(filter %.c,$^) $(STATIC_A) -lz -lm -ldl -lpthread
# confluent-kafka-go brings its own librdkafka.
GO = $(firstword $(wildcard $(CURDIR)/build/go/bin/go) go)
GO_BUILD = cd tests/static && GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=1 $(GO) build
$(B)/static/govictim $(B)/static/govictim-race: tests/static/victim.go tests/static/go.mod tests/static/go.sum
	$(call say,GO,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(GO_BUILD) $(if $(findstring race,$@),-race) -o $(abspath $@) victim.go

# Readers of ELF files against rubbish, for FUZZ_SECONDS. What it finds is left in build/fuzz.
FUZZ_SECONDS ?= 60
FUZZ_C  := tests/fuzz/elf.c $(addprefix shim/,symbols.c inside.c copy.c call.c say.c plan_x86_64.c cli/binary.c)
$(B)/fuzz/elf: $(FUZZ_C) $(wildcard shim/*.h shim/cli/*.h) $(B)/flags
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D) && clang -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -iquote shim $(ZYDIS_CFLAGS) \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ $(FUZZ_C) $(ZYDIS)
$(B)/fuzz/seeds: tests/fuzz/seeds $(B)/flags
	$(Q)rm -rf $@ && tests/fuzz/seeds $@ && touch $@
fuzz: $(B)/fuzz/elf $(B)/fuzz/seeds
	$(Q)mkdir -p $(B)/fuzz/corpus
	$(B)/fuzz/elf -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix=$(B)/fuzz/ $(B)/fuzz/corpus $(B)/fuzz/seeds
demo: all probes
	@scripts/demo
check: all probes clients brokers $(if $(filter x86_64,$(ARCH)),static)
	@scripts/check $(TESTS)
# Only the bindings as people install them, on Apache Kafka itself.
check-bindings: all probes clients brokers
	@scripts/check $(wildcard tests/bindings/*.bats)
# What takes long: three members of a group under rolling restarts, ten minutes of each kind.
soak: all brokers
	@ROLL_SECONDS=600 BATS_TEST_TIMEOUT=1500 scripts/check tests/bindings/rolling.bats
# A librdkafka inside the executable, alone.
check-static: all static units
	@scripts/check tests/static/patch.bats tests/unit/symbols.c tests/unit/plan.c
# What reports look like, when they are meant to look different: renew, and read the difference.
golden: $(B)/unit/report
	@rm -f tests/golden/*
	@$< tests/golden
bench: all benches $(if $(filter x86_64,$(ARCH)),$(addprefix $(B)/static/,start large large_alone))
	@scripts/bench
lint:
	@scripts/lint
format:
	clang-format -i $(wildcard shim/*.[ch] shim/cli/*.[ch] tests/*/*.[ch] tests/*/*.cpp tests/calm/lib/*.c)

# Atomic: a running program keeps the old file, a new one sees a whole file.
install: all
	install -d $(DESTDIR)$(LIBDIR) $(DESTDIR)$(BINDIR) $(DESTDIR)$(DATADIR)
	install -m 0644 $(B)/librdgate.so $(DESTDIR)$(LIBDIR)/.librdgate.so.new
	mv -f $(DESTDIR)$(LIBDIR)/.librdgate.so.new $(DESTDIR)$(LIBDIR)/librdgate.so
	install -m 0755 $(B)/rdgate $(DESTDIR)$(BINDIR)/.rdgate.new
	mv -f $(DESTDIR)$(BINDIR)/.rdgate.new $(DESTDIR)$(BINDIR)/rdgate
	install -m 0644 shim/data/rdgate.rules.yml shim/data/rdgate.grafana.json $(DESTDIR)$(DATADIR)
clean:
	rm -rf $(B)

FORCE:
.PHONY: all brokers soak golden static check-static check-bindings probes units benches clients demo check bench fuzz lint format install clean FORCE
-include $(foreach d,shim cli scenes probes unit bench calm calm/lib clients fuzz static broker,$(wildcard $(B)/$(d)/*.d))
