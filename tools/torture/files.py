"""The small files that everything starts from, made by the program itself, and the ways to damage one."""
import gzip, os, struct

CONFIG = """model:
  encoder: {depths: [4, 8]}
  decoder: {depths: [4, 8]}
  core: {name: convs5, features: 8, state_size: 8}
data: {name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}
train: {steps: 12, batch: 2, frames: 6, warmup: 2, log_interval: 3, save_interval: 4, sample_interval: 6}
evaluate: {context: 3, horizons: [4], samples: 2, chunk: 1, batch: 2}
"""

# (kind of file, the file, the command that reads it; the folder of the trial is its working folder)
READERS = [
    ("yaml", "tiny.yaml", "train tiny.yaml --run new"),
    ("npy", "clips.npy", "data inspect clips.npy"),
    ("npy", "clips.npy", "generate small --context clips.npy --frames 2 --out x.npy"),
    ("npz", "clips.npz", "data inspect clips.npz"),
    ("npz", "clips.npz", "generate small --context clips.npz --frames 2 --out x.npy"),
    ("npz", "folder/a.npz", "train folder.yaml --run new"),
    ("npz", "packed.npz", "compare clips.npz packed.npz --metrics psnr_f01"),
    ("gif", "future.gif", "data inspect future.gif"),
    ("mp4", "future.mp4", "data inspect future.mp4"),
    ("png", "future.png", "compare future.png future.png --metrics psnr_f01"),
    ("idx", "digits.gz", "data make x.npy images=digits.gz image_size=12 digit_size=8 --clips 1 --frames 2"),
    ("model", "small/model.safetensors", "generate small --context clips.npy --frames 2 --out x.npy"),
    ("state", "state.safetensors", "generate small --state state.safetensors --frames 2 --out x.npy"),
    ("export", "small/export.json", "generate small --context clips.npy --frames 2 --out x.npy"),
    ("checkpoint", "run/checkpoints/step-000012.safetensors", "train --run run --resume train.steps=13"),
    ("checkpoint", "run/checkpoints/step-000012.json", "train --run run --resume train.steps=13"),
    ("config", "run/config.yaml", "train --run run --resume train.steps=13"),
    ("log", "run/log.jsonl", "train --run run --resume train.steps=13"),
    ("log", "run/log.jsonl", "results run --json x.json"),
    ("status", "run/status.json", "evaluate run"),
    ("metrics", "run/metrics.json", "results run --json x.json"),
    ("metrics", "run/metrics.json", "export run --out new"),
    ("pth", "weights.pth", "weights --weights new import squeezenet weights.pth"),
]

# (name, command, what it makes; "" for a run folder)
WRITERS = [
    ("train", "train tiny.yaml --run new --resume", ""),
    ("generate npy", "generate small --context clips.npy --clip 0 --frames 9 --force --out x.npy", "x.npy"),
    ("generate npz", "generate small --context clips.npy --clip 0 --frames 9 --force --out x.npz", "x.npz"),
    ("generate gif", "generate small --context clips.npy --clip 0 --frames 9 --force --out x.gif", "x.gif"),
    ("generate state", "generate small --context clips.npy --frames 3 --force --save-state x.state", "x.state"),
    ("export", "export run --out new --force", "new/model.safetensors"),
    ("data make", "data make x.npz digits=1 image_size=12 digit_size=8 --clips 2 --frames 5 --force", "x.npz"),
]


def make(folder, call, seeds):
    """All files below `folder`; `call` runs the program there and must succeed."""
    folder.mkdir(parents=True)
    (folder / "tiny.yaml").write_text(CONFIG)
    (folder / "folder.yaml").write_text(CONFIG.replace(
        "{name: moving-mnist, digits: 1, image_size: 12, digit_size: 8, clips: 50, test_clips: 6}",
        "{name: folder, path: folder}"))
    digits = bytes(range(256)) * 25
    with gzip.open(folder / "digits.gz", "wb") as out:
        out.write(struct.pack(">IIII", 2051, 8, 28, 28) + digits[:8 * 28 * 28])
    clips = "digits=1 image_size=12 digit_size=8 --split test --clips 2 --frames 12"
    call("train tiny.yaml --run run")
    call("evaluate run")
    call("export run --out small")
    call(f"data make clips.npy {clips}")
    call(f"data make clips.npz {clips}")
    call(f"data make packed.npz {clips} --compress")
    (folder / "folder").mkdir()
    for name in "abc":
        os.link(folder / "clips.npz", folder / "folder" / f"{name}.npz")
    for ending in "gif", "mp4", "png":
        call(f"generate small --context clips.npy --clip 0 --frames 9 --scale 1 --out future.{ending}")
    call("generate small --context clips.npy --frames 2 --save-state state.safetensors")
    seed = sorted((seeds / "torch_file").iterdir())[0]
    (folder / "weights.pth").write_bytes(seed.read_bytes())


def damage(data, random):
    """Other bytes, and what was done."""
    data = bytearray(data)
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        size = len(data)
        at = random.randrange(size + 1) if random.random() < 0.5 else random.randrange(min(size, 256) + 1)
        length = random.choice((1, 2, 4, 8, 64, 1000))
        what = random.choice(("flip", "set", "cut", "zero", "insert", "repeat", "number", "nest"))
        done.append(f"{what} {at} {length}")
        if what == "flip" and at < size:
            data[at] ^= 1 << random.randrange(8)
        elif what == "set" and at < size:
            data[at] = random.choice((0, 1, 0x7f, 0x80, 0xff, random.randrange(256)))
        elif what == "cut":
            del data[at:at + random.choice((length, size))]
        elif what == "zero":
            data[at:at + length] = bytes(len(data[at:at + length]))
        elif what == "insert":
            data[at:at] = random.randbytes(length)
        elif what == "repeat":
            data[at:at] = data[at:at + length] * random.choice((1, 3, 100))
        elif what == "number":
            value = random.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1))
            form = random.choice((lambda: str(value).encode(), lambda: value.to_bytes(8, "little"),
                                  lambda: (value % 2**32).to_bytes(4, "big")))()
            data[at:at + len(form)] = form
        elif what == "nest":
            data[at:at] = random.choice((b"[", b"{", b'{"a":')) * random.choice((10, 5000, 200000))
    return bytes(data), ", ".join(done)
