"""Fits side by side leave the numbers of threads as they found them."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from cocoloss import CoCoClassifier, threads
from cocoloss.fitting import jobs
from cocoloss.threads import WORTH_A_THREAD, OneThread, at_most_threads, threads_for


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def in_a_thread(call):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def overlapping(enter_first, enter_second, look=lambda: None):
    """Let a second thread come while a first is inside, and go after it; return what it saw."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        with enter_first():
            first_in.set()
            second_in.wait(60)
        first_out.set()
        seen.append(look())
        done.wait(60)  # a thread that lives on is the harder case

    def second():
        first_in.wait(60)
        with enter_second():
            second_in.set()
            first_out.wait(60)
            seen.append(look())
        seen.append(look())

    done = threading.Event()
    both = [threading.Thread(target=each) for each in (first, second)]
    for thread in both:
        thread.start()
    both[1].join()
    done.set()
    both[0].join()
    return seen


@pytest.fixture(autouse=True)
def two_blas_threads():
    """Give each library two threads, and let whoever comes change that."""
    limits = threadpool_limits(2, user_api="blas")
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        getattr(library, "clear_controlling_thread", lambda: None)()
    yield
    limits.restore_original_limits()


@pytest.fixture
def two_torch_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_blas_has_its_threads_back_whoever_goes_last():
    before = blas_threads()
    assert 2 in before
    seen = overlapping(lambda: threads_for(1), lambda: threads_for(1), blas_threads)
    assert [1] * len(before) in seen  # the second was still inside when the first had gone
    assert blas_threads() == before


def test_small_products_have_one_thread_and_large_ones_all():
    before = blas_threads()
    with threads_for(WORTH_A_THREAD - 1), threads_for(1):
        assert set(blas_threads()) == {1}
    with threads_for(WORTH_A_THREAD):
        assert blas_threads() == before
    assert blas_threads() == before


def test_a_limit_of_somebody_else_is_left_to_them():
    before = blas_threads()
    overlapping(lambda: threadpool_limits(1, user_api="blas"), lambda: threads_for(1))
    assert blas_threads() == before


def test_fits_in_threads_leave_blas_and_torch_as_they_were(two_torch_threads):
    X, y = load_wine(return_X_y=True)

    def fit(seed):
        return CoCoClassifier(n_members=1, max_iter=3, random_state=0).fit(X, y).predict_proba(X)

    blas = blas_threads()
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(fit, range(9)))
        after = list(pool.map(lambda _: torch.get_num_threads(), range(9)))
    assert blas_threads() == blas
    assert torch.get_num_threads() == 2
    assert set(after) == {2}
    assert in_a_thread(torch.get_num_threads) == 2  # what new threads start with
    for answer in answers:
        np.testing.assert_allclose(answer, answers[0], atol=1e-5)


def test_a_thread_that_is_new_to_torch_gets_what_the_others_had(two_torch_threads):
    held = jobs._one_thread.held  # noqa: SLF001
    assert sorted(overlapping(held, held, torch.get_num_threads)) == [1, 2, 2]
    assert torch.get_num_threads() == 2
    assert in_a_thread(torch.get_num_threads) == 2


@pytest.mark.parametrize("per_thread", [True, False])
def test_the_number_is_put_back_after_an_error_and_never_touched_where_it_is_one(per_thread):
    number, changes = [4], []

    def put(n):
        changes.append(n)
        number[0] = n

    limit = OneThread(lambda: number[0], put, per_thread=per_thread)
    with pytest.raises(ZeroDivisionError), limit.held(), limit.held():
        1 / 0  # noqa: B018
    assert changes == [1, 4]
    number[0] = 1
    with limit.held():
        pass
    assert changes == [1, 4]


def test_libraries_are_looked_for_once_and_again_when_a_module_has_come(monkeypatch):
    looks = []

    def look():
        looks.append(ThreadpoolController())
        return looks[-1]

    monkeypatch.setattr(threads, "ThreadpoolController", look)
    monkeypatch.setattr(threads, "_last_look", None)
    for n_looks in (1, 1, 2, 2):
        if n_looks == 2:
            monkeypatch.setitem(sys.modules, "came_later", ModuleType("came_later"))
        with at_most_threads(1):
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}
        assert len(looks) == n_looks
