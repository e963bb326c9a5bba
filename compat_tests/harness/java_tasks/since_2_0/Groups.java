import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Since 2.0 the admin client knows groups. */
final class Groups {
    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long milliseconds) {
        return consumer.poll(Duration.ofMillis(milliseconds));
    }

    static OffsetAndMetadata committed(
            AdminClient admin, KafkaConsumer<?, ?> member, String group, TopicPartition place) throws Exception {
        return admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(place);
    }

    static List<String> names(AdminClient admin) throws Exception {
        List<String> names = new ArrayList<>();
        for (ConsumerGroupListing listing : admin.listConsumerGroups().all().get()) {
            names.add(listing.groupId());
        }
        return names;
    }

    static void forget(AdminClient admin, String group) throws Exception {
        admin.deleteConsumerGroups(List.of(group)).all().get();
    }
}
