// A service on the promises of @confluentinc/kafka-javascript: node promised.js SCENARIO BOOTSTRAP GROUP TOPIC N
//
// message  eachMessage, with the rebalance callback that awaits before it lets the answer go; SIGTERM, which comes after
//          N messages, disconnects with the assignment held
// batch    the same with eachBatch, and partitions in parallel
'use strict';
const { Kafka, logLevel } = require('@confluentinc/kafka-javascript').KafkaJS;

const [scenario, bootstrap, group, topic, wanted] = process.argv.slice(2);
const lines = [];

async function main() {
  const kafka = new Kafka({ kafkaJS: { brokers: [bootstrap], logLevel: logLevel.ERROR } });
  const consumer = kafka.consumer({
    kafkaJS: { groupId: group, fromBeginning: true, autoCommit: true, autoCommitInterval: 50 },
    rebalance_cb: async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
    },
  });
  const ended = new Promise((resolve) => process.on('SIGTERM', resolve));
  const take = (partition, message) => {
    lines.push(`${topic} ${partition} ${message.offset} ${message.value}`);
    if (lines.length === Number(wanted)) process.kill(process.pid, 'SIGTERM');
  };
  await consumer.connect();
  await consumer.subscribe({ topics: [topic] });
  await consumer.run(
    scenario === 'message'
      ? { eachMessage: async ({ partition, message }) => take(partition, message) }
      : {
          partitionsConsumedConcurrently: 3,
          eachBatch: async ({ batch }) => batch.messages.forEach((m) => take(batch.partition, m)),
        }
  );
  await ended;
  await consumer.disconnect();
  console.log(lines.join('\n'));
  console.log('disconnected');
  process.exit(0);
}

main();
