import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;

/**
 * Keeps what a log wants done later until {@link #runDue} or {@link #runAll}.
 *
 * <p>A broker runs these tasks on other threads, without the log's lock; run between operations they
 * end in the same state, and in the same one every time. Periodic tasks (the expiry of producers) are
 * dropped: a script asks for them by name.
 */
final class ManualScheduler implements Scheduler {
  private final Time time;
  private List<Task> tasks = new ArrayList<>();

  ManualScheduler(Time time) {
    this.time = time;
  }

  @Override
  public void startup() {}

  @Override
  public void shutdown() {
    tasks.clear();
  }

  @Override
  public ScheduledFuture<?> schedule(String name, Runnable run, long delayMs, long periodMs) {
    Task task = new Task(name, run, time.milliseconds() + delayMs);
    if (periodMs < 0) {
      tasks.add(task);
    }
    return task;
  }

  @Override
  public void resizeThreadPool(int size) {}

  int waiting() {
    return tasks.size();
  }

  /** Runs what is due now, and what that schedules in turn for now. */
  void runDue() {
    runUntil(time.milliseconds());
  }

  void runAll() {
    runUntil(Long.MAX_VALUE);
  }

  private void runUntil(long limit) {
    for (List<Task> due = takeDue(limit); !due.isEmpty(); due = takeDue(limit)) {
      due.forEach(task -> task.run.run());
    }
  }

  private List<Task> takeDue(long limit) {
    List<Task> due = new ArrayList<>();
    List<Task> later = new ArrayList<>();
    for (Task task : tasks) {
      if (!task.isCancelled) {
        (task.dueMs <= limit ? due : later).add(task);
      }
    }
    tasks = later;
    due.sort(Comparator.comparingLong(task -> task.dueMs));
    return due;
  }

  private static final class Task implements ScheduledFuture<Void> {
    final String name;
    final Runnable run;
    final long dueMs;
    boolean isCancelled;

    Task(String name, Runnable run, long dueMs) {
      this.name = name;
      this.run = run;
      this.dueMs = dueMs;
    }

    @Override
    public boolean cancel(boolean mayInterrupt) {
      isCancelled = true;
      return true;
    }

    @Override
    public boolean isCancelled() {
      return isCancelled;
    }

    @Override
    public boolean isDone() {
      return false;
    }

    @Override
    public Void get() {
      return null;
    }

    @Override
    public Void get(long timeout, TimeUnit unit) {
      return null;
    }

    @Override
    public long getDelay(TimeUnit unit) {
      return unit.convert(dueMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public int compareTo(Delayed other) {
      return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
    }
  }
}
