import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Before 0.10 messages had no time. */
final class Times {
    static ProducerRecord<byte[], byte[]> record(String topic, JsonNode record) {
        return new ProducerRecord<>(topic, record.get("partition").asInt(),
                OldTasks.bytes(record.get("key")), OldTasks.bytes(record.get("value")));
    }

    static long of(ConsumerRecord<?, ?> record) {
        return -1;
    }

    static long offsetAt(String bootstrap, JsonNode task) {
        throw new UnsupportedOperationException("messages have no time");
    }
}
