import java.util.ArrayList;
import java.util.Collection;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;

/** Since 2.3 configs are changed one by one. */
final class Alter {
    static void set(AdminClient admin, ConfigResource topic, Map<String, String> configs) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        configs.forEach((name, value) ->
                changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(topic, changes)).all().get();
    }
}
