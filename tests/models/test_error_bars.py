"""Standard errors where they are known: textbook formulas, Fisher information, sums that depend on time."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

import codiag
from codiag.models import (
    CP,
    DawidSkene,
    HiddenMarkov,
    LatentDirichlet,
    MixedMembershipCommunities,
    MultiviewMixture,
    SingleTopic,
    SphericalGaussianMixture,
)
from codiag.models.chains import ChainSums, time_blocks
from codiag.models.communities import (
    Estimate,
    Stars,
    as_network,
    communities_jackknife,
    estimate_memberships,
    scaled_stars,
)
from codiag.models.base import block_of_rows, jackknife_errors, leave_one_out, merged, share_errors
from codiag.synthetic import crowd_votes, mixed_membership_graph
from simulated import chain, gaussians, views


def binomial(shares, n):
    """Return the standard errors of shares of n independent draws."""
    return np.sqrt(shares * (1 - shares) / n)


def _information(model, symbols, step=1e-3):
    """Return minus the second derivatives of the log-likelihood of a chain of two states and three symbols."""

    def score(moved):
        at = copy.copy(model)
        at.transmat_, at.emissionprob_ = model.transmat_.copy(), model.emissionprob_.copy()
        at.transmat_ += np.array([[-moved[0], moved[0]], [moved[1], -moved[1]]])
        at.emissionprob_ += np.array([[a, b, -a - b] for a, b in moved[2:].reshape(2, 2)])
        return at.score(symbols)

    axes = step * np.eye(6)
    ends = {sign: [score(sign * axis) for axis in axes] for sign in (1, -1)}
    middle = score(np.zeros(6))
    found = np.diag([up + down - 2 * middle for up, down in zip(ends[1], ends[-1], strict=True)])
    for i, j in itertools.combinations(range(6), 2):
        mixed = score(axes[i] + axes[j]) + score(-axes[i] - axes[j]) - 2 * middle
        found[i, j] = found[j, i] = (mixed - found[i, i] - found[j, j]) / 2
    return -found / step**2


class TestJackknife:
    """The formula by itself."""

    def test_of_a_mean_it_is_the_textbook_formula(self):
        rows = np.random.default_rng(0).standard_normal((50, 3))
        without = (rows.sum(axis=0) - rows) / 49
        found = jackknife_errors(rows.mean(axis=0), without, np.full(50, 50))
        assert_allclose(found, rows.std(axis=0, ddof=1) / np.sqrt(50))

    def test_of_a_mean_over_blocks_of_any_size(self):
        """Pseudo-values are the means of the blocks, and their center is the mean of all, whatever the sizes."""
        rng = np.random.default_rng(0)
        sizes = rng.integers(5, 50, 20)
        sums = rng.standard_normal(20) * np.sqrt(sizes)
        mean, without = sums.sum() / sizes.sum(), (sums.sum() - sums) / (sizes.sum() - sizes)
        shares = sizes / sizes.sum()
        found = jackknife_errors(mean, without, 1 / shares)
        assert_allclose(found, np.sqrt(np.mean((sums / sizes - mean) ** 2 * shares / (1 - shares))))

    def test_rows_are_assigned_evenly_in_every_part(self):
        for place in range(5):
            owners = block_of_rows(103, 10, place)
            assert set(np.bincount(owners, minlength=10)) == {10, 11}

    def test_of_links_between_nodes(self):
        """Means over all links, and over those of each node, have the variance of a link over their number."""
        n, rng = 60, np.random.default_rng(0)

        def means(links):
            m = len(links)
            mean = links.sum(keepdims=True) / (m * (m - 1))
            return Estimate(links.sum(axis=1, keepdims=True) / (m - 1), mean, float(mean[0, 0]))

        squares = []
        for _ in range(200):
            links = np.triu(rng.standard_normal((n, n)), 1)
            links = links + links.T
            found = communities_jackknife(means(links), lambda kept, links=links: means(links[np.ix_(kept, kept)]), 6)
            squares.append([np.mean(found.memberships**2) * (n - 1), found.connectivity[0, 0] ** 2 * n * (n - 1) / 2])
            assert_allclose(found.alpha_0, found.connectivity[0, 0])
        assert_allclose(np.mean(squares, axis=0), 1, atol=0.15)  # of five degrees of freedom: known to 5 %

    def test_shares_held_at_a_bound_are_unknown(self):
        value = np.array([[0.0, 0.3, 0.7], [1.0, 0.0, 0.0]])
        others = np.stack([value] * 4)
        others[0, 1] = [0.9, 0.1, 0.0]  # without a block, the second row moves but for one entry
        found = share_errors(value, others, np.full(4, 4))
        assert np.array_equal(np.isnan(found), [[True, False, False], [False, False, True]])
        known = ~np.isnan(found)
        assert_allclose(found[known], jackknife_errors(value, others, np.full(4, 4))[known])
        assert share_errors(np.ones(1), np.ones((4, 1)), np.full(4, 4)) == 0  # the only share of its row
        beyond = np.array([-1.0, 2.0])  # parameters that are no shares
        assert np.all(share_errors(beyond, np.stack([beyond, beyond + 0.1]), np.full(2, 2)) > 0)


class TestTimeBlocks:
    """Stretches of time that are left out together."""

    @pytest.mark.parametrize("lengths", [[1000], [7] * 143, [1, 500, 2, 497]])
    def test_they_are_stretches_of_one_size(self, lengths):
        owners = time_blocks(lengths, 20)
        sizes = np.bincount(owners, minlength=20)
        assert sizes.max() - sizes.min() <= 1
        cuts = np.sum(np.diff(owners) != 0)
        assert cuts <= 20 + len(lengths)

    def test_counts_of_blocks_add_up(self):
        """To those of all sequences, and without a block to those of the others, in any order."""
        sequences = np.split(chain(3000, 0)[0], [700, 702, 1500])
        whole = ChainSums.empty().of(sequences)
        blocks = list(ChainSums.empty().by_block(sequences, 8, 0).values())
        for order in (range(8), np.random.default_rng(0).permutation(8)):
            total = merged([blocks[block] for block in order])
            for name in ("triples", "numbers", "frequencies", "firsts", "n_sequences"):
                assert_allclose(getattr(total, name), getattr(whole, name))
        for block, others in zip(blocks, leave_one_out(blocks), strict=True):
            assert_allclose(merged([block, others]).numbers[0], whole.numbers[0])

    def test_dependence_counts(self):
        """Shares of symbols that stay for ten steps vary as if there were a ninth as many symbols."""
        stay, n = 0.9, 12000
        rng = np.random.default_rng(0)
        moves = rng.random(n) >= stay
        symbols = np.cumsum(moves) % 2  # the chain has the eigenvalue 2 * stay - 1
        alone = binomial(0.5, n)
        memory = np.sqrt(stay / (1 - stay))  # of (1 + 0.8) / (1 - 0.8)
        model = HiddenMarkov(1, max_iter=1, n_jackknife=30).fit(symbols)
        assert_allclose(model.emissionprob_standard_errors_, alone * memory, rtol=0.25)
        shuffled = HiddenMarkov(1, max_iter=0, n_jackknife=30).fit(rng.permutation(symbols))
        assert_allclose(shuffled.emissionprob_standard_errors_, alone, rtol=0.25)


class TestFisherInformation:
    """Where components can be told apart, polished estimates are shares and means, whose errors are known."""

    def test_gaussians_far_apart(self):
        means, weights, variances = 30 * np.eye(3, 5), np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 2.0])
        rng = np.random.default_rng(0)
        h = rng.choice(3, 3000, p=weights)
        samples = means[h] + np.sqrt(variances[h])[:, None] * rng.standard_normal((3000, 5))
        model = SphericalGaussianMixture(3, max_iter=2, n_jackknife=40, random_state=0).fit(samples)
        n = 3000 * weights
        known = np.sqrt(variances / n)
        assert_allclose(np.sqrt(np.mean(model.means_standard_errors_**2, axis=1)), known, rtol=0.15)
        assert_allclose(model.weights_standard_errors_, binomial(weights, 3000), rtol=0.3)
        assert_allclose(model.covariances_standard_errors_, variances * np.sqrt(2 / (5 * n)), rtol=0.3)

    @pytest.mark.parametrize("kind", [SingleTopic, LatentDirichlet])
    def test_topics_without_words_in_common(self, kind):
        rng = np.random.default_rng(0)
        topics, weights = np.zeros((2, 8)), np.array([0.7, 0.3])
        topics[0, :4] = topics[1, 4:] = [0.4, 0.3, 0.2, 0.1]
        counts = rng.multinomial(10, topics[rng.choice(2, 1500, p=weights)])
        model = kind(2, max_iter=2, n_jackknife=30, random_state=0).fit(counts)
        known = binomial(topics, 15000 * weights[:, None])
        assert_allclose(model.components_standard_errors_[known > 0], known[known > 0], rtol=0.5)
        assert_allclose(np.mean(model.components_standard_errors_[known > 0] / known[known > 0]), 1, atol=0.15)

    def test_chains_by_the_curvature_of_the_likelihood(self):
        """From differences of the log-likelihood along all pairs of parameters, at its maximum, nearly."""
        moves, shown = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
        rng = np.random.default_rng(0)
        states = np.zeros(3000, dtype=int)
        for time in range(1, 3000):
            states[time] = rng.random() < moves[states[time - 1], 1]
        symbols = np.sum(np.cumsum(shown, axis=1)[states] < rng.random((3000, 1)), axis=1)
        model = HiddenMarkov(2, max_iter=20, n_jackknife=20, random_state=0).fit(symbols)
        errors = [model.transmat_standard_errors_[[0, 1], [1, 0]], model.emissionprob_standard_errors_[:, :2].ravel()]
        known = np.sqrt(np.diag(np.linalg.inv(_information(model, symbols))))
        assert_allclose(np.concatenate(errors), known, rtol=0.5)  # known to 16 % from 20 blocks
        assert_allclose(np.mean(np.concatenate(errors) / known), 1, atol=0.2)
        assert np.all(np.isnan(model.startprob_standard_errors_))

    def test_beginnings_of_sequences(self):
        """Of chains whose states can be seen: shares of independent draws."""
        rng = np.random.default_rng(0)
        sequences = [(3 * (rng.random() < 0.25) + 3 * np.cumsum(rng.random(12) < 0.1)) % 6 for _ in range(300)]
        shown = [sequence.astype(int) + rng.integers(0, 3, 12) for sequence in sequences]
        model = HiddenMarkov(2, max_iter=2, n_jackknife=30, random_state=0).fit(shown)
        assert_allclose(model.startprob_standard_errors_, binomial(0.25, 300), rtol=0.4)

    def test_one_component_of_views_is_their_mean(self):
        sides = views(1000, 0)[0]
        model = MultiviewMixture(1, max_iter=1, n_jackknife=30).fit(sides)
        for errors, side in zip(model.means_standard_errors_, sides, strict=True):
            assert_allclose(errors[0], side.std(axis=0) / np.sqrt(1000), rtol=0.4)

    @pytest.mark.parametrize("options", [{}, {"smoothing": 1.0}])
    def test_classes_that_nobody_doubts(self, options):
        rates = np.stack([0.03 + 0.91 * np.eye(3)] * 15)
        priors = np.array([0.5, 0.3, 0.2])
        model = DawidSkene(random_state=0, **options).fit(crowd_votes(1000, rates, priors=priors, seed=0).votes)
        assert_allclose(model.priors_standard_errors_, binomial(priors, 1000), rtol=0.1)
        if options:  # otherwise a worker is known to be like all others
            known = binomial(rates[0], 1000 * priors)
            assert_allclose(np.mean(model.confusion_standard_errors_ / known), 1, atol=0.1)
        given = DawidSkene(prior=priors, random_state=0, **options).fit(crowd_votes(200, rates, seed=0).votes)
        assert np.all(given.priors_standard_errors_ == 0)

    def test_communities_that_nobody_doubts(self):
        """Rates are shares of linked pairs; each pair is left out with either of its ends."""
        graph = mixed_membership_graph(200, 2, alpha_0=0.0, inside=0.7, outside=0.1, seed=0)
        model = MixedMembershipCommunities(
            2, alpha_0=0.0, degree_corrected=False, n_partitions=2, n_jackknife=20, random_state=0
        ).fit(graph.adjacency)
        sizes = model.memberships_.round().sum(axis=0)
        pairs = np.outer(sizes, sizes) - np.diag(sizes * (sizes + 1) / 2)
        known = binomial(0.1 + 0.6 * np.eye(2), pairs)
        assert_allclose(model.connectivity_standard_errors_, known, rtol=0.6)


class TestReplicates:
    """What is done without a block is what is done with all data."""

    def test_they_are_fits_without_a_block(self):
        """By rows that were left out by hand, polished as well."""
        sides = views(600, 0)[0]
        model = MultiviewMixture(3, max_iter=2, n_jackknife=5, random_state=0)
        owners = block_of_rows(600, 5)
        others = [clone(model).set_params(n_jackknife=0).fit([side[owners != b] for side in sides]) for b in range(5)]
        model.fit(sides)
        orders = [
            np.argsort(np.argsort(np.linalg.norm(model.means_[0][:, None] - one.means_[0], axis=2).argmin(1)))
            for one in others
        ]
        weights = np.stack([one.weights_[order] for one, order in zip(others, orders, strict=True)])
        assert_allclose(
            model.weights_standard_errors_, jackknife_errors(model.weights_, weights, np.full(5, 5)), rtol=1e-6
        )
        variances = np.stack([one.variances_ for one in others])
        assert_allclose(
            model.variances_standard_errors_, jackknife_errors(model.variances_, variances, np.full(5, 5)), rtol=1e-6
        )

    def test_parts_are_left_out_like_the_whole(self):
        """One part is dealt to blocks as one array is; of several, sums are of the same samples to rounding."""
        samples, symbols = gaussians(600, 0)[0], chain(6000, 0)[0]
        options = {"max_iter": 2, "n_jackknife": 5, "random_state": 0}
        whole = SphericalGaussianMixture(3, **options).fit(samples)
        part = SphericalGaussianMixture(3, **options).fit([samples])
        assert_allclose(part.means_standard_errors_, whole.means_standard_errors_, rtol=1e-6)
        whole = HiddenMarkov(3, **options).fit(symbols)
        part = HiddenMarkov(3, **options).fit(lambda: iter([symbols]))
        assert_allclose(part.transmat_standard_errors_, whole.transmat_standard_errors_, rtol=1e-6)
        counts = np.random.default_rng(0).poisson(1.0, (300, 6)) + np.eye(6, dtype=int)[np.arange(300) % 6] * 5
        whole = LatentDirichlet(2, **options).fit(counts)
        part = LatentDirichlet(2, **options).fit([counts])
        assert_allclose(part.components_standard_errors_, whole.components_standard_errors_, rtol=1e-3)
        assert_allclose(part.topic_word_prior_standard_errors_, whole.topic_word_prior_standard_errors_, rtol=1e-2)

    def test_chunks_of_a_chain(self):
        """Errors from moments of chunks, in any order of these."""
        sequences = np.split(chain(12000, 0)[0], 3)
        models = [HiddenMarkov(3, max_iter=0, n_jackknife=5, random_state=0) for _ in range(2)]
        for model, order in zip(models, ((0, 1, 2), (2, 0, 1)), strict=True):
            for place in order:
                model.partial_fit(sequences[place])
        ratios = models[0].emissionprob_standard_errors_ / models[1].emissionprob_standard_errors_
        assert 0.7 < np.exp(np.mean(np.log(ratios))) < 1.4

    def test_errors_fall_like_the_root_of_the_number(self):
        for model, draw, name in (
            (SphericalGaussianMixture(3, max_iter=3, n_jackknife=10, random_state=0), gaussians, "means"),
            (MultiviewMixture(3, max_iter=1, n_jackknife=10, random_state=0), views, "weights"),
        ):
            few, many = (getattr(clone(model).fit(draw(n, 1)[0]), f"{name}_standard_errors_") for n in (500, 4500))
            few, many = (np.sqrt(np.mean(np.square(errors))) for errors in (few, many))
            assert 2 < few / many < 4.5

    def test_nodes_are_parted_as_among_all(self):
        """Nodes that are left out make the same difference as nodes without links and without weight."""
        network = as_network(mixed_membership_graph(120, 2, alpha_0=0.1, inside=0.4, outside=0.05, seed=0).adjacency)
        seed, kept = np.random.SeedSequence(0), block_of_rows(120, 6) != 0
        stars = scaled_stars(network, False)
        silent = Stars(stars.links * np.outer(kept, kept), stars.rows * kept)
        left = Stars(stars.links[np.ix_(kept, kept)], stars.rows[kept])
        expected = estimate_memberships(silent, 2, 0.1, None, seed)[kept]
        found = estimate_memberships(left, 2, 0.1, None, seed, kept)
        assert_allclose(found[:, linear_sum_assignment(-expected.T @ found)[1]], expected, atol=1e-6)
        anew = estimate_memberships(left, 2, 0.1, None, seed)
        assert np.abs(anew[:, linear_sum_assignment(-expected.T @ anew)[1]] - expected).max() > 1e-3

    def test_old_errors_are_forgotten(self):
        graph = mixed_membership_graph(60, 2, alpha_0=0.0, inside=0.6, outside=0.1, seed=0).adjacency
        model = MixedMembershipCommunities(2, n_partitions=2, n_jackknife=5, random_state=0).fit(graph)
        assert model.memberships_standard_errors_.shape == (60, 2)
        model.set_params(n_jackknife=0).fit(graph)
        assert not hasattr(model, "memberships_standard_errors_")
        with pytest.raises(ValueError, match="n_jackknife must be at most 60, the number of nodes"):
            model.set_params(n_jackknife=61).fit(graph)

    def test_components_of_samples(self):
        """Over 40 draws of the noise, factors are as far from those without noise as is said."""
        data = np.einsum("ir,jr,kr->ijk", *(np.random.default_rng(d).random((d, 2)) for d in (9, 5, 4)))
        truth = CP(2, random_state=0).fit(data).factorization_
        rng, squares = np.random.default_rng(0), []
        for _ in range(40):
            model = CP(2, random_state=0).fit(data + 0.001 * rng.standard_normal(data.shape))
            matched = codiag.match_components(model.factorization_, truth)
            triples = zip(matched.factors[1:], truth.factors[1:], model.factors_standard_errors_, strict=True)
            squares.append([np.mean(((a - b) / e[:, matched.permutation]) ** 2) for a, b, e in triples])
        assert_allclose(np.sqrt(np.mean(squares, axis=0)), 1, atol=0.2)


class TestWhatIsUnknown:
    """NaN, or a sentence, where leaving out blocks tells nothing."""

    def test_words_that_a_topic_never_has(self):
        """Emissions of a symbol that the other state alone shows are clipped at zero, whatever is left out."""
        rng = np.random.default_rng(0)
        states = np.cumsum(rng.random(4000) < 0.1) % 2
        model = HiddenMarkov(2, max_iter=0, n_jackknife=5, random_state=0).fit(2 * states + rng.integers(0, 2, 4000))
        unknown = np.isnan(model.emissionprob_standard_errors_)
        assert unknown.any()
        assert np.all(model.emissionprob_[unknown] < 1e-8)
        assert np.all(model.emissionprob_standard_errors_[~unknown] > 1e-6)

    def test_a_constant_feature_is_known(self):
        samples = np.concatenate([gaussians(300, 0)[0], np.zeros((300, 1))], axis=1)
        model = SphericalGaussianMixture(1, max_iter=0, n_jackknife=5).fit(samples)
        assert model.means_standard_errors_[0, -1] == 0
        assert model.weights_standard_errors_ == 0

    @pytest.mark.parametrize(("lengths", "known"), [([900] * 3, False), ([300] * 12, True), ([3000] + [3] * 60, False)])
    @pytest.mark.parametrize("max_iter", [0, 2])
    def test_beginnings_must_be_in_every_block(self, lengths, known, max_iter):
        symbols = chain(sum(lengths), 0)[0]
        model = HiddenMarkov(3, max_iter=max_iter, n_jackknife=6, random_state=0).fit(symbols, lengths)
        assert np.all(np.isfinite(model.startprob_standard_errors_)) == known
        assert np.all(np.isnan(model.startprob_standard_errors_)) != known
        assert np.all(np.isfinite(model.transmat_standard_errors_))

    def test_stationary_states_need_no_beginnings(self):
        model = HiddenMarkov(3, max_iter=0, n_jackknife=6, random_state=0).fit(chain(6000, 0)[0])
        assert np.all(model.startprob_standard_errors_ > 0)

    @pytest.mark.parametrize(
        ("n", "n_jackknife", "words"),
        [
            (40, 2, "n_jackknife must be 0, for no standard errors, or at least 3, .* got 2"),
            (10, 3, "n_jackknife=3 leaves 6 of 10 nodes"),
            (8, 8, "n_jackknife=8 leaves 7 of 8 nodes"),
        ],
    )
    def test_graphs_too_small_for_blocks(self, n, n_jackknife, words):
        links = np.kron(np.eye(2), np.ones((n // 2, n // 2)))
        links[0, -1] = links[-1, 0] = 1
        with pytest.raises(ValueError, match=words):
            MixedMembershipCommunities(2, n_partitions=4, n_jackknife=n_jackknife, random_state=1).fit(links)

    def test_errors_name_the_block(self):
        """Eight nodes of twelve are enough, but not where a quarter of all has lost its own."""
        graph = mixed_membership_graph(12, 2, alpha_0=0.0, inside=0.9, outside=0.1, seed=0).adjacency
        with pytest.raises(ValueError, match="a part of the nodes") as caught:
            MixedMembershipCommunities(2, n_partitions=2, n_jackknife=3, random_state=0).fit(graph)
        assert "for standard errors (n_jackknife)" in caught.value.__notes__[0]

    def test_memberships_are_shares(self):
        """One node each is left out of a graph whose communities hang on few nodes."""
        n, rng = 24, np.random.default_rng(0)
        found = Estimate(np.full((n, 2), 0.5), np.full((2, 2), 0.5), 0.1)

        def estimate(kept):
            first = rng.random(int(kept.sum())).round()
            return Estimate(np.stack([first, 1 - first], axis=1), np.full((2, 2), 0.5), 0.1)

        assert np.all(communities_jackknife(found, estimate, n).memberships == 0.5)

    def test_one_start_is_left_out_of(self, monkeypatch):
        """With a variance for each feature there are two starts, and replicates of the better one alone."""
        samples, calls = gaussians(400, 0)[0], []
        original = SphericalGaussianMixture._standard_errors

        def counted(self, components, moments):
            calls.append(moments.by_feature)
            return original(self, components, moments)

        monkeypatch.setattr(SphericalGaussianMixture, "_standard_errors", counted)
        options = {"covariance_type": "diag", "max_iter": 5, "random_state": 0}
        model = SphericalGaussianMixture(3, n_jackknife=4, **options).fit(samples)
        plain = SphericalGaussianMixture(3, **options).fit(samples)
        assert len(calls) == 1
        assert_allclose(model.means_, plain.means_, rtol=1e-6)
        assert model.means_standard_errors_.shape == model.means_.shape
        assert not hasattr(model.set_params(n_jackknife=0).fit(samples), "means_standard_errors_")
