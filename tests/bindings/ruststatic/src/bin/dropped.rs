//! The misuse: consumers that are dropped while another thread polls them through the raw handle, which keeps nothing
//! alive. dropped BOOTSTRAP GROUP TOPIC N
use rdkafka::bindings::{rd_kafka_consumer_poll, rd_kafka_message_destroy, rd_kafka_t};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::ClientConfig;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let wanted: usize = args[4].parse().unwrap();
    eprintln!("librdkafka {}", rdkafka::util::get_rdkafka_version().1);
    for _ in 0..wanted {
        let c: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &args[1])
            .set("group.id", &args[2])
            .set("enable.auto.commit", "false")
            .create()
            .unwrap();
        c.subscribe(&[args[3].as_str()]).unwrap();
        let raw = c.client().native_ptr() as usize;
        let dropped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !dropped.load(Ordering::SeqCst) {
                    let m = unsafe { rd_kafka_consumer_poll(raw as *mut rd_kafka_t, -1) };
                    if !m.is_null() {
                        unsafe { rd_kafka_message_destroy(m) };
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(300));
            drop(c);
            dropped.store(true, Ordering::SeqCst);
        });
    }
    println!("dropped {wanted}");
}
