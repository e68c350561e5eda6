// A service in Java that calls librdkafka through JNA: java Service SCENARIO BOOTSTRAP GROUP TOPIC N LIBRARY
//
// serve  the main thread polls and stores offsets, another commits; the rebalance callback comes back into the virtual
//        machine. SIGTERM's part is played by the N-th message. Prints each message and what has been committed.
// close  the misuse: a thread closes the consumer while the main thread sits in a poll without limit
import com.sun.jna.Callback;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.ptr.PointerByReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;

public class Service {
    @Structure.FieldOrder({"err", "rkt", "partition", "payload", "len", "key", "keyLen", "offset", "priv"})
    public static class Message extends Structure {
        public int err;
        public Pointer rkt;
        public int partition;
        public Pointer payload;
        public long len;
        public Pointer key;
        public long keyLen;
        public long offset;
        public Pointer priv;

        public Message(Pointer p) {
            super(p);
            read();
        }
    }

    public interface Rebalance extends Callback {
        void invoke(Pointer rk, int err, Pointer partitions, Pointer opaque);
    }

    public interface Kafka extends Library {
        String rd_kafka_version_str();
        Pointer rd_kafka_conf_new();
        int rd_kafka_conf_set(Pointer conf, String name, String value, byte[] why, long size);
        void rd_kafka_conf_set_rebalance_cb(Pointer conf, Rebalance callback);
        Pointer rd_kafka_new(int type, Pointer conf, byte[] why, long size);
        int rd_kafka_poll_set_consumer(Pointer rk);
        Pointer rd_kafka_topic_partition_list_new(int size);
        Pointer rd_kafka_topic_partition_list_add(Pointer list, String topic, int partition);
        Pointer rd_kafka_topic_partition_list_find(Pointer list, String topic, int partition);
        void rd_kafka_topic_partition_list_destroy(Pointer list);
        int rd_kafka_subscribe(Pointer rk, Pointer topics);
        int rd_kafka_assign(Pointer rk, Pointer partitions);
        Pointer rd_kafka_consumer_poll(Pointer rk, int ms);
        String rd_kafka_topic_name(Pointer rkt);
        int rd_kafka_offset_store(Pointer rkt, int partition, long offset);
        void rd_kafka_message_destroy(Pointer m);
        int rd_kafka_commit(Pointer rk, Pointer offsets, int async);
        int rd_kafka_committed(Pointer rk, Pointer partitions, int ms);
        int rd_kafka_consumer_close(Pointer rk);
        void rd_kafka_destroy(Pointer rk);
    }

    static final int NO_OFFSET = -168, ASSIGN = -175;
    static Kafka kafka;
    static volatile boolean stop;
    static final CountDownLatch assigned = new CountDownLatch(1);
    static final Rebalance rebalance = (rk, err, partitions, opaque) -> {
        check("assign", kafka.rd_kafka_assign(rk, err == ASSIGN ? partitions : null));
        assigned.countDown();
    };

    static void check(String what, int err) {
        if (err != 0 && err != NO_OFFSET) {
            System.err.println(what + ": " + err);
            System.exit(1);
        }
    }

    static void serve(Pointer rk, String topic, int wanted) throws Exception {
        List<String> lines = new ArrayList<>();
        Thread committer = new Thread(() -> {
            while (!stop) {
                check("commit", kafka.rd_kafka_commit(rk, null, 0));
                try {
                    Thread.sleep(10);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        committer.start();
        while (lines.size() < wanted) {
            Pointer p = kafka.rd_kafka_consumer_poll(rk, 200);
            if (p == null)
                continue;
            Message m = new Message(p);
            check("message", m.err);
            lines.add(kafka.rd_kafka_topic_name(m.rkt) + " " + m.partition + " " + m.offset + " "
                + new String(m.payload.getByteArray(0, (int) m.len)));
            check("store", kafka.rd_kafka_offset_store(m.rkt, m.partition, m.offset));
            kafka.rd_kafka_message_destroy(p);
        }
        stop = true;
        committer.join();
        check("commit", kafka.rd_kafka_commit(rk, null, 0));
        Pointer list = kafka.rd_kafka_topic_partition_list_new(3);
        for (int i = 0; i < 3; i++)
            kafka.rd_kafka_topic_partition_list_add(list, topic, i);
        check("committed", kafka.rd_kafka_committed(rk, list, 10000));
        for (int i = 0; i < 3; i++) // topic, partition, offset
            lines.add("committed: " + i + " "
                + kafka.rd_kafka_topic_partition_list_find(list, topic, i).getLong(16));
        kafka.rd_kafka_topic_partition_list_destroy(list);
        check("close", kafka.rd_kafka_consumer_close(rk));
        kafka.rd_kafka_destroy(rk);
        Collections.sort(lines);
        System.out.println(String.join("\n", lines));
    }

    static void close(Pointer rk) throws Exception {
        Thread closer = new Thread(() -> {
            try {
                assigned.await();
                Thread.sleep(300);
            } catch (InterruptedException e) {
                return;
            }
            check("close", kafka.rd_kafka_consumer_close(rk));
            stop = true;
        });
        closer.start();
        System.out.println("the poll returned " + kafka.rd_kafka_consumer_poll(rk, -1));
        closer.join();
        kafka.rd_kafka_destroy(rk);
        System.out.println("closed");
    }

    public static void main(String[] args) throws Exception {
        kafka = Native.load(args[5], Kafka.class);
        System.err.println("librdkafka " + kafka.rd_kafka_version_str());
        byte[] why = new byte[512];
        Pointer conf = kafka.rd_kafka_conf_new();
        String[][] set = {{"bootstrap.servers", args[1]}, {"group.id", args[2]}, {"auto.offset.reset", "earliest"},
            {"enable.auto.commit", "false"}, {"enable.auto.offset.store", "false"}};
        for (String[] s : set)
            check(s[0], kafka.rd_kafka_conf_set(conf, s[0], s[1], why, why.length));
        kafka.rd_kafka_conf_set_rebalance_cb(conf, rebalance);
        Pointer rk = kafka.rd_kafka_new(1, conf, why, why.length);
        kafka.rd_kafka_poll_set_consumer(rk);
        Pointer topics = kafka.rd_kafka_topic_partition_list_new(1);
        kafka.rd_kafka_topic_partition_list_add(topics, args[3], -1);
        check("subscribe", kafka.rd_kafka_subscribe(rk, topics));
        kafka.rd_kafka_topic_partition_list_destroy(topics);
        if (args[0].equals("serve"))
            serve(rk, args[3], Integer.parseInt(args[4]));
        else
            close(rk);
    }
}
