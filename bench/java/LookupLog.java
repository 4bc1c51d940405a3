import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Map;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;

/**
 * Kafka's own index searches, as a peer of ours.
 *
 * <p>Each line on standard input is a JSON object: "kind", "path", "base_offset", "first" and "span"
 * (targets are drawn from first, first + 1, ... first + span - 1), "lookups", "seed". Kinds: "index"
 * and "timeindex" search the file at "path"; "position" and "time" look up an offset's batch and a
 * timestamp's record in the segment of the directory at "path". The answer has "seconds", "cpu", "lookups"
 * and "sum": of the positions or offsets found, so that another program can show that it found the
 * same for the same seed (see {@link #next}).
 */
public final class LookupLog {
  private static final ObjectMapper JSON = new ObjectMapper();

  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private long random;

  /** Targets: a linear congruential generator that is easy to write again elsewhere. */
  private long next(long first, long span) {
    random = random * 6364136223846793005L + 1442695040888963407L;
    return first + (random >>> 33) % span;
  }

  private interface Search {
    long find(long target) throws IOException;
  }

  private ObjectNode run(JsonNode job) throws IOException {
    File path = new File(job.get("path").asText());
    long base = job.get("base_offset").asLong();
    switch (job.get("kind").asText()) {
      case "index" -> {
        OffsetIndex index = new OffsetIndex(path, base, -1, false);
        ObjectNode answer = measure(job, target -> index.lookup(target).position());
        index.closeHandler();
        return answer;
      }
      case "timeindex" -> {
        TimeIndex index = new TimeIndex(path, base, -1, false);
        ObjectNode answer = measure(job, target -> index.lookup(target).offset());
        index.closeHandler();
        return answer;
      }
      case "position" -> {
        try (LogSegment segment = open(path, base)) {
          return measure(job, target -> segment.translateOffset(target).position);
        }
      }
      case "time" -> {
        try (LogSegment segment = open(path, base)) {
          return measure(job, target -> segment.findOffsetByTimestamp(target, base).get().offset);
        }
      }
      default -> throw new IllegalArgumentException("no kind " + job.get("kind"));
    }
  }

  private static LogSegment open(File directory, long base) throws IOException {
    LogConfig config = new LogConfig(Map.of());
    return LogSegment.open(directory, base, config, Time.SYSTEM, true, 0, false, "");
  }

  private ObjectNode measure(JsonNode job, Search search) throws IOException {
    random = job.get("seed").asLong();
    long first = job.get("first").asLong();
    long span = job.get("span").asLong();
    long lookups = job.get("lookups").asLong();
    long sum = 0;
    long start = System.nanoTime();
    long startCpu = THREADS.getCurrentThreadCpuTime();
    for (long number = 0; number < lookups; number++) {
      sum += search.find(next(first, span));
    }
    double cpu = (THREADS.getCurrentThreadCpuTime() - startCpu) / 1e9;
    double seconds = (System.nanoTime() - start) / 1e9;
    ObjectNode answer = JSON.createObjectNode().put("seconds", seconds).put("cpu", cpu);
    return answer.put("lookups", lookups).put("sum", sum);
  }

  /** Serves jobs until standard input ends. */
  public static void main(String[] arguments) throws Exception {
    LookupLog lookups = new LookupLog();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      System.out.println(lookups.run(JSON.readTree(line)));
    }
  }
}
