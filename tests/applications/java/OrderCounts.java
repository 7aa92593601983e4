import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application: counts records by a key of its own, which needs a repartition topic
 * and a store with a changelog. Arguments: a file of settings, the input topic, the output topic.
 *
 * It is compiled when it is started, by Janino, which knows neither lambdas nor generics of methods.
 */
public class OrderCounts {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.load(new java.io.FileReader(arguments[0]));

        StreamsBuilder builder = new StreamsBuilder();
        KStream orders = builder.stream(
            arguments[1], Consumed.with(Serdes.String(), Serdes.String()));
        orders
            .groupBy(
                new KeyValueMapper() {
                    public Object apply(Object key, Object value) {
                        return "customer-" + Integer.parseInt(value.toString()) % 17;
                    }
                },
                Grouped.with("by-customer", Serdes.String(), Serdes.String()))
            .count(
                Materialized.as(Stores.inMemoryKeyValueStore("counts"))
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.Long())
                    .withCachingDisabled())  // each count is written, so that each can be checked
            .toStream()
            .to(arguments[2], Produced.with(Serdes.String(), Serdes.Long()));

        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread() {
            public void run() {
                streams.close(Duration.ofSeconds(20L));
            }
        });
        streams.start();
    }
}
