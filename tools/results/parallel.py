"""Several rows side by side."""
import threading, time

from program import Stopped


def in_parallel(program, makeable, work, count):
    """Works on what `makeable()` names, `count` at a time, until it names nothing more. What is made can make more makeable.

    The first error stops the others, after they have saved.
    """
    busy, errors, lock = set(), [], threading.Lock()

    def take():
        """The next row; None when all is made; waits while rows that others need are being made."""
        while not program.stopping.is_set():
            with lock:
                free = next((row for row in makeable() if row["row"] not in busy), None)
                if free:
                    busy.add(free["row"])
                    return free
                if not busy:
                    return None
            time.sleep(0.2)
        return None

    def worker():
        try:
            while row := take():
                try:
                    work(row)
                finally:
                    with lock:
                        busy.discard(row["row"])
        except Stopped:
            pass
        except (SystemExit, Exception) as error:
            errors.append(error)
            program.stop()

    workers = [threading.Thread(target=worker) for _ in range(count)]
    for thread in workers:
        thread.start()
    for thread in workers:
        while thread.is_alive():
            thread.join(0.2)
    if errors:
        raise errors[0]
    if program.stopping.is_set():
        raise SystemExit("stopped; what was running is saved: the same command goes on")
