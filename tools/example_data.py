"""Small recordings to try docs/own_data.md with: fields in units of their own, and clips with actions.

    python3 tools/example_data.py OUT     writes OUT/fields.npy and OUT/steps.npz

Needs nothing but Python; with NumPy the two functions `npy` and `npz` are np.save and np.savez.
"""
import array
import math
import pathlib
import random
import struct
import sys
import zipfile


def npy(kind, shape, values):
    """The bytes of a .npy file; kind is '<f4', '|u1' or '<i8'."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    code = {"<f4": "f", "|u1": "B", "<i8": "q"}[kind]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array(code, values).tobytes()


def npz(path, arrays):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in arrays.items():
            file.writestr(name + ".npy", data)


def fields(frames=1500, side=32):
    """[T,2,H,W]: temperature (280 to 300 K) and pressure (990 to 1030 hPa) of waves that travel around a torus."""
    values = array.array("f")
    turn = 2 * math.pi / side
    for t in range(frames):
        for low, high, kx, ky, speed in ((280, 300, 1, 2, 0.12), (990, 1030, 2, -1, 0.07)):
            for y in range(side):
                for x in range(side):
                    wave = math.sin(turn * (kx * x + ky * y) - speed * t) + 0.5 * math.sin(turn * (x - y) + 0.05 * t)
                    values.append((low + high) / 2 + (high - low) / 2 * wave / 1.5)
    return npy("<f4", (frames, 2, side, side), values)


def steps(clips=100, frames=40, side=24):
    """A square on a torus that is moved: 0 stays, 1 left, 2 right, 3 up, 4 down. Action k leads to frame k."""
    video, actions, draw = bytearray(), [], random.Random(1)
    for _ in range(clips):
        x, y = draw.randrange(side), draw.randrange(side)
        for k in range(frames):
            action = draw.randrange(5) if k else 0
            x = (x + 2 * ((action == 2) - (action == 1))) % side
            y = (y + 2 * ((action == 4) - (action == 3))) % side
            frame = bytearray(side * side)
            for dy in range(6):
                for dx in range(6):
                    frame[(y + dy) % side * side + (x + dx) % side] = 255
            video += frame
            actions.append(action)
    return {"data": npy("|u1", (clips, frames, side, side, 1), video), "actions": npy("<i8", (clips, frames), actions)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "fields.npy").write_bytes(fields())
    npz(out / "steps.npz", steps())
    print(f"{out}/fields.npy  {out}/steps.npz")


if __name__ == "__main__":
    main()
