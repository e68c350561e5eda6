"""ctypes, the cheapest user of dlsym: client_ctypes.py BOOTSTRAP TOPIC MESSAGES"""
import ctypes
import sys

bootstrap, topic, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
k = ctypes.CDLL("librdkafka.so.1")


class Message(ctypes.Structure):
    _fields_ = [
        ("err", ctypes.c_int), ("rkt", ctypes.c_void_p), ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p), ("len", ctypes.c_size_t), ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t), ("offset", ctypes.c_int64), ("private", ctypes.c_void_p),
    ]


for name in ("conf_new", "new", "topic_partition_list_new", "topic_partition_list_add"):
    getattr(k, "rd_kafka_" + name).restype = ctypes.c_void_p
k.rd_kafka_consumer_poll.restype = ctypes.POINTER(Message)

conf = ctypes.c_void_p(k.rd_kafka_conf_new())
why = ctypes.create_string_buffer(256)
for key, value in (("bootstrap.servers", bootstrap), ("group.id", "ctypes"), ("auto.offset.reset", "earliest")):
    if k.rd_kafka_conf_set(conf, key.encode(), value.encode(), why, 256):
        sys.exit(why.value)
rk = ctypes.c_void_p(k.rd_kafka_new(1, conf, why, 256))
k.rd_kafka_poll_set_consumer(rk)
parts = ctypes.c_void_p(k.rd_kafka_topic_partition_list_new(1))
k.rd_kafka_topic_partition_list_add(parts, topic.encode(), 0)
k.rd_kafka_assign(rk, parts)
k.rd_kafka_topic_partition_list_destroy(parts)
seen = 0
while seen < wanted:
    m = k.rd_kafka_consumer_poll(rk, 200)
    if m:
        print(m[0].err, m[0].offset, ctypes.string_at(m[0].payload, m[0].len).decode())
        k.rd_kafka_message_destroy(m)
        seen += 1
print("close:", k.rd_kafka_consumer_close(rk))
k.rd_kafka_destroy(rk)
