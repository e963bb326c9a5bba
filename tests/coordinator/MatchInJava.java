import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.*;
import java.nio.charset.StandardCharsets;

/** Answers each line, a regular expression and names split by tabs, with what RE2J, Kafka's own library, says of it. */
public class MatchInJava {
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            StringBuilder answer = new StringBuilder();
            try {
                Pattern pattern = Pattern.compile(parts[0]);
                for (int i = 1; i < parts.length; i++)
                    answer.append(pattern.matches(parts[i]) ? '1' : '0');
            } catch (PatternSyntaxException refused) {
                answer.append("refused");
            }
            System.out.println(answer);
        }
    }
}
