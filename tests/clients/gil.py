"""gil.py held|free BOOTSTRAP TOPIC: a rebalance callback in Python needs the interpreter lock.

With `held` the closing thread keeps that lock during rd_kafka_consumer_close (ctypes.PyDLL), as a binding does that
does not let go of it: the callback in the other thread's poll never starts, and the close waits for its answer for ever.
With `free` (ctypes.CDLL) all goes well. Prints "closed" when the close has returned.
"""
import ctypes
import os
import sys
import threading
import time

held = sys.argv[1] == "held"
bootstraps, topic = sys.argv[2].encode(), sys.argv[3].encode()
free = ctypes.CDLL("librdkafka.so.1")
closing = ctypes.PyDLL("librdkafka.so.1") if held else free
ASSIGN, REVOKE = -175, -174
state = {"assigned": False, "revoked": False}

for lib in (free, closing):
    lib.rd_kafka_conf_new.restype = ctypes.c_void_p
    lib.rd_kafka_new.restype = ctypes.c_void_p
    lib.rd_kafka_topic_partition_list_new.restype = ctypes.c_void_p
    lib.rd_kafka_consumer_poll.restype = ctypes.c_void_p

Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@Callback
def on_rebalance(rk, err, partitions, opaque):
    free.rd_kafka_assign(ctypes.c_void_p(rk), ctypes.c_void_p(partitions if err == ASSIGN else None))
    state["assigned" if err == ASSIGN else "revoked"] = True


def consumer():
    conf = ctypes.c_void_p(free.rd_kafka_conf_new())
    for key, value in ((b"bootstrap.servers", bootstraps), (b"group.id", b"gil%d" % os.getpid()), (b"log_level", b"2")):
        assert free.rd_kafka_conf_set(conf, key, value, None, ctypes.c_size_t(0)) == 0
    free.rd_kafka_conf_set_rebalance_cb(conf, on_rebalance)
    return ctypes.c_void_p(free.rd_kafka_new(1, conf, None, ctypes.c_size_t(0)))


rk = consumer()
topics = ctypes.c_void_p(free.rd_kafka_topic_partition_list_new(1))
free.rd_kafka_topic_partition_list_add(topics, topic, -1)
assert free.rd_kafka_subscribe(rk, topics) == 0
while not state["assigned"]:
    message = free.rd_kafka_consumer_poll(rk, 100)
    if message:
        free.rd_kafka_message_destroy(ctypes.c_void_p(message))

# The callback runs in the poll of this thread …
poller = threading.Thread(target=lambda: free.rd_kafka_consumer_poll(rk, 20000), daemon=True)
if held:
    closing.rd_kafka_unsubscribe.argtypes = [ctypes.c_void_p]
    poller.start()
    # … while this one has the lock: it goes from one call to the next without letting go of it, and the revocation
    # comes in between. usleep is called with the lock held, too.
    usleep = ctypes.PyDLL(None).usleep
    sys.setswitchinterval(100)
    time.sleep(0.2)
    closing.rd_kafka_unsubscribe(rk)
    usleep(300000)
else:
    poller.start()
    free.rd_kafka_unsubscribe(rk)
    while not state["revoked"]:
        time.sleep(0.01)
closing.rd_kafka_consumer_close(rk)
print("closed", flush=True)
os._exit(0)  # the poll may still be in
