"""Training steps of every published config of the 3D worlds on this machine: batch 1, 4 frames, rendered by a world here.

    python3 tools/published_steps.py [build/release/bin/convssm]

A tokenizer of the published sizes is trained for one step, since only its cost matters. Prints a row of the table in
docs/performance.md for each config: parameters, seconds of a step (the second and third, with AdamW), peak memory of the
whole program, whose tokenizer encodes the frames. About 15 minutes; needs 10 GB of disk in the temporary folder."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = 3


def run(program, *arguments):
    """What it said, and its peak memory in GB."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen([program, *map(str, arguments)], cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if child.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{text}")
    return text, usage.ru_maxrss * 1024 / 1e9


def train(program, config, folder, *overrides):
    return run(program, "train", config, "--run", folder, f"train.steps={STEPS}", "train.batch=1", "train.warmup=0",
               "train.log_interval=1", f"train.save_interval={STEPS}", f"train.sample_interval={STEPS}", *overrides)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/convssm"
    print("| config | parameters | a step | peak memory |\n|---|---|---|---|")
    for world in ["dmlab", "minecraft", "habitat"]:
        with tempfile.TemporaryDirectory() as temporary:
            size = 64 if world == "dmlab" else 128
            data = f"data={{name: maze, image_size: {size}}}"
            tokenizer = f"{temporary}/tokenizer"
            train(program, f"configs/tokenizer/{world}.yaml", tokenizer, data, "model.perceptual_weight=0",
                  "model.discriminator.weight=0", "train.frames=1", "train.sample_frames=1")
            for config in sorted(ROOT.glob(f"configs/{world}/*.yaml")):
                folder = f"{temporary}/{config.stem}"
                causal = ["model.causal_masking.context=2"] if "causal_masking:" in config.read_text() else []
                said, memory = train(program, config, folder, data, f"model.tokenizer={tokenizer}", "train.frames=4",
                                     "train.sample_context=2", "train.sample_frames=2", *causal)
                parameters = re.search(r"([\d.,]+ ?[MK]?) (trained )?parameters", said)
                log = [json.loads(line) for line in open(f"{folder}/log.jsonl")]
                ends = {entry["step"]: entry["seconds"] for entry in log if "seconds" in entry}
                second = (ends[STEPS] - ends[1]) / (STEPS - 1)
                print(f"| `{config.relative_to(ROOT)}` | {parameters.group(1) if parameters else '?'} | {second:.1f} s | {memory:.1f} GB |",
                      flush=True)
                subprocess.run(["rm", "-r", folder], check=True)


if __name__ == "__main__":
    main()
