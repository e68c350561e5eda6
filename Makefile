# rdgate: build, test, install. Everything made goes to build/. V=1 shows the commands; config.mak may
# override any variable.
-include config.mak

PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
BINDIR  ?= $(PREFIX)/bin
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
BASE := -std=gnu11 $(OPT) -g $(WARN) -D_GNU_SOURCE -DRDGATE_VERSION='"$(VERSION)"' -MMD -MP -Ishim

# hidden + no-semantic-interposition: nobody interposes us, our own calls stay direct
# initial-exec: TLS without __tls_get_addr, which may allocate
# frame pointers and unwind tables: stacks through the shim always unwind
# no fortify: no __*_chk imports that another libc lacks; no stack protector: the wrappers are hot and hold no buffers
SHIM_CFLAGS := $(BASE) -fPIC -fvisibility=hidden -fno-semantic-interposition -ftls-model=initial-exec \
	-fno-omit-frame-pointer -fasynchronous-unwind-tables -U_FORTIFY_SOURCE -fno-stack-protector $(CFLAGS)
# anonymous version node: with a named one dlsym@GLIBC_x is no longer ours
# now, relro: nothing is bound lazily inside a call; nodelete: wrappers outlive dlclose; defs: nothing undefined
SHIM_LDFLAGS := -shared -Wl,--version-script=$(B)/exports.map -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
	-Wl,-z,defs -Wl,-z,nodelete -Wl,--as-needed -Wl,-soname,librdgate.so $(LDFLAGS)

SHIM_C   := $(wildcard shim/*.c)
SHIM_S   := shim/lookup_$(ARCH).S
SHIM_OBJ := $(SHIM_C:shim/%.c=$(B)/shim/%.o) $(SHIM_S:shim/%.S=$(B)/shim/%.o)
CLI_C    := $(wildcard shim/cli/*.c)
CLI_OBJ  := $(CLI_C:shim/cli/%.c=$(B)/cli/%.o) $(B)/cli/options.o
PROBES   := $(patsubst tests/probes/%.c,$(B)/probes/%,$(wildcard tests/probes/*.c)) \
	$(patsubst tests/probes/%.cpp,$(B)/probes/%,$(wildcard tests/probes/*.cpp))

CALM     := $(patsubst tests/calm/%.c,$(B)/calm/%,$(wildcard tests/calm/*.c)) \
	$(patsubst tests/calm/lib/%.c,$(B)/calm/lib/%.so,$(wildcard tests/calm/lib/*.c))

all: $(B)/librdgate.so $(B)/rdgate
probes: $(PROBES) $(CALM)

# Changed flags rebuild everything (libfiu's stamp).
FLAGS := $(CC) $(SHIM_CFLAGS) $(SHIM_LDFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(B)/shim $(B)/cli $(B)/probes
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

$(B)/exports.map: shim/exports.map.in shim/calls.def $(B)/flags
	$(call say,MAP,$@)
	$(Q)$(CC) -E -P -x c -Ishim $< > $@.tmp && mv $@.tmp $@

$(B)/shim/%.o: shim/%.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(SHIM_CFLAGS) -c -o $@ $<

$(B)/shim/%.o: shim/%.S $(B)/flags
	$(call say,AS,$@)
	$(Q)$(CC) $(SHIM_CFLAGS) -c -o $@ $<

$(B)/librdgate.so: $(SHIM_OBJ) $(B)/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) $(OPT) -o $@ $(SHIM_OBJ) $(SHIM_LDFLAGS)

$(B)/cli/%.o: shim/cli/%.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE) -DRDGATE_LIBDIR='"$(LIBDIR)"' $(CFLAGS) -c -o $@ $<

$(B)/cli/%.o: shim/%.c $(B)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE) $(CFLAGS) -c -o $@ $<

$(B)/rdgate: $(CLI_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(OPT) -o $@ $(CLI_OBJ) $(LDFLAGS)

# Probes are linked with librdkafka as a user's program is, and never with the shim.
$(B)/probes/%: tests/probes/%.c $(B)/flags
	$(call say,PROBE,$@)
	$(Q)$(CC) -std=gnu11 -O1 -g $(WARN) -D_GNU_SOURCE -MMD -MP -rdynamic -o $@ $< -lrdkafka -lpthread -ldl

$(B)/probes/%: tests/probes/%.cpp $(B)/flags
	$(call say,PROBE,$@)
	$(Q)$(CXX) -std=gnu++17 -O1 -g -Wall -Wextra -MMD -MP -o $@ $< -lrdkafka++ -lrdkafka -lpthread

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

demo: all probes
	@scripts/demo
check: all probes
	@scripts/check $(TESTS)
bench: all probes
	@scripts/bench
lint:
	@scripts/lint
format:
	clang-format -i $(wildcard shim/*.c shim/*.h shim/cli/*.c shim/cli/*.h tests/probes/*.c tests/probes/*.h tests/probes/*.cpp tests/calm/*.c tests/calm/*.h tests/calm/lib/*.c tests/unit/*.c tests/fake/*.c)

# Atomic: a running program keeps the old file, a new one sees a whole file.
install: all
	install -d $(DESTDIR)$(LIBDIR) $(DESTDIR)$(BINDIR)
	install -m 0644 $(B)/librdgate.so $(DESTDIR)$(LIBDIR)/.librdgate.so.new
	mv -f $(DESTDIR)$(LIBDIR)/.librdgate.so.new $(DESTDIR)$(LIBDIR)/librdgate.so
	install -m 0755 $(B)/rdgate $(DESTDIR)$(BINDIR)/.rdgate.new
	mv -f $(DESTDIR)$(BINDIR)/.rdgate.new $(DESTDIR)$(BINDIR)/rdgate
clean:
	rm -rf $(B)

FORCE:
.PHONY: all probes demo check bench lint format install clean FORCE
-include $(wildcard $(B)/shim/*.d $(B)/cli/*.d $(B)/probes/*.d $(B)/calm/*.d $(B)/calm/lib/*.d)
