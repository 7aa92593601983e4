import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transactional producer that does one step per line of its input: new, begin, send COUNT, await, commit, abort
 * or close. It answers each with one line: the step, and OK or the class of the error. Arguments: a file of
 * settings, the topic.
 *
 * It is compiled when it is started, by Janino, which knows neither lambdas nor generics of methods.
 */
public class TransactionSteps implements Callback {
    private static final String PADDING = "a value whose last letter a proxy may change: ";
    private int succeeded;
    private int failed;
    private String error = "";

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.load(new FileReader(arguments[0]));
        TransactionSteps counts = new TransactionSteps();
        KafkaProducer producer = null;
        int number = 0;
        BufferedReader steps = new BufferedReader(new InputStreamReader(System.in));
        for (String line = steps.readLine(); line != null; line = steps.readLine()) {
            String[] words = line.split(" ");
            String answer = "OK";
            try {
                if (words[0].equals("new")) {
                    producer = new KafkaProducer(settings, new StringSerializer(), new StringSerializer());
                    producer.initTransactions();
                } else if (words[0].equals("begin")) {
                    counts.clear();
                    producer.beginTransaction();
                } else if (words[0].equals("send")) {
                    int count = Integer.parseInt(words[1]);
                    for (int i = 0; i < count; i++) {
                        String value = PADDING + number++;
                        producer.send(new ProducerRecord(arguments[1], 0, null, value), counts);
                    }
                } else if (words[0].equals("await")) {
                    producer.flush();
                    answer = counts.toText();
                } else if (words[0].equals("commit")) {
                    producer.commitTransaction();
                } else if (words[0].equals("abort")) {
                    producer.abortTransaction();
                } else {
                    producer.close(java.time.Duration.ofSeconds(5));
                }
            } catch (Exception exception) {
                answer = exception.getClass().getSimpleName() + ": " + exception.getMessage();
            }
            System.out.println("= " + words[0] + " " + answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    public synchronized void onCompletion(RecordMetadata metadata, Exception exception) {
        if (exception == null) {
            succeeded++;
        } else {
            failed++;
            error = exception.getClass().getSimpleName();
        }
    }

    private synchronized void clear() {
        succeeded = failed = 0;
        error = "";
    }

    private synchronized String toText() {
        return succeeded + " delivered, " + failed + " failed " + error;
    }
}
