import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Since 0.10 messages have a time. */
final class Times {
    static ProducerRecord<byte[], byte[]> record(String topic, JsonNode record) {
        return new ProducerRecord<>(topic, record.get("partition").asInt(), record.get("timestamp").asLong(),
                OldTasks.bytes(record.get("key")), OldTasks.bytes(record.get("value")));
    }

    static long of(ConsumerRecord<?, ?> record) {
        return record.timestamp();
    }

    static long offsetAt(String bootstrap, JsonNode task) {
        TopicPartition place = Reading.place(task);
        try (KafkaConsumer<byte[], byte[]> consumer = Reading.consumer(bootstrap, null)) {
            OffsetAndTimestamp found =
                    consumer.offsetsForTimes(Map.of(place, task.get("timestamp").asLong())).get(place);
            return found == null ? -1 : found.offset();
        }
    }
}
