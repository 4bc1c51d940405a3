import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own log appending, as a peer of ours.
 *
 * <p>Each line on standard input is a JSON object: "dir" (a partition directory to make and remove),
 * "kind" ("records": built and appended; "batches": ready-made ones appended), "key_bytes",
 * "value_bytes", "batch_bytes", "total_bytes", "keep" (closes the log and leaves it). The answer has "seconds", "cpu" (seconds of the
 * appending thread), "bytes" of the log, "records", "batches". One thread, nothing flushed, the log
 * removed outside of what is timed.
 */
public final class AppendLog {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final BrokerTopicStats STATS = new BrokerTopicStats();
  private static final long FIRST_TIMESTAMP = 1_750_000_000_000L;
  private static final int POOL = 4096;
  private static final int READY_BATCHES = 64;

  private final JsonNode job;
  private final int batchBytes;
  private final long totalBytes;
  private final byte[][] keys;
  private final byte[][] values;
  private final ByteBuffer buffer;
  private long records;
  private long batches;

  private AppendLog(JsonNode job) {
    this.job = job;
    batchBytes = job.get("batch_bytes").asInt();
    totalBytes = job.get("total_bytes").asLong();
    Random random = new Random(1);
    keys = pool(random, job.get("key_bytes").asInt());
    values = pool(random, job.get("value_bytes").asInt());
    // Room for the record that makes a batch full.
    buffer = ByteBuffer.allocate(batchBytes + (64 << 10));
  }

  private static byte[][] pool(Random random, int size) {
    byte[][] pool = new byte[POOL][size];
    for (byte[] each : pool) {
      random.nextBytes(each);
    }
    return pool;
  }

  /** The next batch, in `target`; as a producer fills one. */
  private MemoryRecords build(ByteBuffer target) {
    target.clear();
    MemoryRecordsBuilder builder =
        MemoryRecords.builder(
            target,
            RecordBatch.CURRENT_MAGIC_VALUE,
            Compression.NONE,
            TimestampType.CREATE_TIME,
            0L);
    while (builder.estimatedSizeInBytes() < batchBytes) {
      int slot = (int) (records % POOL);
      builder.append(FIRST_TIMESTAMP + records / 4, keys[slot], values[slot]);
      records++;
    }
    return builder.build();
  }

  private long appendRecords(UnifiedLog log) throws IOException {
    long bytes = 0;
    while (bytes < totalBytes) {
      MemoryRecords batch = build(buffer);
      bytes += batch.sizeInBytes();
      log.appendAsLeader(batch, 0);
      batches++;
    }
    return bytes;
  }

  private long appendBatches(UnifiedLog log, List<ByteBuffer> ready, long perBatch) throws IOException {
    long bytes = 0;
    while (bytes < totalBytes) {
      ByteBuffer next = ready.get((int) (batches % READY_BATCHES));
      // The log wrote its offset there the last time; a client sends 0.
      next.putLong(0, 0L);
      bytes += next.limit();
      log.appendAsLeader(MemoryRecords.readableRecords(next), 0);
      batches++;
    }
    records = batches * perBatch;
    return bytes;
  }

  private List<ByteBuffer> readyBatches() {
    List<ByteBuffer> ready = new ArrayList<>();
    for (int number = 0; number < READY_BATCHES; number++) {
      ready.add(build(ByteBuffer.allocate(batchBytes + (64 << 10))).buffer().duplicate());
    }
    return ready;
  }

  private ObjectNode run(KafkaScheduler scheduler) throws IOException {
    File directory = new File(job.get("dir").asText());
    Utils.delete(directory);
    boolean isReady = job.get("kind").asText().equals("batches");
    List<ByteBuffer> ready = isReady ? readyBatches() : List.of();
    long perBatch = records / READY_BATCHES;
    records = 0;
    UnifiedLog log = open(directory, scheduler);
    long start = System.nanoTime();
    long startCpu = THREADS.getCurrentThreadCpuTime();
    long bytes = isReady ? appendBatches(log, ready, perBatch) : appendRecords(log);
    double cpu = (THREADS.getCurrentThreadCpuTime() - startCpu) / 1e9;
    double seconds = (System.nanoTime() - start) / 1e9;
    if (log.size() != bytes || log.logEndOffset() != records) {
      throw new IllegalStateException(log.size() + " bytes, " + log.logEndOffset() + " records");
    }
    if (job.path("keep").asBoolean(false)) {
      log.close();
    } else {
      log.closeHandlers();
      Utils.delete(directory);
    }
    ObjectNode answer = JSON.createObjectNode();
    answer.put("seconds", seconds).put("cpu", cpu).put("bytes", bytes);
    return answer.put("records", records).put("batches", batches);
  }

  private static UnifiedLog open(File directory, KafkaScheduler scheduler) throws IOException {
    LogConfig config = new LogConfig(Map.of("max.message.bytes", "4194304", "retention.ms", "-1"));
    return UnifiedLog.create(
        directory,
        config,
        0L,
        0L,
        scheduler,
        STATS,
        Time.SYSTEM,
        900_000,
        new ProducerStateManagerConfig(86_400_000, false),
        600_000,
        new LogDirFailureChannel(1),
        true,
        Optional.empty());
  }

  /** Serves jobs until standard input ends. */
  public static void main(String[] arguments) throws Exception {
    KafkaScheduler scheduler = new KafkaScheduler(1);
    scheduler.startup();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      System.out.println(new AppendLog(JSON.readTree(line)).run(scheduler));
    }
    scheduler.shutdown();
  }
}
