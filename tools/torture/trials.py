"""One trial is a function of the seed and its number: a folder of its own, one fault, and what must hold after it."""
import errno, os, random, shlex, shutil, signal, subprocess

import files

SECONDS = 60  # that a command may take
MEGABYTES = 3000  # of memory that a command may take
EXPECTED = {0, 2, 3, 4, 5}  # exit codes: ok, usage, data, I/O or memory, numeric


class Failure(Exception):
    pass


def made(folder, name):
    """The bytes of a result, for a run folder of its newest checkpoint; None if there is none."""
    paths = [folder / name] if name else sorted(folder.glob("new/checkpoints/step-*.safetensors"))
    return paths[-1].read_bytes() if paths and paths[-1].exists() else None


def names_below(folder):
    """All files, but for events, whose names hold the time, and the lines of the trial itself."""
    found = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return {name for name in found if "tfevents" not in name and name not in ("output.txt", "commands.txt")}


class Trial:
    def __init__(self, number, seed, program, faults, template, references, folder, keep=False):
        self.number, self.program, self.faults = number, program, faults
        self.template, self.references, self.folder, self.keep = template, references, folder, keep
        self.random = random.Random(f"{seed}/{number}")
        self.kind, self.result = "", ""

    def run(self):
        shutil.copytree(self.template, self.folder)
        self.kind = self.random.choice(("kill", "error", "damage", "damage"))
        getattr(self, self.kind)()
        if not self.keep:
            shutil.rmtree(self.folder)

    def note(self, line):
        with open(self.folder / "commands.txt", "a") as lines:
            lines.write(line + "\n")

    def call(self, command, call=0, error=0, to_the_end=False):
        """Under the faults: exit code and number of calls."""
        words = [self.program, *shlex.split(command)]
        line = [self.faults, "output.txt", str(call), str(error), str(int(to_the_end)), str(SECONDS), *words]
        self.note(shlex.join(line))
        done = subprocess.run(line, cwd=self.folder, env=environment(), stdout=subprocess.PIPE, text=True)
        code, calls = map(int, done.stdout.split())
        self.expect(code in EXPECTED or (call > 0 and error == 0 and code == 137), f"{command} ended with {code}")
        return code, calls

    def expect(self, holds, text):
        if not holds:
            raise Failure(text)

    def recover(self, name, command, result):
        """Without a fault it ends well, with the same bytes and no other files than ever. What a killed process was
        writing stays where nobody looks for it, but not in a run folder, which the next one cleans."""
        code, _ = self.call(command)
        bytes_, names, _ = self.references[name]
        self.expect(code == 0, f"{name}: after the fault it ended with {code}")
        self.expect(made(self.folder, result) == bytes_, f"{name}: after the fault the result is another")
        more = names_below(self.folder) - names
        if self.kind == "kill":
            more = {path for path in more if path.startswith("new/") and name == "train"}
        self.expect(not more, f"{name}: left behind: {', '.join(sorted(more)[:3])}")

    def kill(self):
        name, command, result = self.random.choice(files.WRITERS)
        bytes_, _, calls = self.references[name]
        for _ in range(self.random.randrange(1, 4)):
            self.call(command, call=self.random.randrange(1, calls + 1))
            if result and made(self.folder, result) is not None:
                self.expect(made(self.folder, result) == bytes_, f"{name}: a file that is there is not whole")
        self.recover(name, command, result)
        self.result = name

    def error(self):
        name, command, result = self.random.choice(files.WRITERS)
        bytes_, _, calls = self.references[name]
        number = self.random.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT))
        code, _ = self.call(command, self.random.randrange(1, calls + 1), number, self.random.random() < 0.5)
        self.expect(code in (0, 4), f"{name}: with {errno.errorcode[number]} it ended with {code}")
        if code == 0:
            self.expect(made(self.folder, result) == bytes_, f"{name}: ended with 0 and another result")
        self.recover(name, command, result)
        self.result = f"{name}, exit {code}"

    def damage(self):
        kind, name, command = self.random.choice(files.READERS)
        path = self.folder / name
        data, done = files.damage(path.read_bytes(), self.random)
        path.unlink()  # links of it stay whole
        path.write_bytes(data)
        self.note(f"# {name}: {done}")
        words = [self.program, *shlex.split(command)]
        self.note(shlex.join(words))
        with open(self.folder / "output.txt", "ab") as output:
            process = subprocess.Popen(words, cwd=self.folder, env=environment(), stdout=output,
                                       stderr=subprocess.STDOUT, preexec_fn=lambda: signal.alarm(SECONDS))
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.expect(process.returncode in EXPECTED, f"{kind}: {command} ended with {process.returncode}")
        self.expect(used.ru_maxrss < MEGABYTES * 1024, f"{kind}: {command} took {used.ru_maxrss // 1024} MB")
        self.result = f"{kind}, exit {process.returncode}"


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": "/tmp"}
