import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * The scenarios' words in kafka-clients 0.8.2 to 0.10, which had neither an admin client nor headers; they are described
 * in compat_tests/features/__init__.py.
 */
public final class OldTasks {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SECONDS = 60;

    private final String bootstrap;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    private OldTasks(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        OldTasks worker = new OldTasks(arguments[0]);
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
        switch (task.get("do").asText()) {
            case "produce":
                return produce(task);
            case "consume":
                return Reading.consume(bootstrap, task);
            case "offset_at":
                return Map.of("offset", Times.offsetAt(bootstrap, task));
            case "commit":
                Reading.commit(bootstrap, task);
                return Map.of();
            case "committed":
                return Map.of("offset", Reading.committed(bootstrap, task));
            default:
                throw new IllegalArgumentException(task.get("do").asText());
        }
    }

    private Map<String, Object> produce(JsonNode task) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(task);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : task.get("records")) {
            sent.add(producer.send(Times.record(task.get("topic").asText(), record)));
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> done : sent) {
            offsets.add(done.get(SECONDS, TimeUnit.SECONDS).offset());
        }
        return Map.of("offsets", offsets);
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode task) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", task.get("acks").asText());
        settings.put("compression.type", task.get("codec").asText());
        settings.put("linger.ms", 20);
        settings.put("retries", 1000);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        return producers.computeIfAbsent(settings.toString(), key -> new KafkaProducer<>(settings));
    }

    static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    static String text(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }
}
