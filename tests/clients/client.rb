# Binds librdkafka as rdkafka-ruby does: opened by path, `blocking: true` (interpreter lock released) on the
# calls that wait, and not on destroy, the queue functions, rebalance_protocol and the _nb twins.
#
#   client.rb SCENARIO LIBRARY BOOTSTRAP GROUP TOPIC MESSAGES
#
#   consume  one thread polls with rebalance and stats callbacks, the main thread pauses, resumes, commits
#   close    consumer_close while another thread sits in consumer_poll(-1)
require "ffi"
$stdout.sync = true

SCENARIO, LIBRARY, BOOTSTRAP, GROUP, TOPIC, wanted = ARGV
WANTED = wanted.to_i

module Kafka
  extend FFI::Library
  ffi_lib File.realpath(LIBRARY)

  class Message < FFI::Struct
    layout :err, :int, :rkt, :pointer, :partition, :int32, :payload, :pointer, :len, :size_t,
           :key, :pointer, :key_len, :size_t, :offset, :int64, :private, :pointer
  end

  callback :rebalance_cb, [:pointer, :int, :pointer, :pointer], :void
  callback :stats_cb, [:pointer, :pointer, :size_t, :pointer], :int

  attach_function :rd_kafka_conf_new, [], :pointer
  attach_function :rd_kafka_conf_set, [:pointer, :string, :string, :pointer, :size_t], :int
  attach_function :rd_kafka_conf_set_rebalance_cb, [:pointer, :rebalance_cb], :void
  attach_function :rd_kafka_conf_set_stats_cb, [:pointer, :stats_cb], :void
  attach_function :rd_kafka_new, [:int, :pointer, :pointer, :size_t], :pointer
  attach_function :rd_kafka_destroy, [:pointer], :void
  attach_function :rd_kafka_poll_set_consumer, [:pointer], :int
  attach_function :rd_kafka_queue_get_consumer, [:pointer], :pointer
  attach_function :rd_kafka_queue_destroy, [:pointer], :void
  attach_function :rd_kafka_rebalance_protocol, [:pointer], :string
  attach_function :rd_kafka_message_destroy, [:pointer], :void
  attach_function :rd_kafka_topic_name, [:pointer], :string
  attach_function :rd_kafka_topic_partition_list_new, [:int32], :pointer
  attach_function :rd_kafka_topic_partition_list_add, [:pointer, :string, :int32], :pointer
  attach_function :rd_kafka_topic_partition_list_destroy, [:pointer], :void

  attach_function :rd_kafka_poll, [:pointer, :int], :int, blocking: true
  attach_function :rd_kafka_consumer_poll, [:pointer, :int], :pointer, blocking: true
  attach_function :rd_kafka_consumer_poll_nb, :rd_kafka_consumer_poll, [:pointer, :int], :pointer
  attach_function :rd_kafka_subscribe, [:pointer, :pointer], :int, blocking: true
  attach_function :rd_kafka_assign, [:pointer, :pointer], :int, blocking: true
  attach_function :rd_kafka_assignment, [:pointer, :pointer], :int, blocking: true
  attach_function :rd_kafka_pause_partitions, [:pointer, :pointer], :int, blocking: true
  attach_function :rd_kafka_resume_partitions, [:pointer, :pointer], :int, blocking: true
  attach_function :rd_kafka_commit, [:pointer, :pointer, :bool], :int, blocking: true
  attach_function :rd_kafka_consumer_close, [:pointer], :int, blocking: true
end

ASSIGN = -175
assigned = Queue.new
stats = 0
rebalance = FFI::Function.new(:void, [:pointer, :int, :pointer, :pointer]) do |rk, code, partitions, _|
  Kafka.rd_kafka_assign(rk, code == ASSIGN ? partitions : nil)
  puts(code == ASSIGN ? "assigned" : "revoked")
  assigned << true if code == ASSIGN
end
on_stats = FFI::Function.new(:int, [:pointer, :pointer, :size_t, :pointer]) { stats += 1; 0 }

conf = Kafka.rd_kafka_conf_new
why = FFI::MemoryPointer.new(:char, 256)
{ "bootstrap.servers" => BOOTSTRAP, "group.id" => GROUP, "auto.offset.reset" => "earliest",
  "enable.auto.commit" => "false",
  "fetch.wait.max.ms" => "10",
  "statistics.interval.ms" => SCENARIO == "close" ? "0" : "50" }.each do |key, value|
  Kafka.rd_kafka_conf_set(conf, key, value, why, 256).zero? or abort why.read_string
end
Kafka.rd_kafka_conf_set_rebalance_cb(conf, rebalance)
Kafka.rd_kafka_conf_set_stats_cb(conf, on_stats)
RK = Kafka.rd_kafka_new(1, conf, why, 256)
abort why.read_string if RK.null?
Kafka.rd_kafka_poll_set_consumer(RK)
Kafka.rd_kafka_poll(RK, 0)
queue = Kafka.rd_kafka_queue_get_consumer(RK)
topics = Kafka.rd_kafka_topic_partition_list_new(1)
Kafka.rd_kafka_topic_partition_list_add(topics, TOPIC, -1)
Kafka.rd_kafka_subscribe(RK, topics)
Kafka.rd_kafka_topic_partition_list_destroy(topics)

seen = {}
doubled = 0
take = lambda do |pointer|
  message = Kafka::Message.new(pointer)
  abort "error #{message[:err]}" unless message[:err].zero?
  text = format("%s %d %d %s", Kafka.rd_kafka_topic_name(message[:rkt]), message[:partition], message[:offset],
                message[:payload].read_string(message[:len]))
  doubled += 1 if seen.key?(text)
  seen[text] = message[:partition]
  Kafka.rd_kafka_message_destroy(pointer)
end

if SCENARIO == "close"
  poller = Thread.new do
    nil while (pointer = Kafka.rd_kafka_consumer_poll(RK, -1)) && !pointer.null?
    puts "poll(-1) returned"
  end
  assigned.pop
  sleep 0.3
  puts "close: #{Kafka.rd_kafka_consumer_close(RK)}"
  Kafka.rd_kafka_queue_destroy(queue)
  Kafka.rd_kafka_destroy(RK)
  poller.join
  puts "closed"
  exit
end

poller = Thread.new do
  while seen.size < WANTED
    pointer = Kafka.rd_kafka_consumer_poll(RK, 250)
    take.call(pointer) unless pointer.null?
    sleep 0.001
  end
end
sleep 0.001 until seen.values.uniq.size == 3 # why: client.py
rounds = 0
enough = Time.now + 1
while poller.alive? || Time.now < enough
  out = FFI::MemoryPointer.new(:pointer)
  Kafka.rd_kafka_assignment(RK, out)
  Kafka.rd_kafka_pause_partitions(RK, out.read_pointer)
  Kafka.rd_kafka_resume_partitions(RK, out.read_pointer)
  Kafka.rd_kafka_topic_partition_list_destroy(out.read_pointer)
  Kafka.rd_kafka_rebalance_protocol(RK) # holds the interpreter lock that on_stats waits for
  Kafka.rd_kafka_commit(RK, nil, true) if (rounds += 1) % 3 == 0
  pointer = Kafka.rd_kafka_consumer_poll_nb(RK, 0)
  take.call(pointer) unless pointer.null?
  sleep 0.02
end
puts "close: #{Kafka.rd_kafka_consumer_close(RK)}"
Kafka.rd_kafka_queue_destroy(queue)
Kafka.rd_kafka_destroy(RK)
puts seen.keys.sort
warn "doubled: #{doubled}"
puts "stats: #{stats > 3} rounds: #{rounds > 10}"
