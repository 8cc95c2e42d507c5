// Runs loads through `CallbackQueue` on command, so that one warm virtual machine serves every round.
//
// In:  shape keys tasks parallel mixing limit_ms   (shape: callers | burst | idle), one line per load
// Out: "ready" once; then per load: "done_tasks elapsed_ns p99_ns", and "over" when its threads are gone.
// `idle` uses every key once, and keeps the threads until the next line.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public final class Peer {
    private static final BufferedReader COMMANDS = new BufferedReader(new InputStreamReader(System.in));

    private final CallbackQueue queue = new CallbackQueue();
    private final String[] keys;
    private final int tasks;
    private final int parallel;
    private final int mixing;
    private final long deadline;
    private final AtomicLong done = new AtomicLong();
    private final long[] latencies;

    private Peer(String[] words) {
        keys = new String[Integer.parseInt(words[1])];
        for (int key = 0; key < keys.length; key++) {
            keys[key] = "document-" + key + ".docx";
        }
        tasks = Integer.parseInt(words[2]);
        parallel = Integer.parseInt(words[3]);
        mixing = Integer.parseInt(words[4]);
        deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(words[5]));
        latencies = new long[tasks];
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        for (String line = COMMANDS.readLine(); line != null; line = COMMANDS.readLine()) {
            String[] words = line.split(" ");
            Peer peer = new Peer(words);
            long began = System.nanoTime();
            if (words[0].equals("burst")) {
                peer.burst();
            } else {
                peer.callers();
            }
            long elapsed = System.nanoTime() - began;
            System.out.println(peer.done + " " + elapsed + " " + peer.p99());
            if (words[0].equals("idle")) {
                COMMANDS.readLine();
            }
            peer.queue.shutdown();
            System.out.println("over");
        }
        System.exit(0);
    }

    // Each caller submits one task, waits for it, and goes on with the next.
    private void callers() throws InterruptedException {
        Thread[] callers = new Thread[parallel];
        for (int caller = 0; caller < parallel; caller++) {
            int first = caller;
            callers[caller] = new Thread(() -> call(first));
            callers[caller].start();
        }
        for (Thread caller : callers) {
            caller.join();
        }
    }

    private void call(int first) {
        try {
            for (int number = first; number < tasks && System.nanoTime() < deadline; number += parallel) {
                long seed = number;
                long began = System.nanoTime();
                queue.submitAndWait(keys[number % keys.length], () -> mix(seed, mixing));
                latencies[number] = System.nanoTime() - began;
                done.incrementAndGet();
            }
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    // So many tasks for every key are submitted before the first is waited for.
    private void burst() throws Exception {
        int wave = keys.length * parallel;
        for (int number = 0; number < tasks && System.nanoTime() < deadline; number += wave) {
            List<Future<Long>> futures = new ArrayList<>(wave);
            for (int i = 0; i < wave; i++) {
                long seed = number + i;
                futures.add(queue.submit(keys[i % keys.length], () -> mix(seed, mixing)));
            }
            for (Future<Long> future : futures) {
                future.get(60, TimeUnit.SECONDS);
            }
            done.addAndGet(wave);
        }
    }

    private long p99() {
        long[] seen = Arrays.stream(latencies).filter(latency -> latency > 0).sorted().toArray();
        return seen.length == 0 ? 0 : seen[(int) (seen.length * 0.99)];
    }

    private static long mix(long seed, int rounds) {
        long hash = seed;
        for (int round = 0; round < rounds; round++) {
            hash = (hash ^ (hash >>> 29)) * 0xbf58476d1ce4e5b9L;
        }
        return hash;
    }
}
