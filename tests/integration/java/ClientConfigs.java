import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes a producer of the settings in each line, and prints what it made of them, or that it does not start. */
public class ClientConfigs {
    private static final String BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer";

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(settingsOf(line)));
        }
    }

    private static Properties settingsOf(String line) {
        Properties settings = new Properties();
        settings.setProperty("bootstrap.servers", "127.0.0.1:1");
        settings.setProperty("key.serializer", BYTES);
        settings.setProperty("value.serializer", BYTES);
        String[] parts = line.split(" ");
        for (int place = 0; place < parts.length; place++) {
            int at = parts[place].indexOf('=');
            settings.setProperty(parts[place].substring(0, at), parts[place].substring(at + 1));
        }
        return settings;
    }

    private static String answer(Properties settings) {
        try {
            new KafkaProducer(settings, new ByteArraySerializer(), new ByteArraySerializer()).close(Duration.ZERO);
            boolean isIdempotent = new ProducerConfig(settings).getBoolean("enable.idempotence").booleanValue();
            return isIdempotent ? "idempotent" : "not idempotent";
        } catch (Exception exception) {
            return "does not start";
        }
    }
}
