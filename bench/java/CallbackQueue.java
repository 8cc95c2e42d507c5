// The design of seed 1, written by us: one executor with one thread of its own for every key, kept for ever.
// It is the peer the bench measures `lanes` against; nothing else uses it.

import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

final class CallbackQueue {
    private final ConcurrentHashMap<String, ExecutorService> queues = new ConcurrentHashMap<>();

    <T> T submitAndWait(String key, Callable<T> task) throws Exception {
        return submit(key, task).get(60, TimeUnit.SECONDS);
    }

    <T> Future<T> submit(String key, Callable<T> task) {
        return queues.computeIfAbsent(key, CallbackQueue::queueFor).submit(task);
    }

    void shutdown() throws InterruptedException {
        queues.values().forEach(ExecutorService::shutdown);
        for (ExecutorService queue : queues.values()) {
            queue.awaitTermination(30, TimeUnit.SECONDS);
        }
    }

    private static ExecutorService queueFor(String key) {
        return Executors.newSingleThreadExecutor(work -> {
            Thread thread = new Thread(work, "callback-" + key);
            thread.setDaemon(false);
            return thread;
        });
    }
}
