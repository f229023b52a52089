"""Runs the program, so that a signal reaches what runs and nothing is lost."""
import datetime, os, platform, signal, subprocess, threading

NUMERIC = 5  # exit code of a training whose loss is no longer a number


class Stopped(Exception):
    """Asked to stop; what was running has saved."""


class Diverged(Exception):
    """The loss of a training is no longer a number."""


class Program:
    def __init__(self, path):
        self.path = path
        self.stopping = threading.Event()
        self.running = set()

    def stop(self, *_):
        """Once: a second signal would end the program before it has saved."""
        if self.stopping.is_set():
            return
        self.stopping.set()
        say("stopping: what runs is being saved")
        for process in list(self.running):
            process.send_signal(signal.SIGINT)

    def call(self, arguments, log, threads):
        """Its lines go to the end of a log."""
        if self.stopping.is_set():
            raise Stopped
        command = [self.path, "--threads", str(threads), *arguments]
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a") as lines:
            lines.write(f"$ {' '.join(command)}\n")
            lines.flush()
            process = subprocess.Popen(command, stdout=lines, stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, "OMP_NUM_THREADS": str(threads)})
            self.running.add(process)
            if self.stopping.is_set():  # asked for while it was being started
                process.send_signal(signal.SIGINT)
            code = process.wait()
            self.running.discard(process)
        if self.stopping.is_set():
            raise Stopped
        if code == NUMERIC:
            raise Diverged
        if code != 0:
            raise SystemExit(f"error: {' '.join(command)} ended with {code}; its last lines, of {log}:\n"
                             + "".join(open(log).readlines()[-5:]))


say_lock = threading.Lock()


def say(text):
    with say_lock:
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return f"{cpu}, {os.cpu_count()} cores, {memory / 2**20:.0f} GiB, {platform.machine()}"


def commit():
    """With -dirty if something is changed. Records that were made before this one do not count."""
    def git(*words):
        return subprocess.run(["git", *words], capture_output=True, text=True).stdout.strip()

    try:
        name = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)results")
    except FileNotFoundError:  # no git
        return "unknown"
    return (name or "unknown") + ("-dirty" if changed else "")


def write_whole(path, text):
    """The file is there with all of the text or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.replace(new, path)
