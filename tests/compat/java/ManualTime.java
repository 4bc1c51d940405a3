import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that stands still until it is told the time, so that two programs can share one. */
final class ManualTime implements Time {
  private long now;

  ManualTime(long now) {
    this.now = now;
  }

  void set(long milliseconds) {
    now = milliseconds;
  }

  @Override
  public long milliseconds() {
    return now;
  }

  @Override
  public long nanoseconds() {
    return now * 1_000_000;
  }

  @Override
  public void sleep(long milliseconds) {
    now += milliseconds;
  }

  @Override
  public void waitObject(Object object, Supplier<Boolean> isDone, long deadline) {
    throw new UnsupportedOperationException("nothing that a log does waits");
  }
}
