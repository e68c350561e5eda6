// A service on node-rdkafka, or on the same interface of @confluentinc/kafka-javascript, as PACKAGE says:
// node service.js SCENARIO BOOTSTRAP GROUP TOPIC N
//
// flowing  messages come as events; the rebalance callback waits before it answers, and answers from the main thread
//          what a thread of the pool has asked; commits and pauses beside the consume; SIGTERM, which comes after N
//          messages, disconnects with the assignment held
// batch    the same, a batch asked for each time
// silent   flowing, and the rebalance callback forgets to answer when partitions are taken away
'use strict';
const { KafkaConsumer, librdkafkaVersion } = require(process.env.PACKAGE);

const [scenario, bootstrap, group, topic, wanted] = process.argv.slice(2);
const lines = [];
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let stopping = false;

const consumer = new KafkaConsumer(
  {
    'metadata.broker.list': bootstrap,
    'group.id': group,
    'enable.auto.commit': false,
    rebalance_cb: async (err, partitions) => {
      await later(50);
      if (err.code === -175) {
        consumer.assign(partitions);
      } else if (scenario !== 'silent') {
        console.error('gives', partitions.length);
        consumer.unassign();
      }
    },
  },
  { 'auto.offset.reset': 'earliest' }
);

function take(m) {
  lines.push(`${m.topic} ${m.partition} ${m.offset} ${m.value}`);
  if (lines.length % 50 === 0) consumer.commit();
  if (lines.length === Number(wanted)) process.kill(process.pid, 'SIGTERM');
}

function batches() {
  if (stopping) return;
  consumer.consume(100, (err, messages) => {
    if (!err) messages.forEach(take);
    setImmediate(batches);
  });
}

function finish() {
  const mine = consumer.assignments();
  consumer.pause(mine);
  consumer.resume(mine);
  try {
    consumer.commitSync(null);
  } catch (e) {
    if (e.code !== -168) throw e; // nothing left to commit
  }
  consumer.committed(mine, 10000, (err, done) => {
    if (err) throw err;
    const offsets = done.map((p) => `committed: ${p.partition} ${p.offset}`).sort();
    consumer.disconnect((failed) => {
      if (failed) throw failed;
      console.log(lines.concat(offsets).join('\n'));
      console.log('disconnected');
      process.exit(0);
    });
  });
}

process.on('SIGTERM', () => {
  if (!stopping) finish();
  stopping = true;
});
consumer.on('event.error', (err) => console.error(err.message));
if (scenario !== 'batch') consumer.on('data', take);
consumer.on('ready', () => {
  console.error('librdkafka', librdkafkaVersion);
  consumer.subscribe([topic]);
  if (scenario === 'batch') batches();
  else consumer.consume();
});
consumer.connect();
