import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads in the words the releases 0.9 to 1.1 share: bootstrap, group, how (assign or subscribe), count, then topics, one
 * after another. Tells each record, commits behind the last one of a topic, and tells where that is.
 */
public final class OldConsumer {
    private static final long PATIENCE_MS = 30_000;

    public static void main(String[] arguments) {
        int count = Integer.parseInt(arguments[3]);
        for (String topic : Arrays.copyOfRange(arguments, 4, arguments.length)) {
            KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(arguments[0], arguments[1]));
            try {
                read(consumer, topic, arguments[2].equals("subscribe"), count);
            } catch (KafkaException error) {
                System.out.println("error " + topic + " " + error);
            }
            consumer.close();
        }
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer, String topic, boolean subscribe, int count) {
        TopicPartition place = new TopicPartition(topic, 0);
        if (subscribe) {
            consumer.subscribe(Arrays.asList(topic));
        } else {
            consumer.assign(Arrays.asList(place));
        }
        long end = System.currentTimeMillis() + PATIENCE_MS;
        for (int seen = 0; seen < count && System.currentTimeMillis() < end; ) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(200)) {
                String told = record.offset() + " " + text(record.key()) + " " + text(record.value());
                System.out.println("record " + topic + " " + told);
                seen++;
            }
        }
        consumer.commitSync();
        System.out.println("committed " + topic + " " + consumer.committed(place).offset());
    }

    private static String text(byte[] data) {
        return data == null ? "null" : new String(data);
    }

    private static Properties settings(String bootstrap, String group) {
        Properties chosen = new Properties();
        chosen.put("bootstrap.servers", bootstrap);
        chosen.put("group.id", group);
        chosen.put("enable.auto.commit", "false");
        chosen.put("auto.offset.reset", "earliest");
        chosen.put("session.timeout.ms", "10000");
        chosen.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        chosen.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        return chosen;
    }
}
