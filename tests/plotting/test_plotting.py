"""Every figure that the package draws: what is on it, that nothing overlaps, and that drawing it warns of nothing."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from codiag.diagnosis import leverages
from codiag.labels import Labelled, Labels
from codiag.synthetic import crowd_votes, noisy_tensor, worker_confusions
from codiag.tensors import SparseTensor

pytest.importorskip("matplotlib", reason="matplotlib is not installed; it is the extra 'plot'")

from codiag import plotting
from codiag.plotting import (
    extremes,
    is_line,
    name_along,
    pixel_means,
    residual_entries,
)

DAYS = np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]")
TOWNS = ["Åre", "a very long name of a town that nobody reads", "cost $5 & <b>", "München", "x", "y", "z"]


def data(noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.random((7, 3)), np.cumsum(rng.standard_normal((DAYS.size, 3)), axis=0), rng.random((5, 3))
    clean = np.einsum("ir,jr,kr->ijk", *factors)
    return clean + noise * clean.std() * rng.standard_normal(clean.shape)


@pytest.fixture(scope="module")
def fit():
    return codiag.factorize(Labelled(data(), Labels(("town", "day", "dose"), (TOWNS, DAYS, None))), 3, rng=0)


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
        band = dates.collections[0].get_paths()[0].vertices[:, 1]
        reach = 1.96 * fit.entry_standard_errors[1][:, row]
        assert_allclose(
            [band.min(), band.max()], [(fit.factors[1][:, row] - reach).min(), (fit.factors[1][:, row] + reach).max()]
        )
        assert_allclose([bar.get_height() for bar in doses.patches], fit.factors[2][:, row])  # numbered, in any order
    assert [axes.get_xlabel() for axes in grid[-1]] == ["town", "day", "dose"]
    names = [label.get_text() for label in grid[-1, 0].get_xticklabels()]
    assert names[1:4] == ["a very …y reads", r"cost \$5 & <b>", "München"]
    assert_nothing_overlaps(figure)


def test_a_figure_shows_itself_in_notebooks(fit):
    figure = fit.plot(n_components=1, bands=False)
    assert figure._repr_png_()[:4] == b"\x89PNG"
    assert not figure.axes[2].collections


def test_only_the_largest_of_many_are_drawn():
    many = codiag.factorize(noisy_tensor((9, 10, 11), 8, noise=0.01, rng=0).tensor, 8, rng=0)
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
    same = np.reshape(fit.plot(spatial=(-2, -1)).axes, (3, 2))[0, 1]
    assert_array_equal(same.images[0].get_array(), images[0].images[0].get_array())
    for wrong in ((1, 1), (1, -2), (0, 3), (-4, 0), (0,)):
        with pytest.raises(ValueError, match="^spatial must"):
            fit.plot(spatial=wrong)


def test_labels_a_factor_apart_are_on_a_logarithmic_axis():
    values = [np.array([0.01, 0.03, 0.1, 0.3, 1]), np.arange(1.0, 41), None]
    fit = codiag.factorize(Labelled(data().transpose(2, 1, 0), Labels(("dose", "day", "n"), tuple(values))), 1, rng=0)
    figure = fit.plot()
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "linear", "linear"]
    assert_nothing_overlaps(figure)


def test_symmetric_fits_have_one_column():
    planted = noisy_tensor((6, 6, 6), 2, symmetric=True, noise=0.01, rng=0)
    symmetric = codiag.factorize(planted.tensor, 2, symmetric=True, rng=0)
    for figure, n_axes in ((symmetric.plot(), 2), (plotting.leverage(symmetric), 1)):
        assert len(figure.axes) == n_axes
        assert_nothing_overlaps(figure)
    assert len(plotting.residuals(symmetric, planted.tensor).axes) == 2


def test_errors_that_are_not_known_have_no_bands():
    tensor = data()[:, :12]
    tensor[:2] = np.nan
    lost = codiag.factorize(tensor, 1, rng=0)
    assert np.isnan(lost.entry_standard_errors[0][:2]).all()
    figure = drawn(lost.plot())
    assert np.isfinite(figure.axes[0].get_ylim()).all()
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert np.isnan(heights[:2]).all()  # a gap, not a dip to zero


def test_figures_may_be_drawn_on_axes_of_ones_own(fit):
    with plotting.paper((9, 9)) as figure:
        grid = figure.subplots(3, 3)
        assert plotting.components(fit, axes=grid) is figure
        assert plotting.components(fit, n_components=1, axes=grid[0]) is figure
    with plotting.paper((5, 9)) as figure:
        assert plotting.leverage(fit, axes=figure.subplots(3)) is figure
    with plotting.paper((5, 9)) as figure:
        assert plotting.residuals(fit, data(), axes=figure.subplots(4)) is figure
        with pytest.raises(ValueError, match="^axes must"):
            plotting.residuals(fit, data(), axes=figure.subplots(3))


def test_leverages_are_the_diagonal_of_a_projection(fit):
    factor = fit.factors[1]
    assert_allclose(leverages(factor), np.diag(factor @ np.linalg.pinv(factor)))
    assert np.sum(leverages(np.ones((4, 2)))) == pytest.approx(1)


def test_a_sample_with_large_leverage_is_named():
    tensor = np.random.default_rng(0).random((20, 5, 6)) * 0.01
    tensor[3] += 1
    names = [f"sample {i}" for i in range(20)]
    alone = codiag.factorize(Labelled(tensor, Labels(("s", "t", "u"), (names, None, np.linspace(0, 1, 6)))), 1, rng=0)
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
    with pytest.raises(ValueError, match="^tensor must"):
        plotting.residuals(fit, tensor[:3])


def test_an_exact_fit_has_residuals_to_draw():
    exact = codiag.factorize(np.ones((3, 4, 5)), 1, symmetric=False, rng=0)
    drawn(plotting.residuals(exact, np.ones((3, 4, 5))))
    drawn(plotting.residuals(exact, exact.to_tensor()))


def artists(figure):
    """Return how many things a figure draws, ticks aside, and the most points that one of them has."""
    drawn_ones = [one for axes in figure.axes for one in (*axes.patches, *axes.lines, *axes.collections)]
    points = [len(path.vertices) for one in drawn_ones for path in getattr(one, "get_paths", list)()]
    return len(drawn_ones), max([*points, *(len(line.get_xdata()) for axes in figure.axes for line in axes.lines)])


@pytest.mark.parametrize("words", [True, False])
def test_what_is_drawn_is_bounded_however_long_a_mode_is(words):
    n = 30_000
    rng = np.random.default_rng(0)
    factors = [rng.random((size, 1)) for size in (n, 3, 2)]
    factors[0][n // 2 + 1] *= 5
    tensor = np.einsum("ir,jr,kr->ijk", *factors) + 0.01 * rng.standard_normal((n, 3, 2))
    labels = Labels(("n", "b", "c"), ([f"l{place}" for place in range(n)] if words else None, None, None))
    small = codiag.factorize(tensor[:9], 1, symmetric=False, rng=0)
    norms = [np.linalg.norm(factor) for factor in factors]
    unit = tuple(factor / norm for factor, norm in zip(factors, norms, strict=True))
    problem = codiag.Problem.of_result(small.weights, unit).stating(n_observed=tensor.size, labels=labels)
    long = replace(small, weights=np.array([np.prod(norms)]), factors=unit, problem=problem)
    for figure in (long.plot(), plotting.leverage(long), plotting.residuals(long, tensor)):
        n_drawn, n_points = artists(figure)
        assert n_drawn < 30
        assert n_points < 20_000
    seen = extremes(long.factors[0][:, 0], np.arange(n))
    assert np.all(np.diff(seen) > 0)
    assert n // 2 + 1 in seen  # the largest, which is why one looks
    assert seen.size <= 4000


def test_an_image_of_long_modes_is_that_of_means():
    n = 2500
    a = np.random.default_rng(0).random((n, 1))
    column = pixel_means(a[:, 0])
    assert column.size == 1000
    assert_allclose(np.sum(column * np.diff(np.linspace(0, n, 1001).astype(int))), np.sum(a))


def test_a_figure_has_room_for_so_many_components(monkeypatch):
    monkeypatch.setattr("codiag.plotting._components.MOST_ROWS", 2)
    fit = codiag.factorize(noisy_tensor((4, 5, 6), 3, rng=0).tensor, 3, rng=0)
    figure = plotting.components(fit, n_components=60, bands=False)
    assert len(figure.axes) == 3 * 2
    assert figure.get_suptitle().startswith("the largest 2 of 3 components")


SPANS = np.geomspace(10, 3e15, 12).astype("timedelta64[us]")


@pytest.mark.parametrize("span", [*SPANS, np.timedelta64(0, "us")])
def test_dates_any_time_apart_have_ticks_and_warn_of_nothing(span):
    days = np.datetime64("2020-01-31T13:05:07", "us") + (np.linspace(0, 1, 5) * span.astype(int)).astype(
        "timedelta64[us]"
    )
    with plotting.paper((2.7, 1.5)) as figure:
        axes = figure.subplots()
        axes.plot(days, np.arange(5))
        name_along(axes, "day", days)
        drawn(figure)
    assert any(label.get_text() for label in axes.get_xticklabels())


@pytest.mark.parametrize("own", [[1, 2, 3, 4, np.inf], [1, np.nan, 3, 4, 9], [-np.inf, 1, 2, 3, np.inf]])
def test_labels_that_are_no_numbers_warn_of_nothing(own):
    tensor = Labelled(data()[:5], Labels(("a", "b", "c"), (np.array(own, float), None, None)))
    fit = codiag.factorize(tensor, 1, rng=0)
    for figure in (fit.plot(), plotting.leverage(fit), plotting.residuals(fit, tensor)):
        drawn(figure)


def test_legends_of_a_choice_lie_off_the_data():
    choice = codiag.choose_rank(noisy_tensor((8, 9, 7), 2, noise=0.05, rng=0).tensor, range(1, 5), rng=0)
    figure = drawn(choice.plot())
    renderer = figure.canvas.get_renderer()
    legends = [axes for axes in figure.axes if axes.get_legend() is not None]
    assert len(legends) == 3
    for axes in legends:
        box = axes.get_legend().get_window_extent(renderer)
        assert box.y0 >= axes.bbox.y1 - 2
        assert not box.overlaps(axes.title.get_window_extent(renderer))
    assert_nothing_overlaps(figure)


@pytest.mark.slow
def test_crowds_of_unequal_workers(tmp_path):
    from codiag.models import DawidSkene

    tasks, workers, given = crowd_votes(200, worker_confusions(9, 2, rng=0), rng=1).votes
    kept = np.random.default_rng(0).random(tasks.size) < np.where(workers < 4, 0.02 * (1 + workers), 1)
    names = np.array([f"worker {i}" for i in range(9)])
    table = {"task": tasks[kept], "worker": names[workers[kept]], "label": given[kept]}
    model = DawidSkene(random_state=0).fit(table)
    figure = plotting.confusions(model)
    assert_nothing_overlaps(figure)
    matrices = [axes.images[0].get_array() for axes in figure.axes if axes.images and axes.get_title()]
    order = np.argsort(-model.worker_table()["votes"], kind="stable")
    assert_allclose(matrices, np.swapaxes(model.confusion_matrices_, 1, 2)[order])
    with plotting.paper((12, 3)) as own:
        assert plotting.confusions(model, n_workers=4, axes=own.subplots(1, 5)) is own


def jury(n_judges, n_clusters):
    """Return a fitted crowd in which judges of clusters, each of two, give the same votes."""
    from codiag.models import Jury

    crowd = crowd_votes(120, worker_confusions(n_judges, 2, rng=0), rng=1)
    matrix = crowd.votes[2].reshape(120, n_judges)
    matrix[:, n_judges - n_clusters :] = matrix[:, :n_clusters]
    task, worker = np.indices(matrix.shape).reshape(2, -1)
    names = np.array([f"judge with a long name {place:02d}" for place in range(n_judges)])
    return Jury(random_state=0).fit((task, names[worker], matrix.ravel()))


@pytest.mark.parametrize(("n_judges", "n_clusters"), [(5, 0), (8, 2), (30, 3), (45, 1)])
def test_dependence_is_drawn_by_cluster(n_judges, n_clusters):
    model = jury(n_judges, n_clusters)
    figure = plotting.dependence(model)
    assert_nothing_overlaps(figure)
    axes = figure.axes[0]
    clusters = model.worker_table()["cluster"]
    order = [*np.flatnonzero(clusters), *np.flatnonzero(clusters == 0)]
    order = sorted(order, key=lambda place: clusters[place] or n_judges)
    assert_allclose(axes.images[0].get_array().filled(np.nan), model.dependence_[np.ix_(order, order)])
    frames = [patch for patch in axes.patches if not patch.get_fill()]
    assert [frame.get_width() for frame in frames] == [len(names) for names in model.clusters_]
    for frame, names in zip(frames, model.clusters_, strict=True):
        start = round(frame.get_x() + 0.5)
        assert set(model.workers_[order[start : start + len(names)]]) == set(names)
    assert len(axes.get_yticklabels()) == (n_judges if n_judges <= 40 else 0)
    with plotting.paper((4, 4)) as own:
        assert plotting.dependence(model, axes=own.subplots()) is own


def test_dependence_that_is_not_known_is_gray():
    from codiag.models import Jury

    task, worker = np.indices((120, 5)).reshape(2, -1)
    labels = np.random.default_rng(0).integers(0, 2, task.size)
    apart = (worker > 1) | (task % 2 == worker)  # the first two have no task in common
    model = Jury(random_state=0, clusters=None).fit((task[apart], worker[apart], labels[apart]))
    image = plotting.dependence(model).axes[0].images[0]
    colors = image.cmap(image.norm(image.get_array()))
    assert_allclose(colors[0, 1, :3], np.array([0x8D, 0x99, 0xA6]) / 255)
    assert_allclose(image.cmap(image.norm(0.0))[:3], 1, atol=0.05)  # independence has the color of the page
    with pytest.raises(TypeError, match="^model must"):
        plotting.dependence(codiag.models.SOBI().fit(np.random.default_rng(0).standard_normal((200, 3))))


@pytest.mark.parametrize("n_workers", [1, 3, 9, 12])
@pytest.mark.parametrize("classes", [["bad", "good", "unclear"], ["a rather long name", "b", "c", "d", "e"]])
def test_classes_beside_confusion_matrices_do_not_overlap(n_workers, classes):
    from codiag.models import DawidSkene

    labels = np.random.default_rng(0).choice(classes, (12, n_workers))
    model = DawidSkene(init="majority", smoothing=1.0, max_iter=1, tol=0)
    model._fit(np.concatenate([np.array(classes)[:, None].repeat(n_workers, axis=1), labels]))
    figure = plotting.confusions(model)
    assert_nothing_overlaps(figure)
    named = {text.get_text() for axes in figure.axes for text in axes.get_xticklabels()}
    assert classes[1] in named
    assert "unclear" in named or len(classes) == 5


@pytest.mark.parametrize(("low", "high"), [(1, 1000), (3, 7), (20, 150), (1e-9, 1e3), (5, 5), (95, 105)])
def test_logarithmic_ticks_are_few_and_apart(low, high):
    with plotting.paper((3, 2)) as figure:
        axes = figure.subplots()
        axes.plot([low, high], [low, high])
        plotting.log_axis(axes.xaxis, [low, high])
        plotting.log_axis(axes.yaxis, [low, high])
        assert_nothing_overlaps(figure)
        for axis in (axes.xaxis, axes.yaxis):
            inside = [tick for tick in axis.get_majorticklocs() if np.prod(axis.get_view_interval() - tick) <= 0]
            assert 1 <= len(inside) <= 7


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
    evil = codiag.factorize(Labelled(data(), Labels(("<b>", "day", "dose"), (names, DAYS, None))), 1, rng=0)
    assert "<script>" not in evil._repr_html_()
    assert "<b>" not in evil._repr_html_()
    wide = codiag.factorize(noisy_tensor((9, 9, 9), 4, symmetric=True, rng=0).tensor, 4, symmetric=True, rng=0)
    assert "standard error" not in wide._repr_html_()  # until they are asked for: showing a fit computes nothing
    assert wide.standard_errors.shape == (3, 4)
    assert "all modes: standard error" in wide._repr_html_()
    joint = codiag.joint_diagonalize(np.eye(3)[None] * np.arange(1, 5.0)[:, None, None], rng=0)
    assert joint._repr_html_().count("<td>no</td>") == 3


@pytest.mark.parametrize(
    ("index", "smooth", "expected"),
    [
        (None, True, True),
        (None, False, False),
        (np.arange(40), False, False),
        (np.arange(1, 41), True, True),
        (np.arange(1980, 2020), False, True),
        (np.linspace(300.0, 400.0, 40), False, True),
        (np.array([f"n{i}" for i in range(40)]), True, False),
    ],
)
def test_rows_that_are_merely_numbered_are_bars_unless_neighbors_are_alike(index, smooth, expected):
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((40, 3))
    assert is_line(index, np.cumsum(steps, axis=0) if smooth else steps) == expected


def test_order_is_seen_by_chance_in_few_modes_that_have_none():
    """Two standard deviations on one side: one in 44 of many modes in any order."""
    rng = np.random.default_rng(0)
    drawn = [is_line(None, rng.exponential(size=(60, 3))) for _ in range(2000)]
    assert 0.005 < np.mean(drawn) < 0.05


def test_components_of_neurons_are_bars_and_rows_say_what_they_are():
    rng = np.random.default_rng(1)
    waves = np.stack([np.sin(np.linspace(0, 3 * (c + 1), 50)) for c in range(2)], axis=1)
    tensor = np.einsum("ir,jr,kr->ijk", rng.exponential(size=(30, 2)), waves, rng.exponential(size=(20, 2)))
    fit = codiag.factorize(tensor + 1e-3 * rng.standard_normal(tensor.shape), 2, rng=0)
    figure = fit.plot()
    neurons, times, _ = figure.axes[:3]
    assert len(neurons.patches) == 30
    assert not neurons.lines or all(len(line.get_xdata()) == 2 for line in neurons.lines)  # the line at zero
    assert any(len(line.get_xdata()) == 50 for line in times.lines)
    assert [axis.get_ylabel() for axis in figure.axes[::3]] == [
        f"component {row}\nweight {weight:.3g}" for row, weight in enumerate(fit.weights, 1)
    ]


def test_bars_that_are_not_known_are_crosses_and_not_zeros(fit):
    factors = [factor.copy() for factor in fit.factors]
    factors[0][2] = np.nan  # a town; dates are lines
    holed = replace(fit, factors=tuple(factors))
    figure = plotting.components(holed, bands=False)
    assert "a cross or a gap is not known" in figure.get_suptitle()
    bars = [axis for axis in figure.axes if axis.patches]
    crosses = [line for axis in bars for line in axis.lines if line.get_marker() == "x"]
    assert_array_equal([line.get_xdata() for line in crosses], [[2]] * len(crosses))
    assert len(crosses) == fit.rank
    assert "not known" not in plotting.components(fit).get_suptitle()


@pytest.mark.parametrize("spatial", [None, (1, 2)])
def test_of_complex_factors_magnitudes_are_drawn_and_named(spatial):
    rng = np.random.default_rng(0)
    factors = [rng.standard_normal((size, 2)) + 1j * rng.standard_normal((size, 2)) for size in (6, 5, 4)]
    fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", *factors), 2, rng=0)
    figure = plotting.components(fit, spatial=spatial)
    assert figure.get_suptitle() == "2 components, with their weights: magnitudes of complex entries"
    figure.savefig(BytesIO(), format="svg")
