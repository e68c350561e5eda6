# Real clients, unchanged, on a real socket: each without the shim and with it, and the same comes out.

load clients

setup_file() {
    cluster_up orders 3 600 quiet 1 0
}

teardown_file() {
    cluster_down
}

librdkafka() {
    ldconfig -p | awk '$1 == "librdkafka.so.1" { print $NF; exit }'
}

@test "kcat in a consumer group" {
    both kcat 30 kcat -b "$BOOTSTRAP" -G GROUP -X auto.offset.reset=earliest -c 600 -f '%t %p %o %s\n' orders
    same kcat 600
    was_gated kcat
    row kcat kcat "$(debian kcat)"
}

@test "kcat with the legacy consumer" {
    both legacy 30 kcat -b "$BOOTSTRAP" -C -t orders -p 1 -o beginning -e -f '%t %p %o %s\n'
    same legacy 200
    was_gated legacy
}

@test "Python: a thread polls, another pauses, resumes, commits and closes" {
    both python 40 /usr/bin/python3 "$HERE/client.py" consume "$BOOTSTRAP" GROUP orders 600
    same python 603
    said python gated "committed: [(0, 200), (1, 200), (2, 200)]"
    said python gated "commit failed: []"
    once python
    was_gated python
    row python "confluent-kafka (Python), \`Consumer\`" "$(debian python3-confluent-kafka)"
}

@test "Python: a statistics callback that needs the interpreter lock" {
    both gil 40 /usr/bin/python3 "$HERE/client.py" stats "$BOOTSTRAP" GROUP orders 600
    same gil 603
    said gil gated "stats: True rounds: True"
    once gil
    was_gated gil
}

@test "Python: a close that keeps the interpreter lock from the callback it waits for is named as a deadlock" {
    both gilfree 40 /usr/bin/python3 "$HERE/gil.py" free "$BOOTSTRAP" quiet
    said gilfree gated closed
    ended gilfree gated 0
    both gilheld 25 env RDGATE_ON_DEADLOCK=exit:7 /usr/bin/python3 "$HERE/gil.py" held "$BOOTSTRAP" quiet
    fell gilheld plain
    ended gilheld gated 7
    grep -q "finding: deadlock: " "$BATS_TEST_TMPDIR/gilheld.gated.err"
    grep -q "Python's interpreter lock (the GIL) at .*; it names thread" "$BATS_TEST_TMPDIR/gilheld.gated.err"
    grep -q "PyGILState_Ensure" "$BATS_TEST_TMPDIR/gilheld.gated.err"
}

@test "Python: close against poll(-1) hangs without, ends with" {
    both pyclose 12 /usr/bin/python3 "$HERE/client.py" close "$BOOTSTRAP" GROUP quiet 0
    fell pyclose plain
    ended pyclose gated 0
    said pyclose gated "poll(-1) returned None"
    said pyclose gated "afterwards: Consumer closed"
    said pyclose gated closed
}

@test "Ruby's ffi: opened by path, called from libffi, callbacks under the interpreter lock" {
    both ruby 40 ruby "$HERE/client.rb" consume "$(librdkafka)" "$BOOTSTRAP" GROUP orders 600
    same ruby 604
    said ruby gated "stats: true rounds: true"
    once ruby
    was_gated ruby
    row ruby "ffi (Ruby), as the gem rdkafka uses it" "$(debian ruby-ffi)"
}

@test "Ruby: close against a blocking poll hangs without, ends with" {
    both rbclose 12 ruby "$HERE/client.rb" close "$(librdkafka)" "$BOOTSTRAP" GROUP quiet 0
    fell rbclose plain
    ended rbclose gated 0
    said rbclose gated "close: 0"
    said rbclose gated "poll(-1) returned"
    said rbclose gated closed
    was_gated rbclose
}

@test "Go: a goroutine polls, another commits" {
    both go 40 "$BUILD/goclient" consume "$BOOTSTRAP" GROUP orders 600
    same go 601
    was_gated go
    row go "confluent-kafka-go, \`-tags dynamic\`" "$(debian golang-github-confluentinc-confluent-kafka-go-dev)"
}

@test "Go: Close against Poll(-1) hangs or crashes without, ends with" {
    both goclose 12 "$BUILD/goclient" close "$BOOTSTRAP" GROUP quiet 0
    fell goclose plain
    ended goclose gated 0
    said goclose gated closed
    was_gated goclose
}

@test "C++: a thread consumes, another pauses, resumes and commits" {
    both cpp 40 "$BUILD/cppclient" consume "$BOOTSTRAP" GROUP orders 600
    same cpp 601
    once cpp
    was_gated cpp
    row cpp "librdkafka++ (C++)" "$(debian librdkafka++1)"
}

@test "C++: close against consume(-1) hangs without, ends with" {
    both cppclose 12 "$BUILD/cppclient" close "$BOOTSTRAP" GROUP quiet 0
    fell cppclose plain
    ended cppclose gated 0
    said cppclose gated "close: Success"
    said cppclose gated closed
    was_gated cppclose
}

@test "dlsym users: ctypes" {
    both ctypes 30 /usr/bin/python3 "$HERE/client_ctypes.py" "$BOOTSTRAP" orders 50
    same ctypes 51
    was_gated ctypes
    row ctypes "ctypes (Python)" "$(debian python3)"
}

@test "dlsym users: LuaJIT, whose calls come from no library" {
    both luajit 30 luajit "$HERE/client.lua" "$BOOTSTRAP" orders 50
    same luajit 51
    was_gated luajit
    row luajit "ffi (LuaJIT)" "$(debian luajit)"
}

@test "a plugin opened with RTLD_DEEPBIND, as PHP opens its extensions" {
    both deep 30 "$BUILD/host" "$BUILD/plugin.so" "$BOOTSTRAP" orders 50
    same deep 51
    was_gated deep
    row deep "a plugin opened with \`RTLD_DEEPBIND\`, as PHP does" "compiled here"
}

@test "another preload library before ours and after it" {
    PRELOAD_FIRST=$BUILD/count.so both first 30 kcat -b "$BOOTSTRAP" -G GROUP -X auto.offset.reset=earliest -c 600 orders
    PRELOAD_LAST=$BUILD/count.so both last 30 kcat -b "$BOOTSTRAP" -G GROUP -X auto.offset.reset=earliest -c 600 orders
    for name in first last; do
        same $name 600
        was_gated $name
        grep -q '^count: [1-9]' "$BATS_TEST_TMPDIR/$name.gated.err" || { told $name gated >&2; return 1; }
    done
}

@test "under libfaketime and libeatmydata" {
    for foreign in faketime/libfaketimeMT.so.1 libeatmydata.so; do
        name=$(basename "$foreign")
        library=$(dirname "$(librdkafka)")/$foreign
        [ -e "$library" ]
        PRELOAD_FIRST=$library both "$name" 30 kcat -b "$BOOTSTRAP" -C -t orders -p 1 -o beginning -e
        same "$name" 200
        was_gated "$name"
        PRELOAD_LAST=$library both "$name" 30 kcat -b "$BOOTSTRAP" -C -t orders -p 2 -o beginning -e
        same "$name" 200
        was_gated "$name"
    done
}
