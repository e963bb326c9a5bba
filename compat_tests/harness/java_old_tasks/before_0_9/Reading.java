import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/** Before 0.9 clients read with another library, through ZooKeeper. */
final class Reading {
    static Map<String, Object> consume(String bootstrap, JsonNode task) {
        throw new UnsupportedOperationException("only writes");
    }

    static void commit(String bootstrap, JsonNode task) {
        throw new UnsupportedOperationException("only writes");
    }

    static long committed(String bootstrap, JsonNode task) {
        throw new UnsupportedOperationException("only writes");
    }
}
