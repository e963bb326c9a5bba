import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/** Answers each line of JSON on the standard input, a group's wishes, with what Apache Kafka's assignors make of it. */
public class AssignInJava {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine())
            System.out.println(answer(JSON.readTree(line)));
    }

    private static String answer(JsonNode wishes) throws Exception {
        ConsumerGroupPartitionAssignor assignor =
            wishes.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (JsonNode member : wishes.get("members")) {
            String id = member.get("id").asText();
            Set<Uuid> topics = new LinkedHashSet<>();
            member.get("topics").forEach(topic -> topics.add(topic(topic.asText())));
            Map<Uuid, Set<Integer>> assigned = new LinkedHashMap<>();
            member.get("assigned").fields().forEachRemaining(entry -> {
                Set<Integer> partitions = new LinkedHashSet<>();
                entry.getValue().forEach(partition -> {
                    partitions.add(partition.asInt());
                    inverted.computeIfAbsent(topic(entry.getKey()), t -> new HashMap<>()).put(partition.asInt(), id);
                });
                assigned.put(topic(entry.getKey()), partitions);
            });
            members.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(),
                Optional.ofNullable(member.get("instance").textValue()), topics, new Assignment(assigned)));
        }
        GroupSpec group = new GroupSpecImpl(members,
            wishes.get("alike").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, inverted);
        GroupAssignment result = assignor.assign(group, new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return wishes.get("counts").get(Long.toString(topic.getLeastSignificantBits())).asInt();
            }

            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        });
        ObjectNode told = JSON.createObjectNode();
        result.members().forEach((id, assignment) -> {
            ObjectNode topics = told.putObject(id);
            assignment.partitions().forEach((topic, partitions) -> {
                ArrayNode list = topics.putArray(Long.toString(topic.getLeastSignificantBits()));
                new TreeSet<>(partitions).forEach(list::add);
            });
        });
        return JSON.writeValueAsString(told);
    }

    private static Uuid topic(String number) {
        return new Uuid(0, Long.parseLong(number));
    }
}
