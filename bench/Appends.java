import io.mashona.logwriting.AppendOnlyLog;
import io.mashona.logwriting.AppendOnlyLogImpl;
import io.mashona.logwriting.AppendOnlyLogImplConfig;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/**
 * Appends the same record again and again to an AppendOnlyLog, and prints how many a second it was.
 *
 * <p>Arguments: the path of a file that is not there yet, its size in bytes, the record's, and for how many seconds to append. As long
 * is appended before, so that the compiler is done. The log is in linear order, without block padding: one force for each
 * record. A full log is cleared between two records, which counts in the second figure only: the library writes zeros to all of it. The file
 * is made by writes as large as those of loadgen, on which it depends how much the kernel writes back with a record.
 */
public class Appends {
  static final int PIECE = 64 << 10;

  public static void main(String[] args) throws Exception {
    int size = Integer.parseInt(args[1]);
    byte[] record = new byte[Integer.parseInt(args[2])];
    long nanos = (long) (1e9 * Double.parseDouble(args[3]));
    Arrays.fill(record, (byte) 0xff);
    try (FileChannel file =
        FileChannel.open(
            Path.of(args[0]), StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer zeros = ByteBuffer.allocate(PIECE);
      for (int left = size; left > 0; left -= file.write(zeros)) {
        zeros.clear().limit(Math.min(left, PIECE));
      }
      file.force(true);
      MappedByteBuffer map = file.map(FileChannel.MapMode.READ_WRITE, 0, size);
      map.load();
      AppendOnlyLog log =
          new AppendOnlyLogImpl(map, 0, size, new AppendOnlyLogImplConfig(false, true, false, false));
      append(log, record, nanos);
      append(log, record, nanos);
    }
  }

  static void append(AppendOnlyLog log, byte[] record, long nanos) {
    long records = 0, spent = 0, began = System.nanoTime();
    while (spent < nanos) {
      long start = System.nanoTime();
      boolean stored = log.tryPut(record);
      long end = System.nanoTime();
      if (stored) {
        records++;
        spent += end - start;
      } else {
        log.clear();
      }
    }
    System.out.printf("appended %.1f/s, %.1f/s with clears%n", 1e9 * records / spent, 1e9 * records / (System.nanoTime() - began));
  }
}
