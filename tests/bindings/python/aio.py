"""A service on confluent_kafka.aio.AIOConsumer with its default pool: aio.py SCENARIO BOOTSTRAP GROUP TOPIC N

serve     consumes N messages, commits beside the poll, ends by SIGTERM
gather    on_assign gathers several calls on the consumer at once, the rebalance's own answer among them
inline    the same, and no other task uses the consumer beside the poll
beside    on_assign takes its time while another task keeps committing: with two workers one sits in the poll
outlive   tasks that a callback has started go on after it: pause, resume, position beside the polls
close     close() while poll(-1) waits in the other worker (no on_revoke: that would need a third)
"""
import asyncio
import os
import signal
import sys

import confluent_kafka
from confluent_kafka.aio import AIOConsumer

scenario, bootstrap, group, topic, wanted = sys.argv[1:5] + [int(sys.argv[5])]
print("librdkafka", confluent_kafka.libversion()[0], "client", confluent_kafka.__version__, file=sys.stderr)
lines, others, assigned = [], [], None


def no_offset(e):
    return e.args[0].code() == confluent_kafka.KafkaError._NO_OFFSET


async def commit(consumer):
    try:
        await consumer.commit(asynchronous=False)
    except confluent_kafka.KafkaException as e:
        if not no_offset(e):
            raise


async def on_assign(consumer, partitions):
    if scenario in ("gather", "inline"):
        await asyncio.gather(
            consumer.assign(partitions), consumer.committed(partitions, timeout=10), consumer.assignment()
        )
        held = await consumer.assignment()
        await asyncio.gather(consumer.pause(held), consumer.position(held))
        await consumer.resume(held)
    else:
        if scenario == "beside":
            await asyncio.sleep(0.5)
        await consumer.assign(partitions)
    if scenario == "outlive":
        others.append(asyncio.ensure_future(outlive(consumer, partitions)))
    assigned.set()


async def on_revoke(consumer, partitions):
    await commit(consumer)
    await consumer.unassign()


async def outlive(consumer, partitions):
    # seen some of each first: librdkafka forgets the position of a partition that is paused before its first fetch
    while len({line.split()[1] for line in lines}) < 3:
        await asyncio.sleep(0.01)
    for _ in range(20):
        await consumer.pause(partitions)
        await consumer.position(partitions)
        await consumer.resume(partitions)


async def committer(consumer, stop):
    while not stop.is_set():
        await commit(consumer)
        await asyncio.sleep(0.02)


async def serve(consumer, stop):
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if scenario != "inline":
        others.append(asyncio.ensure_future(committer(consumer, stop)))
    while not stop.is_set():
        m = await consumer.poll(0.2)
        if m is None or m.error():
            continue
        lines.append("%s %d %d %s" % (m.topic(), m.partition(), m.offset(), m.value().decode()))
        if len(lines) == wanted:
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait()
    await asyncio.gather(*others)
    await commit(consumer)
    mine = await consumer.assignment()
    done = sorted((p.partition, p.offset) for p in await consumer.committed(mine, timeout=10))
    await consumer.close()
    print("\n".join(lines))
    print("committed:", done)


async def close(consumer):
    async def poll():
        try:
            m = await consumer.poll(-1)
            print("poll(-1) ended:", m is None or m.error() is not None)
        except RuntimeError as e:
            print("poll(-1) raised", e)

    polling = asyncio.ensure_future(poll())
    await assigned.wait()
    await asyncio.sleep(0.3)
    await consumer.close()
    print("close returned")
    await polling


async def main():
    global assigned
    assigned, stop = asyncio.Event(), asyncio.Event()
    consumer = AIOConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    if scenario == "close":
        await consumer.subscribe([topic], on_assign=on_assign)
        await close(consumer)
    else:
        await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
        await serve(consumer, stop)


asyncio.run(main())
