"""
A film in chunks: Dask
======================

Data that does not fit into memory, or lies on many machines, is a Dask array: a grid of chunks that are loaded when
they are needed. :func:`codiag.factorize` takes it as it stands. Every chunk sends sums, never its entries, and the
whole is read a few times, however many iterations the fit takes.
"""

# %%
# A film of 400 frames, 72 x 96 pixels, of cells that light up, each in its own rhythm; 50 frames to a chunk. Here a
# function makes each chunk when it is asked for, and counts how often; it could as well read a file.

from threading import Lock

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import codiag

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

rng = np.random.default_rng(3)
n_frames, height, width, n_cells = 400, 72, 96, 5
frame, row, column = (np.arange(size)[:, None] for size in (n_frames, height, width))
pulses = (rng.random((n_frames, n_cells)) < 0.02) * rng.gamma(4, size=(n_frames, n_cells))
decay = np.exp(-np.arange(40) / 12)
lights = np.stack([np.convolve(pulse, decay)[:n_frames] for pulse in pulses.T], axis=1)
rows = np.exp(-((row - rng.uniform(12, 60, n_cells)) ** 2) / (2 * rng.uniform(4, 7, n_cells) ** 2))
columns = np.exp(-((column - np.linspace(14, 82, n_cells)) ** 2) / (2 * rng.uniform(4, 8, n_cells) ** 2))

n_read, lock = 0, Lock()


def load(block_info=None):
    """Return the frames of one chunk, as a camera with noise would record them."""
    global n_read
    begin, end = block_info[None]["array-location"][0]
    if end > begin:
        with lock:
            n_read += 1
    noise = np.random.default_rng(begin).standard_normal((end - begin, height, width))
    return np.einsum("ir,jr,kr->ijk", lights[begin:end], rows, columns) + 0.5 * noise


chunks = ((50,) * 8, (height,), (width,))
film = da.map_blocks(load, chunks=chunks, dtype=float, meta=np.empty((0, 0, 0)))
print(film)

# %%
# The fit. With ``distributed.Client`` the same line runs on a cluster.

n_read = 0
fit = codiag.factorize(film, n_cells, rng=0)
print(fit)
print(f"chunks loaded: {n_read}, which is {n_read / film.npartitions:.0f} reads of the film")

# %%
# One frame of the film: little but noise. Beside it the cells that were found in all frames together, each as the image
# of its two spatial modes, and their light over time (dark) on top of the true one (pale).

match = codiag.match_components(fit, [lights, rows, columns])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=(1, 1.25))
brightest = int(np.argmax(lights.sum(axis=1)))
left.imshow(film[brightest].compute(), cmap="gray", vmin=-1, vmax=6)
for cell, color in enumerate(COLORS[:n_cells]):
    image = np.abs(np.outer(match.factors[1][:, cell], match.factors[2][:, cell]))
    left.contour(image, levels=[0.4 * image.max()], colors=[color], linewidths=2)
    true = lights[:, cell] / np.linalg.norm(lights[:, cell])
    scale = 1.1 * true.max()
    right.plot(true / scale - cell, color=color, alpha=0.35, linewidth=5)
    right.plot(match.factors[0][:, cell] / scale - cell, color=color, linewidth=1.2)
left.set(title="One frame, and the cells found in all", xticks=[], yticks=[])
right.set(title="Light of every cell: found, over the truth", xlabel="frame", yticks=[], xlim=(0, n_frames))
plt.show()
