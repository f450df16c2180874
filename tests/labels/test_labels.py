"""Labels of the data: read from what users hold, and there again in what they get."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone

import codiag
from codiag.io import labelled_tensor
from codiag.labels import Labelled, Labels
from codiag.models import CP
from codiag.tensors import SparseTensor

PEOPLE = ["ann", "bob", "cem", "dan", "eve"]
DAYS = np.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-05"], dtype="datetime64[D]").astype(
    "datetime64[ns]"
)
WAVES = np.linspace(300.0, 350.5, 6)
VALUES = (np.array(PEOPLE), DAYS, WAVES)
NAMES = ("person", "day", "wave")


def entries():
    rng = np.random.default_rng(0)
    return np.einsum("ir,jr,kr->ijk", *(rng.random((len(own), 2)) for own in VALUES)) + 0.01 * rng.random((5, 4, 6))


def data_array():
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(entries(), dims=NAMES, coords=dict(zip(NAMES, VALUES, strict=True)))


def series():
    pandas = pytest.importorskip("pandas")
    index = pandas.MultiIndex.from_product(VALUES, names=NAMES)
    shuffled = pandas.Series(entries().ravel(), index).sample(frac=1, random_state=0)
    # Text labels are in the order of their first rows.
    first = [shuffled.index.get_loc((name, DAYS[0], WAVES[0])) for name in PEOPLE]
    return shuffled.iloc[[*first, *np.setdiff1d(np.arange(len(shuffled)), first)]]


def pandas_table():
    return series().reset_index(name="intensity")


def polars_table(table=None):
    polars = pytest.importorskip("polars")
    table = pandas_table() if table is None else table
    return polars.DataFrame({name: table[name].to_numpy() for name in table.columns})


def pyarrow_table(table=None):
    pyarrow = pytest.importorskip("pyarrow")
    table = pandas_table() if table is None else table
    return pyarrow.table({name: table[name].to_numpy() for name in table.columns})


def lazy_table(table=None):
    return polars_table(table).lazy()


FORMS = {
    "xarray": data_array,
    "series": series,
    "pandas": pandas_table,
    "polars": polars_table,
    "lazy": lazy_table,
    "pyarrow": pyarrow_table,
}
OTHERS = {"polars": polars_table, "lazy": lazy_table, "pyarrow": pyarrow_table}
LIBRARY = {"series": "pandas", "lazy": "polars"}
EVERY = pytest.mark.parametrize("form", FORMS)


@EVERY
def test_labels_are_read_and_change_nothing(form):
    fit = codiag.factorize(FORMS[form](), 2, rng=0)
    plain = codiag.factorize(entries(), 2, rng=0)
    assert fit.problem.labels.names == NAMES
    for own, expected in zip(fit.problem.labels.values, VALUES, strict=True):
        assert_array_equal(own, expected)
    assert_array_equal(fit.weights, plain.weights)
    assert repr(fit).startswith("Factorization(2 components of a tensor 5 person x 4 day x 6 wave, relative_error")
    assert plain.problem.labels is None


@EVERY
def test_rows_that_are_left_out_are_missing(form):
    pytest.importorskip(LIBRARY.get(form, form))
    table = pandas_table()
    table = table[~((table["person"] == "ann") & (table["day"] == DAYS[1]) & (table["wave"] == WAVES[2]))]
    in_series = table.set_index(list(NAMES))["intensity"]
    kept = {"xarray": in_series.to_xarray, "series": lambda: in_series, "pandas": lambda: table}
    kept = kept[form]() if form in kept else OTHERS[form](table)
    expected = entries()
    expected[0, 1, 2] = np.nan
    fit = codiag.factorize(kept, 2, rng=0)
    assert fit.problem.n_observed == 119
    assert_array_equal(fit.weights, codiag.factorize(expected, 2, rng=0).weights)


def test_rows_that_are_left_out_may_be_zero():
    table = pandas_table()
    tensor, _ = labelled_tensor(table[table["person"] != "ann"].iloc[:-20], absent="zero")
    assert isinstance(tensor, np.ndarray)
    assert np.sum(tensor == 0) == 20


@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_few_rows_make_a_list(absent):
    rng = np.random.default_rng(0)
    places = np.unravel_index(rng.choice(30**3, 500, replace=False), (30, 30, 30))
    table = pytest.importorskip("pandas").DataFrame(dict(zip("abc", places, strict=True)))
    table["value"] = np.ones(500)
    tensor, labels = labelled_tensor(table, absent=absent)
    assert isinstance(tensor, SparseTensor)
    assert tensor.absent == absent
    dense = np.zeros((30, 30, 30))
    dense[places] = 1
    assert_array_equal(tensor.to_dense(), dense[np.ix_(*labels.values)])


@pytest.mark.parametrize("absent", ["missing", "zero"])
@pytest.mark.parametrize(("size", "n_listed"), [(4, 60), (12, 120)])
def test_an_empty_cell_is_a_missing_entry_whatever_is_not_listed(absent, size, n_listed):
    """A few combinations of many, and many of few: one list, and one array."""
    rng = np.random.default_rng(0)
    places = np.unravel_index(rng.choice(size**3, n_listed, replace=False), (size,) * 3)
    values = rng.random(n_listed)
    values[7] = np.nan
    columns = dict(zip("abc", places, strict=True)) | {"value": values}
    tensor, labels = labelled_tensor(pytest.importorskip("pandas").DataFrame(columns), absent=absent)
    expected = np.full((size,) * 3, np.nan if absent == "missing" else 0.0)
    expected[places] = values
    expected = expected[np.ix_(*labels.values)]
    problem = codiag.Problem(tensor, 1)
    n_observed = tensor.size if problem.entries is None else problem.entries.counts()[0].sum()
    assert n_observed == np.isfinite(expected).sum()
    whole = problem.tensor.to_dense()
    assert_array_equal(whole[np.isfinite(expected)], expected[np.isfinite(expected)])


def test_columns_may_be_named_and_categories_keep_their_order():
    pandas = pytest.importorskip("pandas")
    table = pandas_table()
    table["person"] = pandas.Categorical(table["person"], ["eve", "zoe", "dan", "cem", "bob", "ann"])
    table["note"] = "nothing"
    tensor, labels = labelled_tensor(table, modes=["wave", "person", "day"], value="intensity")
    assert labels.names == ("wave", "person", "day")
    assert labels.values[1].tolist() == ["eve", "dan", "cem", "bob", "ann"]
    assert_array_equal(tensor, entries()[::-1].transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("appearing", "expected"),
    [
        (["Jan", "Feb", "Mar"], ["Jan", "Feb", "Mar"]),
        (["store10", "store2", "store11"], ["store10", "store2", "store11"]),
        ([10, 9, 11], [9, 10, 11]),
    ],
)
def test_text_is_in_the_order_of_the_table_and_numbers_are_sorted(appearing, expected):
    pandas = pytest.importorskip("pandas")
    index = pandas.MultiIndex.from_product([appearing, range(3), range(4)], names=["label", "b", "c"])
    table = pandas.Series(np.arange(len(index), dtype=float), index)
    tensor, labels = labelled_tensor(table)
    assert labels.values[0].tolist() == expected
    order = [appearing.index(label) for label in expected]
    assert_array_equal(tensor, table.to_numpy().reshape(-1, 3, 4)[order])


def test_categories_keep_their_order_in_every_library():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    order = ["eve", "zoe", "dan", "cem", "bob", "ann"]
    table = pandas_table().assign(person=lambda table: pandas.Categorical(table["person"], order))
    frames = [polars_table().with_columns(polars.col("person").cast(polars.Enum(order)))]
    frames.append(pytest.importorskip("pyarrow").Table.from_pandas(table))
    for frame in frames:
        tensor, labels = labelled_tensor(frame)
        assert labels.values[0].tolist() == ["eve", "dan", "cem", "bob", "ann"]
        assert_array_equal(tensor, entries()[::-1])
    text = polars_table().with_columns(polars.col("person").cast(polars.Categorical))
    assert labelled_tensor(text).labels.values[0].tolist() == PEOPLE


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_missing_cells_of_every_library_are_missing(library):
    pytest.importorskip(library)
    table = pandas_table()
    values = [None if place == 7 else value for place, value in enumerate(table["intensity"].tolist())]
    columns = {name: table[name].to_numpy() for name in NAMES}
    frame = pytest.importorskip("polars").DataFrame(columns | {"intensity": values})
    tensor, _ = labelled_tensor(frame if library == "polars" else frame.to_arrow())
    assert np.isnan(tensor).sum() == 1
    whole = pytest.importorskip("pandas").DataFrame(columns | {"intensity": np.arange(120)})
    whole["intensity"] = whole["intensity"].astype("Int64").mask(np.arange(120) == 7)
    assert np.isnan(labelled_tensor(whole).tensor).sum() == 1


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_results_are_frames_of_other_libraries(library):
    pytest.importorskip(library)
    fit = codiag.factorize(Labelled(entries(), Labels(NAMES, VALUES)), 2, rng=0)
    table = fit.to_table(library)
    assert type(table).__module__.partition(".")[0] == library
    rows = {name: np.asarray(table[name]) for name in ("component", "mode", "label", "value")}
    assert rows["label"][rows["mode"] == "person"].tolist() == [*PEOPLE, *PEOPLE]
    assert_array_equal(rows["value"][(rows["mode"] == "wave") & (rows["component"] == 1)], fit.factors[2][:, 1])


@EVERY
def test_results_are_in_the_labels_of_the_data(form):
    fit = codiag.factorize(FORMS[form](), 2, rng=0)
    table = fit.to_table()
    assert list(table["mode"].unique()) == list(NAMES)
    assert_array_equal(table[(table["mode"] == "person") & (table["label"] == "cem")]["value"], fit.factors[0][2])
    assert bool((table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all())
    pytest.importorskip("xarray")
    found = fit.to_xarray()
    assert_array_equal(found["factor_wave"].sel(wave=WAVES[3]), fit.factors[2][3])
    assert_array_equal(found["factor_day"].sel(day="2024-01-05"), fit.factors[1][3])
    assert found["weights"].dims == ("component",)
    model = (found["weights"] * found["factor_person"] * found["factor_day"] * found["factor_wave"]).sum("component")
    assert_allclose(model.transpose(*NAMES), fit.to_tensor(), atol=1e-12)


def test_results_without_labels_are_counted():
    fit = codiag.factorize(entries(), 2, rng=0)
    table = fit.to_table(standard_errors=False)
    assert list(table["mode"].unique()) == ["mode_0", "mode_1", "mode_2"]
    assert "low" not in table.columns
    assert table[table["mode"] == "mode_1"]["label"].tolist() == [0, 1, 2, 3] * 2
    pytest.importorskip("xarray")
    assert fit.to_xarray()["factor_mode_2"].shape == (6, 2)


def test_files_and_copies_keep_labels(tmp_path):
    labels = Labels(("who", "when", "what"), (PEOPLE, DAYS, None))
    fit = codiag.factorize(Labelled(entries(), labels), 2, rng=0)
    fit.save(tmp_path / "fit.npz")
    for again in (codiag.Factorization.load(tmp_path / "fit.npz"), pickle.loads(pickle.dumps(fit))):
        assert again.problem.labels.names == ("who", "when", "what")
        assert again.problem.labels.values[2] is None
        for own, expected in zip(again.problem.labels.values[:2], VALUES, strict=False):
            assert_array_equal(own, expected)
            assert own.dtype == expected.dtype


def test_diagnoses_name_rows_by_their_labels():
    tensor = entries()
    tensor[2] = np.nan
    fit = codiag.factorize(Labelled(tensor, Labels(NAMES, VALUES)), 1, rng=0)
    assert "Nothing was observed at index cem of person" in str(fit.diagnose())


def test_labels_of_other_kinds_are_written_out():
    labels = Labels(("a",), ([("x", 1), ("y", 2.5)],))
    assert Labels(("a",), (np.array(["x", 1], dtype=object),)).values[0].tolist() == ["x", "1"]
    assert labels.values[0].tolist() == ["('x', 1)", "('y', 2.5)"]


def test_estimators_and_transform_know_them():
    new = data_array()
    model = CP(2, random_state=0).fit(new)
    assert model.decomposition_.problem.labels.names == NAMES
    assert_array_equal(model.transform(new[:2]), model.transform(entries()[:2]))
    fit = codiag.factorize(new, 2, rng=0)
    assert_array_equal(fit.transform(new[1:3]), fit.transform(entries()[1:3]))
    with pytest.raises(ValueError, match="those of 'wave' differ"):
        fit.transform(new[:, :, ::-1])
    with pytest.raises(ValueError, match="those of 'day' differ"):
        fit.transform(new.rename(day="night"))


def test_a_model_returns_the_labels_of_samples_as_a_fit_does():
    new = FORMS["xarray"]()
    model = CP(2, random_state=0).fit(new)
    for given in (new[1:3], new.transpose("wave", "person", "day")):
        found = model.transform(given)
        assert found.dims == ("person", "component")
        assert found.identical(model.decomposition_.transform(given))
    assert isinstance(model.transform(entries()), np.ndarray)
    assert isinstance(CP(2, random_state=0).fit(entries()).transform(new), type(new))
    pytest.importorskip("pandas")
    assert model.set_output(transform="pandas").transform(new).index.tolist() == new.person.values.tolist()


def backwards(form):
    """Return the data in another order: the columns of a table or the modes of an array, which have names."""
    whole = FORMS[form]()
    if form == "xarray":
        return whole.transpose("wave", "person", "day")
    if form == "series":
        return whole.iloc[::-1].reorder_levels(["wave", "person", "day"])
    order = ["wave", "day", "intensity", "person"]
    return whole[order] if form == "pandas" else whole.select(order)


@EVERY
def test_data_of_one_form_is_placed_by_its_names_in_a_fit_of_another(form):
    given = backwards(form)
    for source in {"xarray", form}:
        fit, model = codiag.factorize(FORMS[source](), 2, rng=0), CP(2, random_state=0).fit(FORMS[source]())
        assert_array_equal(fit.transform(given), fit.transform(entries()))
        assert_array_equal(model.transform(given), model.transform(entries()))
        assert model.score(given) == model.score(entries())


@EVERY
def test_other_labels_are_refused_wherever_a_fit_meets_data(form):
    pytest.importorskip("matplotlib")
    fit, model = codiag.factorize(FORMS[form](), 2, rng=0), CP(2, random_state=0).fit(FORMS[form]())
    new = data_array()[:, :, ::-1]
    if form != "xarray":
        later = changed(wave=pandas_table()["wave"] + 1)
        new = {"series": later.set_index(list(NAMES))["intensity"], "pandas": later}.get(form)
        new = OTHERS[form](later) if form in OTHERS else new
    for meets in (fit.transform, model.transform, model.score, lambda new: codiag.plotting.residuals(fit, new)):
        with pytest.raises(ValueError, match=r"(those of 'wave' differ|of those of 'wave' differ, such as)"):
            meets(new)


@pytest.mark.parametrize("form", ["series", "pandas", *OTHERS])
def test_what_a_new_table_does_not_list_is_missing(form):
    pytest.importorskip(LIBRARY.get(form, form))
    fit = codiag.factorize(data_array(), 2, rng=0)
    table = pandas_table().query("person == 'cem' and wave < 345 and day > '2024-01-01'")
    kept = {"series": table.set_index(list(NAMES))["intensity"], "pandas": table}.get(form)
    kept = OTHERS[form](table) if form in OTHERS else kept
    expected = entries()[2:3]
    expected[:, 0], expected[:, :, 5] = np.nan, np.nan
    assert_allclose(fit.transform(kept), fit.transform(expected), atol=1e-12)


def test_samples_keep_their_labels_in_data_frames():
    pytest.importorskip("pandas")
    whole, table = data_array(), pandas_table()
    for given in (whole, table):
        model = CP(2, random_state=0).set_output(transform="pandas").fit(given)
        for frame in (model.transform(given), clone(model).fit_transform(given)):
            assert frame.index.tolist() == PEOPLE
            assert frame.index.name == "person"
            assert list(frame.columns) == ["cp0", "cp1"]
    with config_context(transform_output="pandas"):
        assert CP(2, random_state=0).fit(whole).transform(whole[3:]).index.tolist() == PEOPLE[3:]


def test_a_frame_of_one_column_is_labelled_by_its_index():
    frame = series().to_frame("intensity")
    fit = codiag.factorize(frame, 2, rng=0)
    assert fit.problem.labels.names == NAMES
    assert_array_equal(fit.transform(frame), fit.transform(entries()))


def test_a_wide_table_and_row_numbers_are_told_from_labels():
    wide = pandas_table().pivot_table(index=["person", "day"], columns="wave", values="intensity").reset_index()
    numbered = pandas_table().assign(row=range(120))[["row", *NAMES, "intensity"]]
    for table in (wide, numbered):
        with pytest.raises(ValueError, match=r"^a table must list more than .* `modes` and `value`, .* melt"):
            codiag.factorize(table, 2)


def timed(unit):
    pandas = pytest.importorskip("pandas")
    days = pandas.DatetimeIndex(DAYS)
    zone = days.tz_localize("UTC").tz_convert("Asia/Tokyo")
    dates = np.empty(4, object)
    dates[:] = days.date
    return {"zone": zone, "dates": dates, "stamps": days.to_pydatetime()}[unit]


@pytest.mark.parametrize("unit", ["zone", "dates", "stamps"])
def test_dates_of_any_library_are_dates(unit):
    own = Labels(("day",), (timed(unit),)).values[0]
    assert own.dtype.kind == "M"
    assert_array_equal(own, DAYS)


def test_labels_stay_as_different_as_they_are():
    labels = Labels(
        ("a", "b", "c"), (np.array([1, "1", "x"], object), np.array([b"a", b"b"]), np.array([1, 2], object))
    )
    assert labels.values[0].tolist() == ["1", "'1'", "'x'"]
    assert labels.values[1].tolist() == ["a", "b"]
    assert labels.values[2].dtype.kind == "i"


def test_a_fit_takes_its_own_data_whatever_its_labels():
    labels = (np.array([1.0, np.nan, 3, 4, 5]), np.append(DAYS[:3], np.datetime64("NaT", "D")), None)
    data = Labelled(entries(), Labels(NAMES, labels))
    fit = codiag.factorize(data, 2, rng=0)
    for mode in range(3):
        assert fit.transform(data, mode=mode).shape == (fit.shape[mode], 2)


def test_names_of_modes_must_be_different_and_not_taken():
    with pytest.raises(ValueError, match="names of modes"):
        Labels(("a", "a", "c"), (None, None, None))
    with pytest.raises(ValueError, match="for each of"):
        Labels(("a", "b"), (None,))
    pytest.importorskip("xarray")
    for name in ("component", "weights"):
        fit = codiag.factorize(Labelled(entries(), Labels((name, "b", "c"), (None, None, None))), 1, rng=0)
        with pytest.raises(ValueError, match=f"Rename '{name}' before the fit"):
            fit.to_xarray()
        assert name in set(fit.to_table()["mode"])


def changed(**columns):
    return pandas_table().assign(**columns)


def spoilt(value):
    """Return 120 numbers, one of them replaced."""
    return [value if place == 7 else float(place) for place in range(120)]


@pytest.mark.parametrize(
    ("table", "options", "error", "said"),
    [
        (lambda: changed().iloc[[0, 1, 1]], {}, ValueError, "^a table must"),
        (lambda: changed(person=None), {}, ValueError, "^labels must"),
        (lambda: changed(wave=np.nan), {}, ValueError, "^labels must"),
        (lambda: changed()[["person", "day", "intensity"]], {}, ValueError, "^modes must"),
        (changed, {"value": "weight"}, ValueError, "'weight' is none of them"),
        (changed, {"modes": ["day", "day", "wave"]}, ValueError, "^modes must"),
        (changed, {"value": "person"}, TypeError, "^value must"),
        (
            lambda: changed(intensity=spoilt("n/d")),
            {},
            TypeError,
            "^value must",
        ),
        (changed, {"absent": "nothing"}, ValueError, "^absent must"),
        (lambda: changed().iloc[:0], {}, ValueError, "the table has no rows"),
        (lambda: changed().iloc[::13], {}, ValueError, "^a table must"),
        (lambda: series(), {"value": "x"}, ValueError, "^modes and value must"),
        (lambda: changed().set_axis(["person", "day", "day", "value"], axis=1), {}, ValueError, "different names"),
        (lambda: np.ones(3), {}, TypeError, "^table must"),
    ],
)
def test_what_is_refused(table, options, error, said):
    with pytest.raises(error, match=said):
        labelled_tensor(table(), **options)


def test_labels_must_fit():
    with pytest.raises(ValueError, match="^labels must"):
        codiag.factorize(Labelled(entries(), Labels(("a", "b", "c"), (PEOPLE[:3], None, None))), 2, rng=0)


def test_units_and_standard_errors_travel_with_the_labels(tmp_path):
    array = FORMS["xarray"]()
    array.coords["wave"].attrs["units"] = "nm"
    fit = codiag.factorize(array, 2, rng=0)
    fit.save(tmp_path / "fit.npz")
    for each in (fit, codiag.Factorization.load(tmp_path / "fit.npz")):
        assert each.problem.labels.title(2) == "wave (nm)"
        dataset = each.to_xarray()
        assert dataset.coords["wave"].attrs == {"units": "nm"}
        assert_array_equal(dataset["weights_standard_error"], each.weight_standard_errors)
        assert_array_equal(dataset["factor_wave_standard_error"], each.entry_standard_errors[2])
        table = each.to_table()
        errors = table[table["mode"] == "wave"]["standard_error"]
        assert_array_equal(errors, each.entry_standard_errors[2].T.ravel())
    assert "weights_standard_error" not in fit.to_xarray(standard_errors=False)


def test_coefficients_of_labelled_samples_are_labelled():
    array = FORMS["xarray"]()
    fit = codiag.factorize(array, 2, rng=0)
    new = array.isel(day=[0, 1]).transpose("wave", "day", "person")
    found = fit.transform(new, mode=1)
    assert found.dims == ("day", "component")
    assert_array_equal(found.coords["day"], array.coords["day"][:2])
    assert_array_equal(found, fit.transform(array.values[:, :2], mode=1))


def test_tables_are_not_saved_as_fits(tmp_path):
    fit = codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)
    with pytest.raises(ValueError, match="^path must"):
        fit.save(tmp_path / "fit.csv")
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ValueError, match="or is damaged"):
        codiag.Factorization.load(tmp_path / "other.npz")
