import java.io.IOException;
import java.util.Locale;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

/**
 * A Flink job in a small cluster of its own: `FlinkApp BOOTSTRAP GROUP SOURCE SINK SETTING=VALUE...`.
 *
 * It writes every line of the source in capitals to the sink, at least once. It begins where its checkpoint was if
 * the settings name one, else where its group had committed. The end of its input cancels it.
 */
public final class FlinkApp {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        for (int at = 4; at < arguments.length; at++) {
            String[] pair = arguments[at].split("=", 2);
            settings.setString(pair[0], pair[1]);
        }
        StreamExecutionEnvironment cluster = StreamExecutionEnvironment.createLocalEnvironment(settings);
        cluster.fromSource(source(arguments), WatermarkStrategy.noWatermarks(), "source")
            .map(line -> line.toUpperCase(Locale.ROOT))
            .returns(Types.STRING)
            .sinkTo(sink(arguments));
        JobClient job = cluster.executeAsync("capitals");
        System.out.println("submitted " + job.getJobID());
        waitForTheEndOfInput();
        job.cancel().get();
        System.out.println("cancelled");
        System.exit(0);
    }

    private static KafkaSource<String> source(String[] arguments) {
        return KafkaSource.<String>builder()
            .setBootstrapServers(arguments[0])
            .setGroupId(arguments[1])
            .setTopics(arguments[2])
            .setStartingOffsets(OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST))
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
    }

    private static KafkaSink<String> sink(String[] arguments) {
        return KafkaSink.<String>builder()
            .setBootstrapServers(arguments[0])
            .setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .setRecordSerializer(
                KafkaRecordSerializationSchema.<String>builder()
                    .setTopic(arguments[3])
                    .setValueSerializationSchema(new SimpleStringSchema())
                    .build())
            .build();
    }

    private static void waitForTheEndOfInput() throws IOException {
        while (System.in.read() >= 0) {
            continue;
        }
    }
}
