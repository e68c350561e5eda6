#!/usr/bin/env bats
# Locks of runtimes sleep in the same futex as mutexes do. Whoever is taken for a mutex makes a false deadlock, so
# every kind of lock of Python, Ruby, Go and Rust is looked at while somebody sleeps in it.
load helper

setup_file() {
    cc -std=gnu11 -O1 -g -D_GNU_SOURCE -fPIC -shared -iquote "$ROOT/shim" -o "$BATS_FILE_TMPDIR/peep.so" \
        "$ROOT"/tests/peek/peep.c "$ROOT"/shim/{peek,say}.c -lpthread
}

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# peep THREADS COMMAND...: what its threads sleep in when that many of them do
peep() {
    RAN="peep $*" LIB=none
    run timeout -s KILL 60 env PEEP_THREADS="$1" LD_PRELOAD="$BATS_FILE_TMPDIR/peep.so" "${@:2}"
    [ "$status" -eq 0 ] || fail "no end, or never at rest"
}

no_mutex() { [[ $output == *"looks 500 mutexes 0 "* ]] || fail "something was taken for a mutex"; }

@test "no lock of Python is taken for a mutex" {
    command -v python3 >/dev/null || skip "no python3"
    cat >t.py <<'PY'
import queue, threading
lock, rlock, never = threading.Lock(), threading.RLock(), threading.Event()
lock.acquire()
rlock.acquire()
condition = threading.Condition()
def waits():
    with condition:
        condition.wait()
for body in (lock.acquire, rlock.acquire, lambda: lock.acquire(timeout=9999), waits, never.wait,
             threading.Semaphore(0).acquire, threading.Barrier(2).wait, queue.Queue().get,
             lambda: queue.Queue().get(timeout=9999)):
    threading.Thread(target=body, daemon=True).start()
threading.Thread(target=never.wait).start()
PY
    peep 11 "$(python3 -c 'import sys; print(sys.executable)')" t.py
    no_mutex
}

@test "Python's interpreter lock is not taken for a mutex" {
    command -v python3 >/dev/null || skip "no python3"
    cat >t.py <<'PY'
import ctypes, threading
threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()
ctypes.PyDLL(None).pause() # holds the lock
PY
    peep 1 "$(python3 -c 'import sys; print(sys.executable)')" t.py
    no_mutex
}

@test "no lock of Ruby is taken for a mutex" {
    command -v ruby >/dev/null || skip "no ruby"
    cat >t.rb <<'RB'
lock, other, condition = Mutex.new, Mutex.new, ConditionVariable.new
lock.lock
[-> { lock.lock }, -> { Queue.new.pop }, -> { SizedQueue.new(1).pop }, -> { sleep },
 -> { other.synchronize { condition.wait(other) } }].each { |body| Thread.new(&body) }
Thread.new { loop { Thread.stop } }.join
RB
    peep 6 ruby t.rb
    no_mutex
}

@test "no lock of Go is taken for a mutex" {
    command -v go >/dev/null || skip "no go"
    cat >t.go <<'GO'
package main

// #include <unistd.h>
import "C"
import (
	"runtime"
	"sync"
)

func main() {
	var lock sync.Mutex
	lock.Lock()
	for i := 0; i < 8; i++ {
		go func() { runtime.LockOSThread(); lock.Lock() }()
		go func() { runtime.LockOSThread(); select {} }()
		go func() { runtime.LockOSThread(); <-make(chan int) }()
	}
	C.pause()
}
GO
    GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local GOCACHE=$BATS_FILE_TMPDIR/gocache go build -o t t.go
    peep 24 ./t
    no_mutex
}

@test "no lock of Rust is taken for a mutex" {
    command -v rustc >/dev/null || skip "no rustc"
    cat >t.rs <<'RS'
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock};
use std::thread;
static ONCE: Once = Once::new();
static CELL: OnceLock<u32> = OnceLock::new();
fn stay() -> ! { loop { thread::park() } }
fn main() {
    let lock = Arc::new(Mutex::new(unsafe { libc_gettid() } as u64));
    let held = lock.lock().unwrap();
    let rw = Arc::new(RwLock::new(0u64));
    let written = rw.write().unwrap();
    for _ in 0..2 {
        let l = lock.clone();
        thread::spawn(move || { drop(l.lock()); });
        let r = rw.clone();
        thread::spawn(move || { drop(r.read()); });
        let w = rw.clone();
        thread::spawn(move || { drop(w.write()); });
        thread::spawn(|| ONCE.call_once(|| stay()));
        thread::spawn(|| { CELL.get_or_init(|| stay()); });
        thread::spawn(|| { let c = Condvar::new(); let m = Mutex::new(0); let g = m.lock().unwrap(); drop(c.wait(g)); stay() });
        thread::spawn(|| { Barrier::new(2).wait(); });
        thread::spawn(|| { let (_tx, rx) = mpsc::channel::<u8>(); let _ = rx.recv(); });
    }
    stay();
    #[allow(unreachable_code)]
    { drop(held); drop(written); }
}
extern "C" { #[link_name = "gettid"] fn libc_gettid() -> i32; }
RS
    rustc -A warnings -o t t.rs
    peep 17 ./t
    no_mutex
}

@test "a mutex of C++ is one" {
    cat >t.cpp <<'CPP'
#include <mutex>
#include <thread>
#include <unistd.h>
int main()
{
    static std::mutex lock;
    static std::recursive_timed_mutex other;
    lock.lock();
    other.lock();
    std::thread([] { lock.lock(); }).detach();
    std::thread([] { other.lock(); }).detach();
    pause();
}
CPP
    c++ -o t t.cpp -lpthread
    peep 2 ./t
    [[ $output == *"looks 500 mutexes 1000 "* ]] || fail "mutexes were not seen"
}
