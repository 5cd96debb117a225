// The rule of bench/peers/streams.py as a Kafka Streams program: the mean magnitude of a gradient,
// averaged over its last ten saved steps, is below 1e-4; told once, until three steps in a row are fine.
//
//   java WeakGradients BOOTSTRAP PREFIX rocksdb|memory|bare exactly_once_v2|at_least_once FOLDER THREADS
//
// Processor API with one key-value store, keyed by run and tensor, as the DSL has no windows of steps.
// `bare` is a store in memory without a changelog: what it knows is lost with the process.
// Unlike ours it does not look at checksums, sequence numbers, launches or the order of steps.
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

public final class WeakGradients {
  static final int WINDOW = 10;
  static final double LIMIT = 1e-4;
  static final int CLEAR_AFTER = 3;

  record TensorKey(long runHigh, long runLow, long tensor) {}

  static final class State {
    final double[] values = new double[WINDOW];
    int next, size, fine;
    boolean open;
  }

  static final class Keys {
    static byte[] serialize(String topic, TensorKey key) {
      return ByteBuffer.allocate(24).putLong(key.runHigh).putLong(key.runLow).putLong(key.tensor).array();
    }
    static TensorKey deserialize(String topic, byte[] bytes) {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      return new TensorKey(in.getLong(), in.getLong(), in.getLong());
    }
  }

  static final class States {
    static byte[] serialize(String topic, State state) {
      if (state == null) return null;
      ByteBuffer out = ByteBuffer.allocate(4 + 8 * WINDOW);
      out.put((byte) state.next).put((byte) state.size).put((byte) state.fine).put((byte) (state.open ? 1 : 0));
      for (double value : state.values) out.putDouble(value);
      return out.array();
    }
    static State deserialize(String topic, byte[] bytes) {
      if (bytes == null) return null;
      ByteBuffer in = ByteBuffer.wrap(bytes);
      State state = new State();
      state.next = in.get();
      state.size = in.get();
      state.fine = in.get();
      state.open = in.get() != 0;
      for (int i = 0; i < WINDOW; ++i) state.values[i] = in.getDouble();
      return state;
    }
  }

  static final class Judge implements Processor<String, ByteBuffer, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<TensorKey, State> states;

    public void init(ProcessorContext<String, String> context) {
      this.context = context;
      this.states = context.getStateStore("windows");
    }

    // Frame v1 (docs/wire.md): header, then columns of eight bytes.
    public void process(Record<String, ByteBuffer> record) {
      ByteBuffer frame = record.value().order(ByteOrder.LITTLE_ENDIAN);
      if (frame.getInt(0) != 0x4E534354 || frame.get(6) != 1) return;  // "TCSN", kind summary
      int header = Short.toUnsignedInt(frame.getShort(8));
      int rows = frame.getInt(12);
      long step = frame.getLong(56);
      ByteBuffer uid = frame.duplicate().order(ByteOrder.BIG_ENDIAN);
      long high = uid.getLong(24);
      long low = uid.getLong(32);
      for (int i = 0; i < rows; ++i) {
        if (((frame.getLong(header + 8 * (13 * rows + i)) >> 8) & 0xff) != 3) continue;  // role gradient
        long count = frame.getLong(header + 8 * (rows + i));
        if (count == 0) continue;
        double mean = frame.getDouble(header + 8 * (5 * rows + i)) / count;
        judge(new TensorKey(high, low, frame.getLong(header + 8 * i)), step, mean, record.timestamp());
      }
    }

    private void judge(TensorKey key, long step, double mean, long time) {
      State state = states.get(key);
      if (state == null) state = new State();
      state.values[state.next] = mean;
      state.next = (state.next + 1) % WINDOW;
      if (state.size < WINDOW) ++state.size;
      if (state.size == WINDOW) {
        double sum = 0;
        for (double value : state.values) sum += value;
        boolean hit = sum / WINDOW < LIMIT;
        if (hit) state.fine = 0;
        else if (state.open && ++state.fine == CLEAR_AFTER) state.open = false;
        if (hit && !state.open) {
          state.open = true;
          String run = new UUID(key.runHigh, key.runLow).toString();
          context.forward(new Record<>(run, String.format("{\"run\":\"%s\",\"tensor\":\"%s\",\"step\":%d}", run,
              Long.toUnsignedString(key.tensor), step), time));
        }
      }
      states.put(key, state);
    }
  }

  public static void main(String[] args) throws Exception {
    Serde<TensorKey> keys = Serdes.serdeFrom(Keys::serialize, Keys::deserialize);
    Serde<State> states = Serdes.serdeFrom(States::serialize, States::deserialize);
    KeyValueBytesStoreSupplier supplier = args[2].equals("rocksdb")
        ? Stores.persistentKeyValueStore("windows") : Stores.inMemoryKeyValueStore("windows");
    StoreBuilder<KeyValueStore<TensorKey, State>> store =
        Stores.keyValueStoreBuilder(supplier, keys, states).withCachingEnabled();
    if (args[2].equals("bare")) store = store.withCachingDisabled().withLoggingDisabled();

    Topology topology = new Topology();
    topology.addSource("telemetry", Serdes.String().deserializer(), Serdes.ByteBuffer().deserializer(),
        args[1] + ".telemetry.v1");
    topology.addProcessor("judge", Judge::new, "telemetry");
    topology.addStateStore(store, "judge");
    topology.addSink("issues", args[1] + ".issues.v1", Serdes.String().serializer(), Serdes.String().serializer(),
        "judge");

    Properties config = new Properties();
    config.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1] + "-streams");
    config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[3]);
    config.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
    config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, args[5]);
    config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    config.put("auto.offset.reset", "earliest");
    KafkaStreams streams = new KafkaStreams(topology, config);
    streams.setStateListener((now, before) -> {
      if (now == KafkaStreams.State.RUNNING) System.out.println("ready");
    });
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }
}
