"""A service on confluent_kafka.Consumer that shares it between threads: service.py SCENARIO BOOTSTRAP GROUP TOPIC N

serve   the main thread polls; two workers take messages from a queue and store offsets; a third thread commits;
        the poller pauses what it cannot queue and resumes it. SIGTERM, which comes after N messages, ends it:
        workers, then close, then out. Prints each message and what has been committed.
close   the misuse: a signal handler's thread closes the consumer while the main thread sits in poll(-1)
churn   the misuse: consumers that are polled by a thread and closed by another, N of them
gates   not a test: measures how long a commit and a close wait behind poll(1.0) of another thread
"""
import os
import queue
import signal
import sys
import threading
import time

import confluent_kafka

scenario, bootstrap, group, topic, wanted = sys.argv[1:5] + [int(sys.argv[5])]
stopping = threading.Event()


def new(**more):
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            **more,
        }
    )


def show():
    print("librdkafka", confluent_kafka.libversion()[0], "client", confluent_kafka.__version__, file=sys.stderr)


def serve():
    consumer, work, lines, lock = new(), queue.Queue(maxsize=50), [], threading.Lock()

    def on_revoke(c, partitions):
        try:
            c.commit(asynchronous=False)
        except confluent_kafka.KafkaException as e:
            if e.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET:
                raise

    def worker():
        while True:
            m = work.get()
            if m is None:
                return
            with lock:
                lines.append("%s %d %d %s" % (m.topic(), m.partition(), m.offset(), m.value().decode()))
            consumer.store_offsets(m)
            if len(lines) == wanted:
                os.kill(os.getpid(), signal.SIGTERM)

    def committer():
        while not stopping.wait(0.05):
            try:
                consumer.commit(asynchronous=False)
            except confluent_kafka.KafkaException as e:
                if e.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET:
                    raise

    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    consumer.subscribe([topic], on_revoke=on_revoke)
    threads = [threading.Thread(target=t) for t in (worker, worker, committer)]
    for t in threads:
        t.start()
    while not stopping.is_set():
        m = consumer.poll(0.2)
        if m is None or m.error():
            continue
        try:
            work.put_nowait(m)
        except queue.Full:
            held = consumer.assignment()
            consumer.pause(held)
            work.put(m)
            consumer.resume(held)
    for t in threads:
        work.put(None)
    for t in threads:
        t.join()
    mine = consumer.assignment()
    # Two workers store in whatever order: what is committed is the service's own affair, as long as it is all read.
    consumer.commit(
        offsets=[confluent_kafka.TopicPartition(p.topic, p.partition, consumer.position([p])[0].offset) for p in mine],
        asynchronous=False,
    )
    done = sorted((p.partition, p.offset) for p in consumer.committed(mine, timeout=10))
    consumer.close()
    print("\n".join(lines))
    print("committed:", done)


def close():
    consumer, assigned, result = new(), threading.Event(), []
    consumer.subscribe([topic], on_assign=lambda c, p: (c.assign(p), assigned.set()))

    def closer():
        assigned.wait()
        time.sleep(0.3)
        consumer.close()
        result.append("close returned")

    t = threading.Thread(target=closer, daemon=True)
    t.start()
    try:
        print("poll(-1) returned", consumer.poll(-1))
    except RuntimeError as e:
        print("poll(-1) raised", e)
    t.join()
    print("\n".join(result))


def churn():
    """Every poller is somewhere else when its close comes."""
    for i in range(wanted):
        consumer = new()
        consumer.subscribe([topic])

        def poller():
            try:
                while True:
                    consumer.poll(0.05)
            except RuntimeError as e:
                if "closed" not in str(e).lower():
                    raise

        t = threading.Thread(target=poller)
        t.start()
        time.sleep(0.02 + 0.003 * (i % 17))
        consumer.close()
        t.join()
    print("churned", wanted)


def gates():
    consumer, assigned = new(), threading.Event()
    consumer.subscribe([topic], on_assign=lambda c, p: (c.assign(p), assigned.set()))
    polling = threading.Event()

    def poller():
        try:
            while True:
                polling.set()
                consumer.poll(1.0)
                time.sleep(0.005)  # work, without which nobody comes past the client's own gate, 2.16
        except RuntimeError:
            pass

    t = threading.Thread(target=poller)
    t.start()
    assigned.wait()
    time.sleep(1.5)
    waits = []
    mine = [confluent_kafka.TopicPartition(topic, 0, 1)]
    for i in range(wanted):
        polling.clear()
        polling.wait()
        time.sleep(0.1)  # the poll sits in librdkafka by now; this is what is measured, not waited for
        begin = time.perf_counter()
        consumer.commit(offsets=mine, asynchronous=False)
        waits.append(time.perf_counter() - begin)
    polling.clear()
    polling.wait()
    time.sleep(0.1)
    begin = time.perf_counter()
    consumer.close()
    waits.sort()
    print("commit median %.1f ms, longest %.1f ms" % (waits[len(waits) // 2] * 1e3, waits[-1] * 1e3))
    print("close %.1f ms" % ((time.perf_counter() - begin) * 1e3))
    t.join()


show()
{"serve": serve, "close": close, "churn": churn, "gates": gates}[scenario]()
