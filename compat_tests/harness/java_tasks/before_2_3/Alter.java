import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;

/** Before 2.3 all configs of a topic were replaced at once. */
final class Alter {
    static void set(AdminClient admin, ConfigResource topic, Map<String, String> configs) throws Exception {
        List<ConfigEntry> entries = new ArrayList<>();
        configs.forEach((name, value) -> entries.add(new ConfigEntry(name, value)));
        admin.alterConfigs(Map.of(topic, new Config(entries))).all().get();
    }
}
