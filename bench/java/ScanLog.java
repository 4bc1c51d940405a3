import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Kafka's own classes reading a partition directory, as a peer of the scan.
 *
 * <p>Each line on standard input is a directory; the answer is one line: seconds, processor seconds
 * of this thread, records, bytes of keys, bytes of values. One process serves many rounds, so that
 * the rounds that count run compiled code.
 */
public final class ScanLog {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  private final BufferSupplier buffers = BufferSupplier.create();
  private long records;
  private long keyBytes;
  private long valueBytes;

  private void readSegment(File file) throws Exception {
    try (FileRecords log = FileRecords.open(file, false)) {
      for (FileChannelRecordBatch batch : log.batches()) {
        batch.ensureValid();
        try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
          while (iterator.hasNext()) {
            Record record = iterator.next();
            records++;
            keyBytes += record.hasKey() ? record.key().remaining() : 0;
            valueBytes += record.hasValue() ? record.value().remaining() : 0;
          }
        }
      }
    }
  }

  private String round(File directory) throws Exception {
    records = 0;
    keyBytes = 0;
    valueBytes = 0;
    File[] segments = directory.listFiles((folder, name) -> name.endsWith(".log"));
    Arrays.sort(segments);
    long start = System.nanoTime();
    long startCpu = THREADS.getCurrentThreadCpuTime();
    for (File segment : segments) {
      readSegment(segment);
    }
    double cpu = (THREADS.getCurrentThreadCpuTime() - startCpu) / 1e9;
    double wall = (System.nanoTime() - start) / 1e9;
    return wall + " " + cpu + " " + records + " " + keyBytes + " " + valueBytes;
  }

  /** Serves rounds until standard input ends. */
  public static void main(String[] arguments) throws Exception {
    ScanLog scan = new ScanLog();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      System.out.println(scan.round(new File(line)));
    }
  }
}
