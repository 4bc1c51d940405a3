import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Kafka's own log, driven by a script: one JSON operation a line in, one JSON answer a line out.
 *
 * <p>An operation names the log it is for ("log": any text, given at "open"), so that one process
 * serves many logs. An operation that Kafka refuses is answered with "error" (the protocol's name),
 * "class" and "message". Work that Kafka schedules for now is done before the answer is written.
 */
public final class LogJudge {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Map<String, JudgedLog> logs = new HashMap<>();

  private ObjectNode answer(JsonNode op) {
    ObjectNode answer = JSON.createObjectNode();
    String id = op.path("log").asText();
    try {
      run(op.get("op").asText(), id, op, answer);
    } catch (Throwable error) {
      putError(error, answer);
    }
    JudgedLog log = logs.get(id);
    if (log != null) {
      try {
        log.runDueTasks();
        answer.set("state", log.state());
      } catch (Throwable error) {
        putError(error, answer);
      }
    }
    return answer;
  }

  private void run(String name, String id, JsonNode op, ObjectNode answer) throws Exception {
    switch (name) {
      case "open" -> {
        if (logs.containsKey(id)) {
          throw new IllegalStateException("log " + id + " is open");
        }
        logs.put(id, new JudgedLog(op));
      }
      case "close" -> remove(id).close();
      case "abandon" -> remove(id).abandon();
      default -> find(id).run(name, op, answer);
    }
  }

  private JudgedLog find(String id) {
    JudgedLog log = logs.get(id);
    if (log == null) {
      throw new IllegalStateException("no log " + id + " is open");
    }
    return log;
  }

  private JudgedLog remove(String id) {
    JudgedLog log = find(id);
    logs.remove(id);
    return log;
  }

  private static void putError(Throwable error, ObjectNode answer) {
    Throwable cause = error;
    if (error instanceof RecordValidationException refused) {
      cause = refused.invalidException();
      ArrayNode records = answer.putArray("record_errors");
      refused
          .recordErrors()
          .forEach(each -> records.addArray().add(each.batchIndex).add(each.message));
    }
    answer.put("error", Errors.forException(cause).name());
    answer.put("class", cause.getClass().getSimpleName());
    answer.put("message", cause.getMessage());
    error.printStackTrace();
  }

  /** Serves operations until standard input ends. */
  public static void main(String[] arguments) throws Exception {
    LogJudge judge = new LogJudge();
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    // Answers own standard output; whatever else prints goes where the log goes.
    System.setOut(System.err);
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      output.println(JSON.writeValueAsString(judge.answer(JSON.readTree(line))));
      output.flush();
    }
  }
}
