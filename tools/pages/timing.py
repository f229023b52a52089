"""The timing study of an evaluation (timing.json) as two tables: other frame rates, and frames missing."""
from marks import head, row

WHAT = ("Frames come more or less often than in training (1x), compared with the truth one training interval after the frame "
        "that was seen, and with the next frame of the stream: {what}.\n\n{rates}\n"
        "Frames are missing at random, compared one interval after each frame that was seen: {what}. These clips move in whole "
        "steps, those above in quarters of one, which bounce a little otherwise: the scores of 1x and 0 % may differ.\n\n{dropped}")


def table(title, labels, lines):
    def cell(line, metric, digits, point):
        value = line[metric]["mean"][point]
        return "-" if value is None else f"{value:.{digits}f}"

    return head([title, *(line["name"] for line in lines)]) + "".join(
        row([label, *(f"{cell(line, 'psnr_f01', 2, point)}, {cell(line, 'ssim_gauss11', 3, point)}" for line in lines)])
        for point, label in enumerate(labels))


def timing_tables(timing):
    protocol, rates, dropped = timing["protocol"], timing["rates"], timing["dropped"]
    what = (f"PSNR in dB and SSIM, mean of {protocol['samples']} test clips, forecasts from training interval "
            f"{protocol['context']} to {protocol['frames']}")
    return WHAT.format(what=what, rates=table("frame rate", [f"{rate:.3g}x" for rate in rates["rate"]], rates["lines"]),
                       dropped=table("frames missing", [f"{100 * part:.0f} %" for part in dropped["probability"]],
                                     dropped["lines"]))
