"""Every figure that the package draws: what is on it, that nothing overlaps, and that drawing it warns of nothing."""

from __future__ import annotations

import logging
from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag.synthetic import crowd_votes, noisy_tensor, worker_errors
from codiag.tables import Labelled, Labels
from codiag.tensors import SparseTensor

pytest.importorskip("matplotlib", reason="matplotlib is not installed; it is the extra 'plot'")

from codiag import plotting
from codiag.plotting._leverage import leverages
from codiag.plotting._residuals import residual_entries
from codiag.plotting._style import families, shown
from codiag.plotting._ticks import log_ticks, short

DAYS = np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]")
TOWNS = ["東京", "a very long name of a town that nobody reads", "cost $5 & <b>", "München", "x", "y", "z"]


def data(noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.random((7, 3)), np.cumsum(rng.standard_normal((DAYS.size, 3)), axis=0), rng.random((5, 3))
    clean = np.einsum("ir,jr,kr->ijk", *factors)
    return clean + noise * clean.std() * rng.standard_normal(clean.shape)


@pytest.fixture(scope="module")
def fit():
    return codiag.factorize(Labelled(data(), Labels(("town", "day", "dose"), (TOWNS, DAYS, None))), 3, seed=0)


def drawn(figure):
    """Draw a figure, and return it."""
    figure.savefig(BytesIO(), format="png", dpi=60)
    return figure


def assert_nothing_overlaps(figure):
    """Check the labels of ticks and axes, panel by panel, in both directions."""
    renderer = drawn(figure).canvas.get_renderer()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts = [text for tick in ticks for text in (tick.label1,) if text.get_visible() and text.get_text()]
            boxes = [text.get_window_extent(renderer) for text in (*texts, axis.label) if text.get_text()]
            for place, box in enumerate(boxes):
                assert not any(box.overlaps(other) for other in boxes[place + 1 :]), (axis, texts)


def test_components_are_lines_bars_and_bands(fit):
    figure = fit.plot()
    grid = np.reshape(figure.axes, (3, 3))
    for row, (bars, dates, doses) in enumerate(grid):
        assert_allclose([bar.get_height() for bar in bars.patches], fit.factors[0][:, row])
        line = next(line for line in dates.lines if len(line.get_xdata()) == DAYS.size)
        assert_allclose(line.get_ydata(), fit.factors[1][:, row])
        band = doses.collections[0].get_paths()[0].vertices[:, 1]
        reach = 1.96 * fit.entry_standard_errors[2][:, row]
        assert_allclose(
            [band.min(), band.max()], [(fit.factors[2][:, row] - reach).min(), (fit.factors[2][:, row] + reach).max()]
        )
    assert [axes.get_xlabel() for axes in grid[-1]] == ["town", "day (2024)", "dose"]
    names = [label.get_text() for label in grid[-1, 0].get_xticklabels()]
    assert names[1:4] == ["a very …y reads", r"cost \$5 & <b>", "München"]
    assert_nothing_overlaps(figure)


def test_a_figure_shows_itself_in_notebooks(fit):
    figure = fit.plot(n_components=1, bands=False)
    assert figure._repr_png_()[:4] == b"\x89PNG"
    assert not figure.axes[2].collections


def test_only_the_largest_of_many_are_drawn():
    many = codiag.factorize(noisy_tensor((9, 10, 11), 8, noise=0.01, seed=0).tensor, 8, seed=0)
    figure = many.plot(n_components=2)
    assert len(figure.axes) == 6
    assert figure.get_suptitle() == "the largest 2 of 8 components, with their weights"
    assert_nothing_overlaps(figure)


def test_two_modes_may_be_an_image(fit):
    figure = fit.plot(spatial=(1, 2))
    images = np.reshape(figure.axes, (3, 2))[:, 1]
    for row, axes in enumerate(images):
        assert_allclose(axes.images[0].get_array(), np.outer(fit.factors[1][:, row], fit.factors[2][:, row]))
    assert_nothing_overlaps(figure)
    for wrong in ((1, 1), (0, 3), (0,)):
        with pytest.raises(ValueError, match="spatial must be two different modes"):
            fit.plot(spatial=wrong)


def test_labels_a_factor_apart_are_on_a_logarithmic_axis():
    values = [np.array([0.01, 0.03, 0.1, 0.3, 1]), np.arange(1.0, 41), None]
    fit = codiag.factorize(Labelled(data().transpose(2, 1, 0), Labels(("dose", "day", "n"), tuple(values))), 1, seed=0)
    figure = fit.plot()
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "linear", "linear"]
    assert_nothing_overlaps(figure)


def test_symmetric_fits_have_one_column():
    planted = noisy_tensor((6, 6, 6), 2, symmetric=True, noise=0.01, seed=0)
    symmetric = codiag.factorize(planted.tensor, 2, seed=0)
    for figure, n_axes in ((symmetric.plot(), 2), (plotting.leverage(symmetric), 1)):
        assert len(figure.axes) == n_axes
        assert_nothing_overlaps(figure)
    assert len(plotting.residuals(symmetric, planted.tensor).axes) == 2


def test_errors_that_are_not_known_have_no_bands():
    tensor = data()[:, :12]
    tensor[0] = np.nan
    lost = codiag.factorize(tensor, 1, seed=0)
    assert np.isinf(lost.entry_standard_errors[0]).any()
    assert np.isfinite(drawn(lost.plot()).axes[0].get_ylim()).all()


def test_figures_may_be_drawn_on_axes_of_ones_own(fit):
    with plotting.paper((9, 9)) as figure:
        grid = figure.subplots(3, 3)
        assert plotting.components(fit, axes=grid) is figure
        assert plotting.components(fit, n_components=1, axes=grid[0]) is figure
    with plotting.paper((5, 9)) as figure:
        assert plotting.leverage(fit, axes=figure.subplots(3)) is figure
    with plotting.paper((5, 9)) as figure:
        assert plotting.residuals(fit, data(), axes=figure.subplots(4)) is figure
        with pytest.raises(ValueError, match=r"axes must be 4 x 1 axes of matplotlib.*got 3"):
            plotting.residuals(fit, data(), axes=figure.subplots(3))


def test_leverages_are_the_diagonal_of_a_projection(fit):
    factor = fit.factors[1]
    assert_allclose(leverages(factor), np.diag(factor @ np.linalg.pinv(factor)))
    assert np.sum(leverages(np.ones((4, 2)))) == pytest.approx(1)


def test_a_sample_with_large_leverage_is_named():
    tensor = np.random.default_rng(0).random((20, 5, 6)) * 0.01
    tensor[3] += 1
    names = [f"sample {i}" for i in range(20)]
    alone = codiag.factorize(Labelled(tensor, Labels(("s", "t", "u"), (names, None, np.linspace(0, 1, 6)))), 1, seed=0)
    figure = plotting.leverage(alone)
    assert [text.get_text() for text in figure.axes[0].texts] == ["sample 3"]
    assert_nothing_overlaps(figure)


def test_residuals_are_those_of_the_observed_entries(fit):
    tensor = data()
    tensor[2, 3, 4] = np.nan
    left = residual_entries(fit, tensor, None)
    assert_array_equal(left, tensor - fit.to_tensor())
    seen = np.isfinite(tensor)
    listed = SparseTensor(np.stack(np.nonzero(seen)), tensor[seen], tensor.shape, absent="missing")
    assert_allclose(residual_entries(fit, listed, None), left)
    assert_array_equal(np.isnan(residual_entries(fit, data(), seen)), ~seen)
    figure = plotting.residuals(fit, tensor)
    sizes = [bar.get_height() for bar in figure.axes[0].patches]
    assert_allclose(sizes, np.sqrt(np.nanmean(left**2, axis=(1, 2))))
    assert_nothing_overlaps(figure)
    with pytest.raises(ValueError, match="tensor must have the shape of the fit"):
        plotting.residuals(fit, tensor[:3])


def test_an_exact_fit_has_residuals_to_draw():
    exact = codiag.factorize(np.ones((3, 4, 5)), 1, symmetric=False, seed=0)
    drawn(plotting.residuals(exact, np.ones((3, 4, 5))))


def test_crowds_of_unequal_workers(tmp_path):
    from codiag.models import DawidSkene

    tasks, workers, given = crowd_votes(200, worker_errors(9, 2, seed=0), seed=1).votes
    kept = np.random.default_rng(0).random(tasks.size) < np.where(workers < 4, 0.02 * (1 + workers), 1)
    names = np.array([f"工人{i}" for i in range(9)])
    table = {"task": tasks[kept], "worker": names[workers[kept]], "label": given[kept]}
    plotting.draw_confusions(DawidSkene(random_state=0).fit(table), tmp_path / "crowd.png")
    assert (tmp_path / "crowd.png").stat().st_size > 1e4


@pytest.mark.parametrize(("low", "high"), [(1, 1000), (3, 7), (20, 150), (1e-9, 1e3), (5, 5), (95, 105)])
def test_logarithmic_ticks_are_few_and_apart(low, high):
    ticks = log_ticks(low, high)
    assert 1 <= len(ticks) <= 6
    with plotting.paper((3, 2)) as figure:
        axes = figure.subplots()
        axes.plot([low, high], [low, high])
        plotting.log_axis(axes.xaxis, [low, high])
        plotting.log_axis(axes.yaxis, [low, high])
        assert_nothing_overlaps(figure)


def test_numbers_are_written_as_people_do():
    assert [short(value) for value in (0.003, 200.0, 1e-7, 5e-7, 2e5)] == ["0.003", "200", "10⁻⁷", "5·10⁻⁷", "2·10⁵"]


def test_characters_that_no_font_has_are_boxes_and_no_warnings(fit, caplog):
    with caplog.at_level(logging.WARNING, logger="matplotlib"):
        drawn(fit.plot(n_components=1, bands=False))
    assert caplog.records == []
    assert shown("\U0001fbff\U000f0000", 9) == "□□"
    assert shown("München ≤ 3 µm", 20) == "München ≤ 3 µm"
    assert families()[0] == "DejaVu Sans"


def test_colors_are_different_for_any_color_vision():
    """Okabe and Ito's, in effect: with red and green taken together, as most of the color-blind see, all differ."""
    codes = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in plotting.COLORS], dtype=float)
    seen = np.stack([0.6 * codes[:, 0] + 0.4 * codes[:, 1], codes[:, 2]], axis=1)
    gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.diag(np.full(len(codes), np.inf))
    assert gaps.min() > 20


def test_tables_for_notebooks(fit):
    table = fit._repr_html_()
    assert table.count("<tr>") == 4
    assert "town: largest at" in table
    assert "7 town x 40 day x 5 dose" in table
    names = ["<script>", *TOWNS[1:]]
    evil = codiag.factorize(Labelled(data(), Labels(("<b>", "day", "dose"), (names, DAYS, None))), 1, seed=0)
    assert "<script>" not in evil._repr_html_()
    assert "<b>" not in evil._repr_html_()
    wide = codiag.factorize(noisy_tensor((9, 9, 9), 4, symmetric=True, seed=0).tensor, 4, seed=0)
    assert "all modes: standard error" in wide._repr_html_()
    joint = codiag.joint_diagonalize(np.eye(3)[None] * np.arange(1, 5.0)[:, None, None], seed=0)
    assert joint._repr_html_().count("<td>no</td>") == 3
