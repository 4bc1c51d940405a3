import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** One UnifiedLog with its own clock and scheduler; every method answers one operation of a script. */
final class JudgedLog {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final BrokerTopicStats STATS = new BrokerTopicStats();
  private static final int DAY_MS = 86_400_000;

  private final ManualTime time;
  private final ManualScheduler scheduler;
  private final UnifiedLog log;

  JudgedLog(JsonNode op) throws IOException {
    time = new ManualTime(op.path("now").asLong());
    scheduler = new ManualScheduler(time);
    // One channel a log: a directory that failed in one script must not fail the next.
    LogDirFailureChannel failures = new LogDirFailureChannel(16);
    Optional<Uuid> topicId =
        op.hasNonNull("topic_id")
            ? Optional.of(Uuid.fromString(op.get("topic_id").asText()))
            : Optional.empty();
    log =
        UnifiedLog.create(
            new File(op.get("dir").asText()),
            config(op.path("config")),
            op.path("log_start").asLong(0),
            op.path("recovery_point").asLong(0),
            scheduler,
            STATS,
            time,
            op.path("max_transaction_timeout_ms").asInt(900_000),
            new ProducerStateManagerConfig(
                op.path("producer_id_expiration_ms").asInt(DAY_MS),
                op.path("transaction_verification").asBoolean(false)),
            600_000,
            failures,
            op.path("clean").asBoolean(true),
            topicId);
    // A log begins with its mark at its start; the broker then puts it where its checkpoint says.
    if (op.path("follow").asBoolean(false)) {
      log.updateHighWatermark(log.logEndOffset());
    } else if (op.hasNonNull("high_watermark")) {
      log.updateHighWatermark(op.get("high_watermark").asLong());
    }
  }

  private static LogConfig config(JsonNode given) {
    Map<String, String> properties = new HashMap<>();
    given.properties().forEach(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
    LogConfig.validate(properties);
    return new LogConfig(properties);
  }

  /** Does one operation; the answer has its own fields, the state is added by the caller. */
  void run(String name, JsonNode op, ObjectNode answer) throws Exception {
    if (op.hasNonNull("now")) {
      time.set(op.get("now").asLong());
    }
    switch (name) {
      case "append_leader" -> appendLeader(op, answer);
      case "append_follower" -> appendFollower(op, answer);
      case "assign_epoch" -> log.assignEpochStartOffset(op.get("epoch").asInt(), log.logEndOffset());
      case "roll" -> answer.put("base_offset", log.roll().baseOffset());
      case "flush" -> log.flush(op.path("force").asBoolean(false));
      case "set_high_watermark" ->
          answer.put("high_watermark", log.updateHighWatermark(op.get("offset").asLong()));
      case "delete_records" -> deleteRecords(op.get("before").asLong(), answer);
      case "apply_retention" -> answer.put("deleted", log.deleteOldSegments());
      case "truncate_to" -> answer.put("truncated", log.truncateTo(op.get("offset").asLong()));
      case "truncate_fully" -> truncateFully(op);
      case "read" -> read(op, answer);
      case "offset_for_time" -> offsetForTime(op.get("timestamp").asLong(), answer);
      case "end_offset_for_epoch" -> endOffsetForEpoch(op.get("epoch").asInt(), answer);
      case "update_config" -> log.updateConfig(config(op.get("config")));
      case "expire_producers" -> log.removeExpiredProducers(time.milliseconds());
      case "take_snapshot" -> log.takeProducerSnapshot();
      case "run_tasks" -> runTasks(op);
      case "producers" -> answer.set("producers", producers());
      case "segments" -> answer.set("segments", segments());
      case "state" -> {}
      default -> throw new IllegalArgumentException("no operation " + name);
    }
  }

  /** What a broker's log manager does with each log at a clean stop. */
  void close() {
    log.flush(true);
    log.close();
    scheduler.runDue();
  }

  /** As kill -9 leaves it: nothing more is written, indexes stay as long as they were mapped. */
  void abandon() {
    scheduler.shutdown();
    log.closeHandlers();
  }

  void runDueTasks() {
    scheduler.runDue();
  }

  private void runTasks(JsonNode op) {
    if (op.path("all").asBoolean(false)) {
      scheduler.runAll();
    } else {
      scheduler.runDue();
    }
  }

  private void appendLeader(JsonNode op, ObjectNode answer) throws IOException {
    MemoryRecords records = records(op);
    AppendOrigin origin = AppendOrigin.valueOf(op.path("origin").asText("CLIENT"));
    int epoch = op.path("epoch").asInt(0);
    long before = log.logEndOffset();
    // A coordinator must say which protocol its markers follow: 2 raises the producer's epoch with
    // each, 0 and 1 do not, and are what this accepts unless told.
    short version = (short) op.path("transaction_version").asInt(origin == AppendOrigin.CLIENT ? -1 : 1);
    LogAppendInfo info =
        version < 0
            ? log.appendAsLeader(records, epoch, origin)
            : log.appendAsLeader(
                records, epoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, version);
    if (op.path("follow").asBoolean(false)) {
      log.maybeIncrementHighWatermark(log.logEndOffsetMetadata());
    }
    put(info, before, answer);
  }

  private void appendFollower(JsonNode op, ObjectNode answer) throws IOException {
    long before = log.logEndOffset();
    LogAppendInfo info = log.appendAsFollower(records(op), op.path("epoch").asInt(Integer.MAX_VALUE));
    if (op.path("follow").asBoolean(false)) {
      log.updateHighWatermark(log.logEndOffset());
    }
    put(info, before, answer);
  }

  private void put(LogAppendInfo info, long endBefore, ObjectNode answer) {
    answer.put("base_offset", info.firstOffset());
    answer.put("last_offset", info.lastOffset());
    answer.put("max_timestamp", info.maxTimestamp());
    answer.put("log_append_time", info.logAppendTime());
    answer.put("log_start", info.logStartOffset());
    answer.put("bytes", info.validBytes());
    // Kafka does not say so itself: a duplicate is answered with offsets that were there before.
    answer.put("duplicate", info.validBytes() > 0 && info.lastOffset() < endBefore);
  }

  private static MemoryRecords records(JsonNode op) throws IOException {
    if (op.has("bytes")) {
      return MemoryRecords.readableRecords(
          ByteBuffer.wrap(Base64.getDecoder().decode(op.get("bytes").asText())));
    }
    try (RandomAccessFile file = new RandomAccessFile(op.get("file").asText(), "r")) {
      byte[] bytes = new byte[op.path("length").asInt((int) file.length())];
      file.seek(op.path("position").asLong(0));
      file.readFully(bytes);
      return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
    }
  }

  /** The checks that a broker's partition makes before it raises the log's start. */
  private void deleteRecords(long before, ObjectNode answer) {
    if (log.config().compact && !log.config().delete) {
      throw new PolicyViolationException("Records of a compacted topic can not be deleted");
    }
    long target = before == -1 ? log.highWatermark() : before;
    if (target < 0) {
      throw new OffsetOutOfRangeException("The offset " + target + " is not valid");
    }
    answer.put(
        "raised",
        log.maybeIncrementLogStartOffset(target, LogStartOffsetIncrementReason.ClientRecordDeletion));
  }

  private void truncateFully(JsonNode op) {
    Optional<Long> start =
        op.hasNonNull("log_start") ? Optional.of(op.get("log_start").asLong()) : Optional.empty();
    log.truncateFullyAndStartAt(op.get("offset").asLong(), start);
  }

  private void read(JsonNode op, ObjectNode answer) throws Exception {
    FetchDataInfo fetched =
        log.read(
            op.get("offset").asLong(),
            op.path("max_bytes").asInt(1 << 20),
            FetchIsolation.valueOf(op.path("isolation").asText("LOG_END")),
            op.path("min_one").asBoolean(true));
    answer.put("offset", fetched.fetchOffsetMetadata.messageOffset);
    answer.put("segment", fetched.fetchOffsetMetadata.segmentBaseOffset);
    answer.put("position", fetched.fetchOffsetMetadata.relativePositionInSegment);
    answer.put("size", fetched.records.sizeInBytes());
    answer.put("first_entry_incomplete", fetched.firstEntryIncomplete);
    ByteBuffer bytes = ByteBuffer.allocate(fetched.records.sizeInBytes());
    if (fetched.records instanceof FileRecords file) {
      file.readInto(bytes, 0);
    }
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes.array());
    answer.put("sha256", HexFormat.of().formatHex(digest));
    if (op.path("give_bytes").asBoolean(false)) {
      answer.put("bytes", Base64.getEncoder().encodeToString(bytes.array()));
    }
    fetched.abortedTransactions.ifPresent(aborted -> answer.set("aborted", aborted(aborted)));
  }

  private static ArrayNode aborted(List<AbortedTransaction> transactions) {
    ArrayNode rows = JSON.createArrayNode();
    transactions.forEach(each -> rows.addArray().add(each.producerId()).add(each.firstOffset()));
    return rows;
  }

  private void offsetForTime(long timestamp, ObjectNode answer) {
    log.fetchOffsetByTimestamp(timestamp, Optional.empty())
        .timestampAndOffsetOpt()
        .ifPresentOrElse(
            found -> {
              answer.put("offset", found.offset);
              answer.put("timestamp", found.timestamp);
              answer.put("leader_epoch", found.leaderEpoch.orElse(null));
            },
            () -> answer.putNull("offset"));
  }

  private void endOffsetForEpoch(int epoch, ObjectNode answer) {
    Optional<OffsetAndEpoch> found = log.endOffsetForEpoch(epoch);
    answer.put("epoch", found.map(OffsetAndEpoch::epoch).orElse(null));
    answer.put("offset", found.map(OffsetAndEpoch::offset).orElse(null));
  }

  /** What every answer ends with. */
  ObjectNode state() {
    ObjectNode state = JSON.createObjectNode();
    state.put("start", log.logStartOffset());
    state.put("high_watermark", log.highWatermark());
    state.put("last_stable", log.lastStableOffset());
    state.put("end", log.logEndOffset());
    state.put("recovery_point", log.recoveryPoint());
    state.put("segments", log.numberOfSegments());
    state.put("bytes", log.size());
    state.put("waiting_tasks", scheduler.waiting());
    ArrayNode epochs = state.putArray("epochs");
    for (EpochEntry entry : log.leaderEpochCache().epochEntries()) {
      epochs.addArray().add(entry.epoch()).add(entry.startOffset());
    }
    return state;
  }

  private ArrayNode segments() throws IOException {
    ArrayNode rows = JSON.createArrayNode();
    for (LogSegment segment : log.logSegments()) {
      ObjectNode row = rows.addObject();
      row.put("base_offset", segment.baseOffset());
      row.put("bytes", segment.size());
      row.put("index_entries", segment.offsetIndex().entries());
      row.put("time_index_entries", segment.timeIndex().entries());
      row.put("max_timestamp", segment.maxTimestampSoFar());
    }
    return rows;
  }

  private ArrayNode producers() {
    ArrayNode rows = JSON.createArrayNode();
    Map<Long, ProducerStateEntry> sorted = new TreeMap<>(log.producerStateManager().activeProducers());
    for (ProducerStateEntry entry : sorted.values()) {
      ObjectNode row = rows.addObject();
      row.put("producer_id", entry.producerId());
      row.put("epoch", entry.producerEpoch());
      row.put("coordinator_epoch", entry.coordinatorEpoch());
      row.put("last_timestamp", entry.lastTimestamp());
      entry
          .currentTxnFirstOffset()
          .ifPresentOrElse(
              first -> row.put("transaction_first_offset", first),
              () -> row.putNull("transaction_first_offset"));
      ArrayNode batches = row.putArray("batches");
      for (BatchMetadata batch : entry.batchMetadata()) {
        batches
            .addArray()
            .add(batch.lastSeq())
            .add(batch.lastOffset())
            .add(batch.offsetDelta())
            .add(batch.timestamp());
      }
    }
    return rows;
  }
}
