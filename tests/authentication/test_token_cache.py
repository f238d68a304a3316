"""The cache of valid tokens, by itself."""

from __future__ import annotations

from roost.api.authentication.token_validation import KnownToken, TokenCache
from roost.api.http.requests import Caller


def test_the_oldest_tokens_make_room_for_new_ones() -> None:
    cache = TokenCache(300, tokens_max=3)
    for number in range(10):
        cache.keep(number, KnownToken(Caller(user=str(number)), float("inf")))
    assert [number for number in range(10) if cache.find(number)] == [7, 8, 9]


def test_a_token_that_is_kept_again_takes_no_second_place() -> None:
    cache = TokenCache(300, tokens_max=2)
    for name in ("a", "b", "b", "b"):
        cache.keep(name, KnownToken(Caller(user=name), float("inf")))
    assert cache.find("a")


def test_an_expired_token_is_not_found() -> None:
    cache = TokenCache(300)
    cache.keep("a", KnownToken(Caller(user="a"), 0.0))
    assert cache.find("a") is None
