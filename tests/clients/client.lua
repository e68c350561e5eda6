-- LuaJIT's ffi, whose calls come from compiled code: client.lua BOOTSTRAP TOPIC MESSAGES
local ffi = require("ffi")
local bootstrap, topic, wanted = arg[1], arg[2], tonumber(arg[3])
ffi.cdef [[
typedef struct { int err; void *rkt; int32_t partition; void *payload; size_t len; void *key; size_t key_len;
                 int64_t offset; void *private_; } message_t;
void *rd_kafka_conf_new(void);
int rd_kafka_conf_set(void *conf, const char *name, const char *value, char *why, size_t size);
void *rd_kafka_new(int type, void *conf, char *why, size_t size);
int rd_kafka_poll_set_consumer(void *rk);
void *rd_kafka_topic_partition_list_new(int size);
void *rd_kafka_topic_partition_list_add(void *list, const char *topic, int32_t partition);
void rd_kafka_topic_partition_list_destroy(void *list);
int rd_kafka_assign(void *rk, const void *list);
message_t *rd_kafka_consumer_poll(void *rk, int timeout_ms);
void rd_kafka_message_destroy(message_t *m);
int rd_kafka_consumer_close(void *rk);
void rd_kafka_destroy(void *rk);
]]
local k = ffi.load("librdkafka.so.1")
local why = ffi.new("char[256]")
local conf = k.rd_kafka_conf_new()
for key, value in pairs { ["bootstrap.servers"] = bootstrap, ["group.id"] = "luajit", ["auto.offset.reset"] = "earliest" } do
  assert(k.rd_kafka_conf_set(conf, key, value, why, 256) == 0, ffi.string(why))
end
local rk = k.rd_kafka_new(1, conf, why, 256)
assert(rk ~= nil, ffi.string(why))
k.rd_kafka_poll_set_consumer(rk)
local parts = k.rd_kafka_topic_partition_list_new(1)
k.rd_kafka_topic_partition_list_add(parts, topic, 0)
k.rd_kafka_assign(rk, parts)
k.rd_kafka_topic_partition_list_destroy(parts)
local seen = 0
while seen < wanted do
  local m = k.rd_kafka_consumer_poll(rk, 200)
  if m ~= nil then
    print(m.err, tonumber(m.offset), ffi.string(m.payload, m.len))
    k.rd_kafka_message_destroy(m)
    seen = seen + 1
  end
end
print("close:", k.rd_kafka_consumer_close(rk))
k.rd_kafka_destroy(rk)
