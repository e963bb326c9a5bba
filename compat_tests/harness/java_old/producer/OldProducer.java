import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Sends records in the words every release since 0.8.2 knows: bootstrap, acks, count, size, then topic:codec for each
 * topic. Tells the offset of each record, or what went wrong. Every fifth record has no key, the one after it no value.
 */
public final class OldProducer {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[2]);
        int size = Integer.parseInt(arguments[3]);
        for (int i = 4; i < arguments.length; i++) {
            int split = arguments[i].lastIndexOf(':');
            send(arguments[0], arguments[1], arguments[i].substring(0, split), arguments[i].substring(split + 1), count, size);
        }
    }

    private static void send(String bootstrap, String acks, String topic, String codec, int count, int size)
            throws InterruptedException {
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings(bootstrap, acks, codec));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            byte[] key = n % 5 == 3 ? null : ("k" + n).getBytes();
            byte[] value = n % 5 == 4 ? null : padded("v" + n, size);
            sent.add(producer.send(new ProducerRecord<>(topic, 0, key, value)));
        }
        for (Future<RecordMetadata> one : sent) {
            try {
                System.out.println("offset " + topic + " " + one.get().offset());
            } catch (ExecutionException error) {
                System.out.println("error " + topic + " " + error.getCause().getClass().getSimpleName());
            }
        }
        producer.close();
    }

    private static byte[] padded(String text, int size) {
        byte[] value = new byte[Math.max(size, text.length())];
        java.util.Arrays.fill(value, (byte) '.');
        System.arraycopy(text.getBytes(), 0, value, 0, text.length());
        return value;
    }

    private static Properties settings(String bootstrap, String acks, String codec) {
        Properties chosen = new Properties();
        chosen.put("bootstrap.servers", bootstrap);
        chosen.put("acks", acks);
        chosen.put("compression.type", codec);
        chosen.put("linger.ms", "50");
        chosen.put("max.request.size", "5000000");
        chosen.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        chosen.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        return chosen;
    }
}
