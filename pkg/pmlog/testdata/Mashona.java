import io.mashona.logwriting.AppendOnlyLog;
import io.mashona.logwriting.AppendOnlyLogImpl;
import io.mashona.logwriting.AppendOnlyLogImplConfig;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reads and then appends to files of AppendOnlyLog.
 *
 * <p>Arguments, three for each file: its path, the options of a new log (any of "b" for block padding, "l" for linear order and "c" to
 * checkpoint always), and the length of each record to append, separated by commas. The nth record holds its length in each
 * byte. Prints a line for each file: the length and the first byte of each record that it held before.
 */
public class Mashona {
  public static void main(String[] args) throws Exception {
    for (int i = 0; i < args.length; i += 3) {
      try (FileChannel file =
          FileChannel.open(Path.of(args[i]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        MappedByteBuffer map = file.map(FileChannel.MapMode.READ_WRITE, 0, file.size());
        AppendOnlyLogImplConfig config =
            new AppendOnlyLogImplConfig(
                args[i + 1].contains("b"), args[i + 1].contains("l"), args[i + 1].contains("c"), false);
        AppendOnlyLog log = new AppendOnlyLogImpl(map, 0, (int) file.size(), config);
        StringBuilder line = new StringBuilder();
        for (ByteBuffer record : log) {
          line.append(record.remaining()).append(':').append(record.get(0) & 0xff).append(' ');
        }
        System.out.println(line.toString().trim());
        for (String length : args[i + 2].split(",")) {
          byte[] payload = new byte[Integer.parseInt(length)];
          java.util.Arrays.fill(payload, (byte) payload.length);
          log.put(payload);
        }
        map.force();
      }
    }
  }
}
