import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Members by Apache Kafka's own consumer; the words are described in compat_tests/harness/__init__.py. */
public final class JavaMember implements Runnable, ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** By name: releases before 3.5 know only the first. */
    private static final Set<String> JOINS_AGAIN = Set.of("UnknownMemberIdException", "StaleMemberEpochException");
    private static final Duration WAIT = Duration.ofMillis(100);

    private final JsonNode orders;
    private final String name;
    private volatile boolean leaving;

    private JavaMember(JsonNode orders, String name) {
        this.orders = orders;
        this.name = name;
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode orders = JSON.readTree(arguments[0]);
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        warmUp(orders);
        tell("", "ready", Map.of());
        if (orders.get("hold").asBoolean()) {
            words.readLine();
        }
        Map<String, JavaMember> members = new ConcurrentHashMap<>();
        List<Thread> threads = new ArrayList<>();
        for (JsonNode node : orders.get("members")) {
            JavaMember member = new JavaMember(orders, node.asText());
            members.put(member.name, member);
            Thread thread = new Thread(member, member.name);
            thread.start();
            threads.add(thread);
        }
        for (String line = words.readLine(); line != null; line = words.readLine()) {
            if (line.startsWith("leave ")) {
                members.get(line.substring(6)).leaving = true;
            }
        }
        members.values().forEach(member -> member.leaving = true);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    /** Loads the classes a consumer needs, so that a program that was held joins without delay. */
    private static void warmUp(JsonNode orders) {
        if (orders.get("hold").asBoolean()) {
            new KafkaConsumer<>(new JavaMember(orders, "warm-up").settings()).close();
        }
    }

    @Override
    public void run() {
        String topic = orders.get("topic").asText();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings())) {
            consumer.subscribe(List.of(topic), this);
            while (!leaving) {
                ConsumerRecords<String, String> records = poll(consumer);
                if (!records.isEmpty()) {
                    commit(consumer, report(records));
                }
            }
        } catch (KafkaException error) {
            tell(name, "trouble", Map.of("text", error.toString()));
        }
        tell(name, "left", Map.of());
    }

    /** A member that was thought dead hears so here, when it was about to fetch positions; it then joins again. */
    private ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) {
        try {
            return consumer.poll(WAIT);
        } catch (ApiException error) {
            if (!JOINS_AGAIN.contains(error.getClass().getSimpleName())) {
                throw error;
            }
            tell(name, "trouble", Map.of("text", error.toString()));
            return ConsumerRecords.empty();
        }
    }

    private Properties settings() {
        Properties chosen = new Properties();
        String protocol = orders.get("protocol").asText();
        chosen.put("bootstrap.servers", orders.get("bootstrap").asText());
        chosen.put("group.id", orders.get("group").asText());
        chosen.put("client.id", name);
        chosen.put("group.protocol", protocol);
        chosen.put("enable.auto.commit", "false");
        chosen.put("auto.offset.reset", "earliest");
        chosen.put("fetch.max.wait.ms", "100");
        chosen.put("key.deserializer", StringDeserializer.class.getName());
        chosen.put("value.deserializer", StringDeserializer.class.getName());
        if (orders.get("static").asBoolean()) {
            chosen.put("group.instance.id", name);
        }
        boolean classic = protocol.equals("classic");
        if (classic) {
            chosen.put("session.timeout.ms", orders.get("session_ms").asText());
            chosen.put("heartbeat.interval.ms", orders.get("heartbeat_ms").asText());
        }
        if (!orders.get("assignor").isNull()) {
            String setting = classic ? "partition.assignment.strategy" : "group.remote.assignor";
            chosen.put(setting, orders.get("assignor").asText());
        }
        return chosen;
    }

    private Map<TopicPartition, OffsetAndMetadata> report(ConsumerRecords<String, String> records) {
        String text = orders.get("metadata").isNull() ? "" : orders.get("metadata").asText();
        Map<TopicPartition, OffsetAndMetadata> positions = new LinkedHashMap<>();
        for (TopicPartition place : records.partitions()) {
            List<Object> seen = new ArrayList<>();
            for (ConsumerRecord<String, String> record : records.records(place)) {
                seen.add(List.of(record.offset(), record.value()));
                positions.put(place, new OffsetAndMetadata(record.offset() + 1, record.leaderEpoch(), text));
            }
            tell(name, "records", Map.of("partition", place.partition(), "records", seen));
        }
        return positions;
    }

    private void commit(KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> positions) {
        try {
            consumer.commitSync(positions);
        } catch (KafkaException error) {
            tell(name, "trouble", Map.of("text", error.toString()));
            return;
        }
        Map<String, Long> told = new TreeMap<>();
        positions.forEach((place, kept) -> told.put(String.valueOf(place.partition()), kept.offset()));
        tell(name, "committed", Map.of("positions", told));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> places) {
        tell(name, "assigned", Map.of("partitions", numbers(places)));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> places) {
        tell(name, "revoked", Map.of("partitions", numbers(places)));
    }

    private static List<Integer> numbers(Collection<TopicPartition> places) {
        return places.stream().map(TopicPartition::partition).sorted().toList();
    }

    private static synchronized void tell(String member, String event, Map<String, ?> what) {
        Map<String, Object> line = new TreeMap<>(what);
        Instant now = Instant.now();
        line.put("member", member);
        line.put("event", event);
        line.put("at", now.getEpochSecond() + now.getNano() / 1e9);
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
