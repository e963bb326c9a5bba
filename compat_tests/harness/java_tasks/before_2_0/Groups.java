import java.util.List;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Before 2.0 only a member of a group could ask about it. */
final class Groups {
    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long milliseconds) {
        return consumer.poll(milliseconds);
    }

    static OffsetAndMetadata committed(
            AdminClient admin, KafkaConsumer<?, ?> member, String group, TopicPartition place) {
        return member.committed(place);
    }

    static List<String> names(AdminClient admin) {
        throw new UnsupportedOperationException("the admin client knows no groups");
    }

    static void forget(AdminClient admin, String group) {
        throw new UnsupportedOperationException("the admin client knows no groups");
    }
}
