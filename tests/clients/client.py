"""Debian's confluent_kafka under the gate: client.py SCENARIO BOOTSTRAP GROUP TOPIC MESSAGES

consume  one thread polls, the main thread pauses, resumes and commits, and closes when the other is done
         (it waits for a message of every partition first: librdkafka 2.0.2 forgets where it was, half a second
         later, when a partition is paused while its first offset is being asked for)
stats    the same with stats_cb every 50 ms, which needs the interpreter lock that pause() does not release
close    close() while another thread sits in poll(-1)
"""
import sys
import threading
import time

import confluent_kafka

scenario, bootstrap, group, topic, wanted = sys.argv[1:5] + [int(sys.argv[5])]
stats, commits, assigned = [], [], threading.Event()
conf = {
    "bootstrap.servers": bootstrap,
    "group.id": group,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.wait.max.ms": 10,
    "on_commit": lambda err, partitions: commits.append(err),
}
if scenario == "stats":
    conf["statistics.interval.ms"] = 50
    conf["stats_cb"] = stats.append
consumer = confluent_kafka.Consumer(conf)
consumer.subscribe([topic], on_assign=lambda c, partitions: (c.assign(partitions), assigned.set()))
seen, doubled, busy = set(), [], threading.Event()


def take(m):
    if m.error():
        sys.exit("error: %s" % m.error())
    text = "%s %d %d %s" % (m.topic(), m.partition(), m.offset(), m.value().decode())
    if text in seen:
        doubled.append(text)
    seen.add(text)
    if len({t.split()[1] for t in seen}) == 3:
        busy.set()


def poll_until_all():
    while len(seen) < wanted:
        m = consumer.poll(0.1)
        if m is not None:
            take(m)
            time.sleep(0.001)


def poll_for_ever():
    m = consumer.poll(-1)
    print("poll(-1) returned", m)


if scenario == "close":
    poller = threading.Thread(target=poll_for_ever, daemon=True)
    poller.start()
    assigned.wait()
    time.sleep(0.3)
    consumer.close()
    poller.join()
    try:
        consumer.poll(0)
    except RuntimeError as e:
        print("afterwards:", e)
    print("closed")
    sys.exit(0)

poller = threading.Thread(target=poll_until_all, daemon=True)
poller.start()
busy.wait()
rounds = 0
until = time.time() + 1.0
while poller.is_alive() or time.time() < until:
    mine = consumer.assignment()
    consumer.pause(mine)
    consumer.resume(mine)
    if rounds % 3 == 0:
        try:
            consumer.commit(asynchronous=rounds % 2 == 0)
        except confluent_kafka.KafkaException as e:
            if e.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET:
                raise
    rounds += 1
    time.sleep(0.02)
    if not poller.is_alive():
        m = consumer.poll(0)
        if m is not None:
            take(m)
ends = [confluent_kafka.TopicPartition(p.topic, p.partition, consumer.get_watermark_offsets(p)[1]) for p in mine]
consumer.commit(offsets=ends, asynchronous=False)
committed = sorted((p.partition, p.offset) for p in consumer.committed(mine, timeout=10))
consumer.close()
print("\n".join(sorted(seen)))
print("doubled:", len(doubled), doubled[:5], file=sys.stderr)
print("committed:", committed)
print("commit failed:", [str(e) for e in commits if e and e.code() != confluent_kafka.KafkaError._NO_OFFSET])
print("stats:", len(stats) > 3, "rounds:", rounds > 10)
