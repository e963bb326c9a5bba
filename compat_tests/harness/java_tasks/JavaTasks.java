import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The scenarios' words in kafka-clients, 1.1 to 4; they are described in compat_tests/features/__init__.py. */
public final class JavaTasks {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SECONDS = 60;

    private final String bootstrap;
    private final AdminClient admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    private JavaTasks(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = AdminClient.create(Map.of("bootstrap.servers", (Object) bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        JavaTasks worker = new JavaTasks(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> answer;
            try {
                answer = Map.of("ok", worker.perform(JSON.readTree(line)));
            } catch (ExecutionException error) {
                answer = Map.of("error", error.getCause().toString());
            } catch (Exception error) {
                answer = Map.of("error", error.toString());
            }
            System.out.write(JSON.writeValueAsBytes(answer));
            System.out.println();
        }
        System.exit(0);
    }

    private Map<String, Object> perform(JsonNode task) throws Exception {
        String topic = task.path("topic").asText();
        switch (task.get("do").asText()) {
            case "cluster":
                List<String> brokers = new ArrayList<>();
                for (Node node : admin.describeCluster().nodes().get()) {
                    brokers.add(node.host() + ":" + node.port());
                }
                return Map.of("brokers", brokers);
            case "create":
                NewTopic wanted = new NewTopic(topic, task.get("count").asInt(), (short) 1);
                admin.createTopics(List.of(wanted.configs(strings(task.get("configs"))))).all().get();
                return Map.of();
            case "topics":
                return topics();
            case "delete":
                admin.deleteTopics(List.of(topic)).all().get();
                return Map.of();
            case "grow":
                admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(task.get("count").asInt()))).all().get();
                return Map.of();
            case "configs":
                return configs(topic);
            case "alter":
                Alter.set(admin, resource(topic), strings(task.get("configs")));
                return Map.of();
            case "trim":
                RecordsToDelete before = RecordsToDelete.beforeOffset(task.get("offset").asLong());
                admin.deleteRecords(Map.of(place(task), before)).all().get();
                return Map.of();
            case "produce":
                return produce(topic, task);
            case "consume":
                return consume(topic, task);
            case "offset_at":
                return offsetAt(task);
            case "commit":
                try (KafkaConsumer<byte[], byte[]> consumer = consumer(task.get("group").asText())) {
                    long offset = task.get("offset").asLong();
                    consumer.assign(List.of(place(task)));
                    consumer.commitSync(
                            Map.of(place(task), new OffsetAndMetadata(offset, task.get("note").asText())));
                }
                return Map.of();
            case "committed":
                try (KafkaConsumer<byte[], byte[]> consumer = consumer(task.get("group").asText())) {
                    OffsetAndMetadata kept = Groups.committed(admin, consumer, task.get("group").asText(), place(task));
                    return Map.of("offset", kept == null ? -1 : kept.offset());
                }
            case "groups":
                return Map.of("groups", Groups.names(admin));
            case "forget":
                Groups.forget(admin, task.get("group").asText());
                return Map.of();
            default:
                throw new IllegalArgumentException(task.get("do").asText());
        }
    }

    private Map<String, Object> topics() {
        Map<String, Integer> found = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null)) {
            consumer.listTopics().forEach((name, partitions) -> found.put(name, partitions.size()));
        }
        return Map.of("topics", found);
    }

    private Map<String, Object> configs(String topic) throws Exception {
        Map<String, String> found = new HashMap<>();
        ConfigResource resource = resource(topic);
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            found.put(entry.name(), entry.value());
        }
        return Map.of("configs", found);
    }

    private Map<String, Object> produce(String topic, JsonNode task) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(task);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : task.get("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : record.get("headers")) {
                headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
            }
            sent.add(producer.send(new ProducerRecord<>(topic, record.get("partition").asInt(),
                    record.get("timestamp").asLong(), bytes(record.get("key")), bytes(record.get("value")), headers)));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> done : sent) {
            offsets.add(done.get(SECONDS, TimeUnit.SECONDS).offset());
        }
        return Map.of("offsets", offsets);
    }

    private Map<String, Object> consume(String topic, JsonNode task) {
        List<TopicPartition> places = new ArrayList<>();
        task.get("partitions").forEach(number -> places.add(new TopicPartition(topic, number.asInt())));
        long offset = task.get("offset").asLong();
        List<Object> seen = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null)) {
            consumer.assign(places);
            if (offset < 0) {
                consumer.seekToBeginning(places);
            } else {
                places.forEach(place -> consumer.seek(place, offset));
            }
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (seen.size() < task.get("count").asInt() && System.nanoTime() < deadline) {
                Groups.poll(consumer, 500).forEach(record -> seen.add(told(record)));
            }
        }
        return Map.of("records", seen);
    }

    private Map<String, Object> offsetAt(JsonNode task) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null)) {
            OffsetAndTimestamp found = consumer
                    .offsetsForTimes(Map.of(place(task), task.get("timestamp").asLong())).get(place(task));
            return Map.of("offset", found == null ? -1 : found.offset());
        }
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode task) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", task.get("acks").asText());
        settings.put("compression.type", task.get("codec").asText());
        settings.put("enable.idempotence", task.get("idempotent").asBoolean());
        settings.put("linger.ms", 20);
        settings.put("retries", 1000);
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        return producers.computeIfAbsent(settings.toString(), key -> new KafkaProducer<>(settings));
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", false);
        settings.put("fetch.max.wait.ms", 100);
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        if (group != null) {
            settings.put("group.id", group);
        }
        return new KafkaConsumer<>(settings);
    }

    private static Map<String, Object> told(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        record.headers().forEach(header -> headers.add(List.of(header.key(), text(header.value()))));
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("partition", record.partition());
        seen.put("offset", record.offset());
        seen.put("timestamp", record.timestamp());
        seen.put("key", text(record.key()));
        seen.put("value", text(record.value()));
        seen.put("headers", headers);
        return seen;
    }

    private static TopicPartition place(JsonNode task) {
        return new TopicPartition(task.get("topic").asText(), task.get("partition").asInt());
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private static Map<String, String> strings(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        node.fields().forEachRemaining(field -> found.put(field.getKey(), field.getValue().asText()));
        return found;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }
}
