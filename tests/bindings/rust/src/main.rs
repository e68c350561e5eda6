//! A service on the crate rdkafka, linked dynamically: service SCENARIO BOOTSTRAP GROUP TOPIC N
//!
//! stream  StreamConsumer on tokio: polled without waiting by the executor, commits from another task
//! base    BaseConsumer: one thread polls, another commits
//! split   split_partition_queue: a thread for each partition beside the one that polls the consumer
//! drop    consumers dropped while their group is in the middle of a rebalance, N of them
//! silent  a context that takes the rebalance upon itself and forgets to answer when partitions are taken away; dropped
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance, StreamConsumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, ClientContext, Message, TopicPartitionList};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

struct Watch {
    assigned: Mutex<bool>,
    changed: Condvar,
}

impl ClientContext for Watch {}
impl ConsumerContext for Watch {
    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(_) = rebalance {
            *self.assigned.lock().unwrap() = true;
            self.changed.notify_all();
        }
    }
}

fn watch() -> Watch {
    Watch { assigned: Mutex::new(false), changed: Condvar::new() }
}

fn conf(bootstrap: &str, group: &str) -> ClientConfig {
    let mut c = ClientConfig::new();
    c.set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("session.timeout.ms", "3000")
        .set("heartbeat.interval.ms", "500")
        .set("partition.assignment.strategy", "cooperative-sticky");
    c
}

fn line(m: &impl Message) -> String {
    let text = String::from_utf8_lossy(m.payload().unwrap_or_default()).into_owned();
    format!("{} {} {} {}", m.topic(), m.partition(), m.offset(), text)
}

fn commit(c: &impl Consumer<Watch>) {
    match c.commit_consumer_state(CommitMode::Sync) {
        Ok(()) | Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => {}
        Err(e) => panic!("commit: {e}"),
    }
}

fn finish(c: &impl Consumer<Watch>, mut lines: Vec<String>) {
    commit(c);
    let mut done: Vec<String> = c
        .committed(Duration::from_secs(10))
        .unwrap()
        .elements()
        .iter()
        .map(|e| format!("committed: {} {:?}", e.partition(), e.offset()))
        .collect();
    lines.append(&mut done);
    println!("{}", lines.join("\n"));
}

async fn stream(conf: ClientConfig, topic: &str, wanted: usize) -> KafkaResult<()> {
    let c: Arc<StreamConsumer<Watch>> = Arc::new(conf.create_with_context(watch())?);
    c.subscribe(&[topic])?;
    let stop = Arc::new(AtomicBool::new(false));
    let (also, halt) = (c.clone(), stop.clone());
    let beside = tokio::task::spawn_blocking(move || {
        while !halt.load(Ordering::SeqCst) {
            commit(&*also);
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let mut lines = Vec::new();
    while lines.len() < wanted {
        lines.push(line(&c.recv().await?));
    }
    stop.store(true, Ordering::SeqCst);
    beside.await.unwrap();
    finish(&*c, lines);
    Ok(())
}

fn base(conf: ClientConfig, topic: &str, wanted: usize) -> KafkaResult<()> {
    let c: BaseConsumer<Watch> = conf.create_with_context(watch())?;
    c.subscribe(&[topic])?;
    let stop = AtomicBool::new(false);
    let mut lines = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                commit(&c);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        while lines.len() < wanted {
            if let Some(m) = c.poll(Duration::from_millis(200)) {
                lines.push(line(&m.unwrap()));
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    finish(&c, lines);
    Ok(())
}

fn split(conf: ClientConfig, topic: &str, wanted: usize) -> KafkaResult<()> {
    let c: Arc<BaseConsumer<Watch>> = Arc::new(conf.create_with_context(watch())?);
    c.subscribe(&[topic])?;
    let stop = AtomicBool::new(false);
    let lines = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for partition in 0..3 {
            let queue = c.split_partition_queue(topic, partition).expect("no queue");
            let (stop, lines) = (&stop, &lines);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    if let Some(m) = queue.poll(Duration::from_millis(100)) {
                        lines.lock().unwrap().push(line(&m.unwrap()));
                    }
                }
            });
        }
        while lines.lock().unwrap().len() < wanted {
            if let Some(m) = c.poll(Duration::from_millis(100)) {
                panic!("a message past its queue: {}", line(&m.unwrap()));
            }
            commit(&*c);
        }
        stop.store(true, Ordering::SeqCst);
    });
    finish(&*c, lines.into_inner().unwrap());
    Ok(())
}

fn dropped(conf: ClientConfig, topic: &str, wanted: usize) -> KafkaResult<()> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A second member that comes and goes: the first is in a rebalance most of the time.
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let other: BaseConsumer<Watch> = conf.create_with_context(watch()).unwrap();
                other.subscribe(&[topic]).unwrap();
                other.poll(Duration::from_millis(50));
            }
        });
        for i in 0..wanted {
            let c: BaseConsumer<Watch> = conf.create_with_context(watch()).unwrap();
            c.subscribe(&[topic]).unwrap();
            for _ in 0..i % 7 {
                c.poll(Duration::from_millis(20));
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    println!("dropped {wanted}");
    Ok(())
}

struct Silent(AtomicBool);

impl ClientContext for Silent {}
impl ConsumerContext for Silent {
    fn rebalance(&self, c: &BaseConsumer<Self>, what: RDKafkaRespErr, partitions: &mut TopicPartitionList) {
        if what == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            c.incremental_assign(partitions).unwrap();
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

fn silent(conf: ClientConfig, topic: &str) -> KafkaResult<()> {
    let c: BaseConsumer<Silent> = conf.create_with_context(Silent(AtomicBool::new(false)))?;
    c.subscribe(&[topic])?;
    while !c.context().0.load(Ordering::SeqCst) {
        c.poll(Duration::from_millis(100));
    }
    println!("dropping");
    drop(c);
    println!("dropped");
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (scenario, topic, wanted) = (args[1].as_str(), args[4].as_str(), args[5].parse().unwrap());
    let conf = conf(&args[2], &args[3]);
    eprintln!("librdkafka {}", rdkafka::util::get_rdkafka_version().1);
    match scenario {
        "stream" => tokio::runtime::Runtime::new().unwrap().block_on(stream(conf, topic, wanted)),
        "base" => base(conf, topic, wanted),
        "split" => split(conf, topic, wanted),
        "drop" => dropped(conf, topic, wanted),
        "silent" => silent(conf, topic),
        _ => panic!("unknown scenario"),
    }
    .unwrap();
}
