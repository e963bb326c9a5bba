import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;

/**
 * Prints what a broker of the release on the classpath advertises, by reflection, as every release has other methods:
 * "api key oldest newest" a line, then "feature name lowest highest default" where there are features.
 */
public final class Advertised {
    private static final String COMMON = "org.apache.kafka.common.";
    private static final String SERVER = "org.apache.kafka.server.common.";

    public static void main(String[] arguments) throws Exception {
        for (Object key : apis()) {
            if (!hasVersions(key)) continue;
            int id = ((Number) key.getClass().getField("id").get(key)).intValue();
            int oldest = version(key, id, "oldest");
            int latest = version(key, id, "latest");
            if (oldest <= latest) System.out.println("api " + id + " " + oldest + " " + latest);
        }
        try {
            printFeatures();
        } catch (ClassNotFoundException noSuchJar) {
            return;
        }
    }

    /** All that a broker offers to clients: since 2.8 said per kind of listener, in 2.7 by a switch, before that all. */
    private static Collection<?> apis() throws Exception {
        Class<?> keys = Class.forName(COMMON + "protocol.ApiKeys");
        for (Method method : keys.getMethods()) {
            if (method.getName().equals("apisForListener")) {
                Class<?> kinds = method.getParameterTypes()[0];
                Object kind = Arrays.stream(kinds.getEnumConstants())
                        .filter(each -> each.toString().equals("ZK_BROKER")).findFirst().orElse(null);
                if (kind == null) kind = enumConstant(kinds, "BROKER");
                return (Collection<?>) method.invoke(null, kind);
            }
        }
        try {
            return (Collection<?>) keys.getMethod("enabledApis").invoke(null);
        } catch (NoSuchMethodException older) {
            return Arrays.asList(keys.getEnumConstants());
        }
    }

    private static boolean hasVersions(Object key) throws Exception {
        try {
            return (boolean) key.getClass().getMethod("hasValidVersion").invoke(key);
        } catch (NoSuchMethodException older) {
            return true;
        }
    }

    /** Versions still under work are not offered; before 0.11 the versions stood beside the keys. */
    private static int version(Object key, int id, String which) throws Exception {
        Class<?> keys = key.getClass();
        try {
            return ((Number) keys.getMethod(which + "Version", boolean.class).invoke(key, false)).intValue();
        } catch (NoSuchMethodException older) {
            try {
                return ((Number) keys.getMethod(which + "Version").invoke(key)).intValue();
            } catch (NoSuchMethodException oldest) {
                Object schemas = Array.get(Class.forName(COMMON + "protocol.Protocol").getField("REQUESTS").get(null), id);
                int last = Array.getLength(schemas) - 1;
                if (which.equals("latest")) return last;
                int first = 0;
                while (first <= last && Array.get(schemas, first) == null) first++;
                return first;
            }
        }
    }

    private static void printFeatures() throws Exception {
        Class<?> versions = Class.forName(SERVER + "MetadataVersion");
        Object newest = versions.getField("LATEST_PRODUCTION").get(null);
        Object oldest = versions.getField("MINIMUM_VERSION").get(null);
        print("metadata.version", level(oldest), level(newest), level(newest));
        Class<?> features = Class.forName(SERVER + "Feature");
        for (Object feature : (Collection<?>) features.getField("PRODUCTION_FEATURES").get(null)) {
            Object initial = features.getMethod("defaultLevel", versions).invoke(feature, newest);
            print(
                (String) features.getMethod("featureName").invoke(feature),
                features.getMethod("minimumProduction").invoke(feature),
                features.getMethod("latestProduction").invoke(feature),
                initial);
        }
    }

    private static Object level(Object version) throws Exception {
        return version.getClass().getMethod("featureLevel").invoke(version);
    }

    private static void print(String name, Object lowest, Object highest, Object initial) {
        System.out.println("feature " + name + " " + lowest + " " + highest + " " + initial);
    }

    private static Object enumConstant(Class<?> kind, String name) {
        return Arrays.stream(kind.getEnumConstants())
                .filter(each -> each.toString().equals(name)).findFirst().orElseThrow();
    }
}
