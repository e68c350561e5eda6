// librdkafka++ under the gate: cppclient SCENARIO BOOTSTRAP GROUP TOPIC MESSAGES
//   consume  one thread consumes, the main thread pauses, resumes and commits
//   close    close() and delete while another thread sits in consume(-1)
#include <librdkafka/rdkafkacpp.h>
#include <atomic>
#include <chrono>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

struct Rebalance : RdKafka::RebalanceCb {
    std::atomic<bool> assigned{false};
    void rebalance_cb(RdKafka::KafkaConsumer *consumer, RdKafka::ErrorCode code,
                      std::vector<RdKafka::TopicPartition *> &partitions) override
    {
        if (code == RdKafka::ERR__ASSIGN_PARTITIONS)
            consumer->assign(partitions);
        else
            consumer->unassign();
        assigned = code == RdKafka::ERR__ASSIGN_PARTITIONS;
    }
};

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    std::string scenario = argv[1], why;
    size_t wanted = std::stoul(argv[5]);
    Rebalance rebalance;
    RdKafka::Conf *conf = RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL);
    conf->set("bootstrap.servers", argv[2], why);
    conf->set("group.id", argv[3], why);
    conf->set("auto.offset.reset", "earliest", why);
    conf->set("enable.auto.commit", "false", why);
    conf->set("fetch.wait.max.ms", "10", why);
    conf->set("rebalance_cb", &rebalance, why);
    RdKafka::KafkaConsumer *consumer = RdKafka::KafkaConsumer::create(conf, why);
    delete conf;
    if (!consumer) {
        std::cerr << why << "\n";
        return 1;
    }
    consumer->subscribe({argv[4]});

    std::set<std::string> seen;
    std::set<int> partitions;
    int doubled = 0;
    std::atomic<bool> done{false}, busy{false};
    std::thread poller([&] {
        if (scenario == "close") {
            RdKafka::Message *m = consumer->consume(-1);
            std::cout << "consume(-1) returned " << RdKafka::err2str(m->err()) << std::endl;
            delete m;
            done = true;
            return;
        }
        while (seen.size() < wanted) {
            RdKafka::Message *m = consumer->consume(100);
            if (!m->err()) {
                doubled += !seen.insert(m->topic_name() + " " + std::to_string(m->partition()) + " " +
                                        std::to_string(m->offset()) + " " +
                                        std::string(static_cast<const char *>(m->payload()), m->len()))
                                .second;
                partitions.insert(m->partition());
                busy = partitions.size() == 3; // why: client.py
                std::this_thread::sleep_for(1ms);
            } else if (m->err() != RdKafka::ERR__TIMED_OUT)
                std::cout << m->errstr() << std::endl;
            delete m;
        }
        done = true;
    });
    while (!rebalance.assigned)
        std::this_thread::sleep_for(10ms);
    if (scenario == "close") {
        std::this_thread::sleep_for(300ms);
        RdKafka::ErrorCode closed = consumer->close();
        delete consumer;
        poller.join();
        std::cout << "close: " << RdKafka::err2str(closed) << std::endl;
        std::cout << "closed" << std::endl;
        return 0;
    }
    while (!busy)
        std::this_thread::sleep_for(1ms);
    for (int i = 0; !done || i < 50; i++) {
        std::vector<RdKafka::TopicPartition *> mine;
        consumer->assignment(mine);
        consumer->pause(mine);
        consumer->resume(mine);
        if (i % 3 == 0)
            consumer->commitAsync();
        RdKafka::TopicPartition::destroy(mine);
        std::this_thread::sleep_for(20ms);
    }
    poller.join();
    std::cout << "close: " << RdKafka::err2str(consumer->close()) << std::endl;
    delete consumer;
    for (const std::string &line : seen)
        std::cout << line << "\n";
    std::cerr << "doubled: " << doubled << "\n";
    return 0;
}
