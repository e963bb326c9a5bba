import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Since 0.9 there is the consumer of today. */
final class Reading {
    private static final long SECONDS = 60;

    static Map<String, Object> consume(String bootstrap, JsonNode task) {
        List<TopicPartition> places = new ArrayList<>();
        String topic = task.get("topic").asText();
        task.get("partitions").forEach(number -> places.add(new TopicPartition(topic, number.asInt())));
        long offset = task.get("offset").asLong();
        List<Object> seen = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, null)) {
            consumer.assign(places);
            if (offset >= 0) {
                places.forEach(place -> consumer.seek(place, offset));
            }
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (seen.size() < task.get("count").asInt() && System.nanoTime() < deadline) {
                consumer.poll(500).forEach(record -> seen.add(told(record)));
            }
        }
        return Map.of("records", seen);
    }

    static void commit(String bootstrap, JsonNode task) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, task.get("group").asText())) {
            consumer.assign(List.of(place(task)));
            consumer.commitSync(Map.of(
                    place(task), new OffsetAndMetadata(task.get("offset").asLong(), task.get("note").asText())));
        }
    }

    static long committed(String bootstrap, JsonNode task) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, task.get("group").asText())) {
            OffsetAndMetadata kept = consumer.committed(place(task));
            return kept == null ? -1 : kept.offset();
        }
    }

    static TopicPartition place(JsonNode task) {
        return new TopicPartition(task.get("topic").asText(), task.get("partition").asInt());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("fetch.max.wait.ms", 100);
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        if (group != null) {
            settings.put("group.id", group);
        }
        return new KafkaConsumer<>(settings);
    }

    private static Map<String, Object> told(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("partition", record.partition());
        seen.put("offset", record.offset());
        seen.put("timestamp", Times.of(record));
        seen.put("key", OldTasks.text(record.key()));
        seen.put("value", OldTasks.text(record.value()));
        seen.put("headers", List.of());
        return seen;
    }
}
