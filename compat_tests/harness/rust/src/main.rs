//! The scenarios' words in rskafka; they are described in compat_tests/features/__init__.py.
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use base64::{engine::general_purpose::STANDARD, Engine};
use chrono::{DateTime, TimeZone, Utc};
use rskafka::BackoffConfig;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record, RecordAndOffset};
use serde_json::{json, Map, Value};

const SECONDS: u64 = 60;
const MAX_BYTES: i32 = 50_000_000;

type Answer = Result<Value, Box<dyn std::error::Error>>;

fn unpacked(text: &Value) -> Option<Vec<u8>> {
    text.as_str().map(|text| STANDARD.decode(text).expect("base64"))
}

fn packed(data: &Option<Vec<u8>>) -> Value {
    data.as_ref().map_or(Value::Null, |data| STANDARD.encode(data).into())
}

fn name_of(task: &Value) -> &str {
    task["topic"].as_str().expect("a topic")
}

fn time_of(milliseconds: &Value) -> DateTime<Utc> {
    Utc.timestamp_millis_opt(milliseconds.as_i64().expect("a time")).unwrap()
}

fn list(of: &Value) -> &Vec<Value> {
    of.as_array().expect("a list")
}

fn record_of(told: &Value) -> Record {
    let headers = list(&told["headers"]).iter().map(|header| {
        (header[0].as_str().expect("a name").to_owned(), unpacked(&header[1]).unwrap_or_default())
    });
    Record {
        key: unpacked(&told["key"]),
        value: unpacked(&told["value"]),
        headers: headers.collect(),
        timestamp: time_of(&told["timestamp"]),
    }
}

fn told(partition: i32, RecordAndOffset { record, offset }: RecordAndOffset) -> Value {
    let headers: Vec<Value> =
        record.headers.into_iter().map(|(name, value)| json!([name, packed(&Some(value))])).collect();
    json!({
        "partition": partition,
        "offset": offset,
        "timestamp": record.timestamp.timestamp_millis(),
        "key": packed(&record.key),
        "value": packed(&record.value),
        "headers": headers,
    })
}

fn compression(codec: &Value) -> Compression {
    match codec.as_str() {
        Some("gzip") => Compression::Gzip,
        Some("snappy") => Compression::Snappy,
        Some("lz4") => Compression::Lz4,
        Some("zstd") => Compression::Zstd,
        _ => Compression::NoCompression,
    }
}

/// Owns the client, and one more of each partition it has met.
struct Worker {
    client: Client,
    partitions: HashMap<(String, i32), PartitionClient>,
}

impl Worker {
    async fn new(bootstrap: String) -> Result<Self, Box<dyn std::error::Error>> {
        let patience = BackoffConfig { deadline: Some(Duration::from_secs(SECONDS)), ..Default::default() };
        let client = ClientBuilder::new(vec![bootstrap]).backoff_config(patience).build().await?;
        Ok(Self { client, partitions: HashMap::new() })
    }

    async fn done(&mut self, task: &Value) -> Answer {
        match task["do"].as_str().unwrap_or_default() {
            "create" => self.create(task).await,
            "topics" => self.topics().await,
            "delete" => {
                let timeout = SECONDS as i32 * 1000;
                self.client.controller_client()?.delete_topic(name_of(task), timeout).await?;
                Ok(json!({}))
            }
            "trim" => {
                let offset = task["offset"].as_i64().expect("an offset");
                self.partition(task).await?.delete_records(offset, SECONDS as i32 * 1000).await?;
                Ok(json!({}))
            }
            "produce" => self.produce(task).await,
            "consume" => self.consume(task).await,
            "offset_at" => {
                let at = OffsetAt::Timestamp(time_of(&task["timestamp"]));
                Ok(json!({"offset": self.partition(task).await?.get_offset(at).await?}))
            }
            word => Err(format!("rskafka cannot {word}").into()),
        }
    }

    async fn partition(&mut self, task: &Value) -> Result<&PartitionClient, rskafka::client::error::Error> {
        self.place(name_of(task), task["partition"].as_i64().expect("a partition") as i32).await
    }

    async fn place(&mut self, topic: &str, n: i32) -> Result<&PartitionClient, rskafka::client::error::Error> {
        let key = (topic.to_owned(), n);
        if !self.partitions.contains_key(&key) {
            let made = self.client.partition_client(topic, n, UnknownTopicHandling::Error).await?;
            self.partitions.insert(key.clone(), made);
        }
        Ok(&self.partitions[&key])
    }

    async fn create(&mut self, task: &Value) -> Answer {
        let count = task["count"].as_i64().expect("a count") as i32;
        let controller = self.client.controller_client()?;
        controller.create_topic(name_of(task), count, 1, SECONDS as i32 * 1000).await?;
        Ok(json!({}))
    }

    async fn topics(&mut self) -> Answer {
        let found = self.client.list_topics().await?;
        let counts = found.into_iter().map(|topic| (topic.name, topic.partitions.len().into()));
        Ok(json!({"topics": counts.collect::<Map<String, Value>>()}))
    }

    async fn produce(&mut self, task: &Value) -> Answer {
        let records = list(&task["records"]);
        let mut batches: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (n, record) in records.iter().enumerate() {
            let partition = record["partition"].as_i64().expect("a partition") as i32;
            batches.entry(partition).or_default().push(n);
        }
        let mut offsets = vec![-1; records.len()];
        for (partition, numbers) in batches {
            let batch = numbers.iter().map(|n| record_of(&records[*n])).collect();
            let place = self.place(name_of(task), partition).await?;
            for (n, offset) in numbers.iter().zip(place.produce(batch, compression(&task["codec"])).await?) {
                offsets[*n] = offset;
            }
        }
        Ok(json!({"offsets": offsets}))
    }

    /// It has no consumer of several partitions: each is read in turn, from where it is told to.
    async fn consume(&mut self, task: &Value) -> Answer {
        let (count, start) = (task["count"].as_u64().expect("a count") as usize, task["offset"].as_i64());
        let until = Instant::now() + Duration::from_secs(SECONDS);
        let mut next: BTreeMap<i32, i64> = BTreeMap::new();
        for partition in list(&task["partitions"]) {
            let n = partition.as_i64().expect("a partition") as i32;
            let from = match start {
                Some(offset) if offset >= 0 => offset,
                _ => self.place(name_of(task), n).await?.get_offset(OffsetAt::Earliest).await?,
            };
            next.insert(n, from);
        }
        let mut records = Vec::new();
        while records.len() < count && Instant::now() < until {
            for (&n, offset) in &mut next {
                let place = self.place(name_of(task), n).await?;
                for each in place.fetch_records(*offset, 1..MAX_BYTES, 10).await?.0 {
                    *offset = each.offset + 1;
                    records.push(told(n, each));
                }
            }
        }
        records.truncate(count);
        Ok(json!({"records": records}))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bootstrap = std::env::args().nth(1).expect("where the broker is");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut worker = runtime.block_on(Worker::new(bootstrap))?;
    for line in std::io::stdin().lock().lines() {
        let answer = match runtime.block_on(worker.done(&serde_json::from_str(&line?)?)) {
            Ok(done) => json!({"ok": done}),
            Err(error) => json!({"error": error.to_string()}),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
