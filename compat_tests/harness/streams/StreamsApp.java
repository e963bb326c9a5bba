import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * One instance of a Kafka Streams application: `StreamsApp TOPOLOGY OUTPUT INPUT... -- PROPERTY=VALUE...`.
 *
 * It prints `state RUNNING` and the like, `restored STORE PARTITION RECORDS` when a store was filled from its
 * changelog, and answers the line `tasks` with `tasks` and the tasks it works on. The end of its input closes it.
 */
public final class StreamsApp implements StateRestoreListener {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration APART = Duration.ofSeconds(10);

    public static void main(String[] arguments) throws Exception {
        int end = Arrays.asList(arguments).indexOf("--");
        Properties settings = new Properties();
        for (String setting : Arrays.copyOfRange(arguments, end + 1, arguments.length)) {
            settings.put(setting.substring(0, setting.indexOf('=')), setting.substring(setting.indexOf('=') + 1));
        }
        StreamsBuilder builder = new StreamsBuilder();
        topology(builder, arguments[0], Arrays.copyOfRange(arguments, 2, end))
            .to(arguments[1], Produced.with(TEXT, TEXT));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> tell("state " + now));
        streams.setGlobalStateRestoreListener(new StreamsApp());
        streams.start();
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        for (String line = words.readLine(); line != null; line = words.readLine()) {
            if (line.equals("tasks")) {
                tell("tasks " + tasks(streams));
            }
        }
        tell(streams.close(Duration.ofSeconds(60)) ? "closed" : "would not close");
        System.exit(0);
    }

    private static KStream<String, String> topology(StreamsBuilder builder, String name, String[] inputs) {
        return switch (name) {
            case "word-count" -> wordCount(stream(builder, inputs[0]));
            case "windowed-count" -> windowedCount(stream(builder, inputs[0]));
            case "table-join" -> tableJoin(stream(builder, inputs[0]), table(builder, inputs[1]));
            case "windowed-join" -> windowedJoin(stream(builder, inputs[0]), stream(builder, inputs[1]));
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** Counts by word over all partitions: by way of a repartition topic, in a store with a changelog. */
    private static KStream<String, String> wordCount(KStream<String, String> lines) {
        return words(lines)
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count));
    }

    /** Counts by word and minute, each written as `word@begin`. */
    private static KStream<String, String> windowedCount(KStream<String, String> lines) {
        return words(lines)
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(10)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("by-minute"))
            .toStream((word, count) -> word.key() + "@" + word.window().start())
            .mapValues(count -> Long.toString(count));
    }

    private static KGroupedStream<String, String> words(KStream<String, String> lines) {
        return lines.flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(" ")))
            .groupBy((key, word) -> word, Grouped.with("by-word", TEXT, TEXT));
    }

    /** Each order with what is known of its user at that moment. */
    private static KStream<String, String> tableJoin(KStream<String, String> orders, KTable<String, String> users) {
        return orders.leftJoin(users, (order, user) -> order + " by " + user, Joined.with(TEXT, TEXT, TEXT));
    }

    /** Each view with the clicks at most ten seconds apart from it, or with null once there can be none. */
    private static KStream<String, String> windowedJoin(KStream<String, String> views, KStream<String, String> clicks) {
        return views.leftJoin(
            clicks,
            (view, click) -> view + "+" + click,
            JoinWindows.ofTimeDifferenceWithNoGrace(APART),
            StreamJoined.with(TEXT, TEXT, TEXT).withStoreName("pairs"));
    }

    private static KStream<String, String> stream(StreamsBuilder builder, String topic) {
        return builder.stream(topic, Consumed.with(TEXT, TEXT));
    }

    private static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(
            topic, Consumed.with(TEXT, TEXT), Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("users"));
    }

    private static String tasks(KafkaStreams streams) {
        TreeSet<String> found = new TreeSet<>();
        streams.metadataForLocalThreads()
            .forEach(thread -> thread.activeTasks().forEach(task -> found.add(task.taskId().toString())));
        return String.join(" ", found);
    }

    @Override
    public void onRestoreStart(TopicPartition changelog, String store, long from, long to) {
    }

    @Override
    public void onBatchRestored(TopicPartition changelog, String store, long last, long count) {
    }

    @Override
    public void onRestoreEnd(TopicPartition changelog, String store, long count) {
        tell("restored " + store + " " + changelog.partition() + " " + count);
    }

    private static synchronized void tell(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
