"""``write_payments``: generated tables of accounts and payments, to try the path of a payment company. None is real."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agnncert.errors import SettingsError, missing

if TYPE_CHECKING:
    from pandas import DataFrame, Timestamp

FIRST_DAY = "2026-01-01"
FRAUD = 0.05  # share of the accounts
SHOPS = 0.1
CAREFUL = 0.4  # share of fraud accounts that pay by day, and amounts like others
SELLERS = 0.3  # share of honest people who sell things to strangers
UNKNOWN = 0.15  # share of honest accounts that nobody has looked at
OTHER_BANKS = 0.08  # accounts of other banks, as a share of the accounts: only payments name them
NEW = 0.1  # share of these that turn up in the last week
FEWEST = 100
Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


def write_payments(folder: str | os.PathLike[str], accounts: int = 6000, days: int = 90, seed: int = 0) -> Path:
    """Writes ``nodes.csv`` (accounts) and ``events.csv`` (payments) of an invented bank, and returns the folder.

    About 5 % of the accounts are fraud: beside an ordinary life they get one payment each from some victims, often at
    night, and pass the money on. Four in ten are careful, and look much like people who sell things. That an account is
    fraud becomes known one to six weeks after its first such payment. About 8 % as many accounts are with other banks,
    so that only payments name them; some of these turn up in the last week.

    Args:
        folder: Where to write. It is made if it is not there.
        accounts: Number of accounts with a row, at least 100.
        days: Number of days from 2026-01-01 on.
        seed: Seed of everything that is drawn.

    Raises:
        SettingsError: There are too few accounts or days.
        MissingPackage: pandas is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error.name, "writing tables") from None
    if accounts < FEWEST or days < 14:
        raise SettingsError(f"{accounts} accounts and {days} days: expected at least {FEWEST} accounts and 14 days.")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    kind = random.choice(3, size=accounts, p=[1 - FRAUD - SHOPS, SHOPS, FRAUD])  # private, shop, fraud
    names = np.array([f"acc-{number:06d}" for number in range(accounts)])
    others = np.array([f"ext-{number:05d}" for number in range(max(1, round(OTHER_BANKS * accounts)))])
    everybody = np.concatenate([names, others])
    start = pd.Timestamp(FIRST_DAY)
    payments = _all_payments(random, kind, len(others), days)
    order = np.argsort(payments[:, 3], kind="stable")
    payer, payee, amount, day = payments[order].T
    table = pd.DataFrame(
        {
            "payment": [f"p{number:07d}" for number in range(len(order))],
            "payer": everybody[payer.astype(int)],
            "payee": everybody[payee.astype(int)],
            "amount": np.maximum(amount, 0.01).round(2),
            "paid_at": (start + pd.to_timedelta(np.floor(day * 86_400), unit="s")).strftime("%Y-%m-%dT%H:%M:%S"),
        }
    )
    table.to_csv(place / "events.csv", index=False)
    _accounts(random, names, kind, payments, start).to_csv(place / "nodes.csv", index=False)
    return place


def _accounts(
    random: np.random.Generator, names: npt.NDArray[np.str_], kind: Whole, payments: Floats, start: "Timestamp"
) -> "DataFrame":
    """Returns the table of accounts. Their own features say little."""
    import pandas as pd

    is_fraud = kind == 2
    size = len(kind)
    age = random.gamma(2.0, np.where(is_fraud, 450.0, 800.0))
    channel = np.where(random.random(size) < np.where(is_fraud, 0.6, 0.4), "app", "web")
    country = random.choice(["DE", "FR", "NL", "PL"], size=size, p=[0.5, 0.2, 0.15, 0.15])
    label = np.where(is_fraud, "fraud", "honest").astype(object)
    label[~is_fraud & (random.random(size) < UNKNOWN)] = ""
    received = payments[:, 1].astype(int)
    first = np.full(size, np.nan)
    for account, day in sorted(zip(received.tolist(), payments[:, 3].tolist(), strict=True), key=lambda one: -one[1]):
        if account < size and is_fraud[account]:
            first[account] = day
    known = np.where(is_fraud, np.nan_to_num(first) + random.uniform(7, 42, size), np.nan)
    known_since = pd.Series(start + pd.to_timedelta(known, unit="D")).dt.strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "account": names,
            "age": age.round().astype(int),
            "channel": channel,
            "country": country,
            "class": label,
            "known_since": known_since.fillna(""),
        }
    )


def _all_payments(random: np.random.Generator, kind: Whole, num_others: int, days: int) -> Floats:
    """Returns payer, payee, amount and day of each payment, shape ``[m, 4]``."""
    size = len(kind)
    private = np.flatnonzero(kind == 0)
    shops = np.concatenate([np.flatnonzero(kind == 1), size + np.arange(num_others // 2)])
    strangers = np.concatenate([private, size + np.arange(num_others // 2, num_others)])
    fraud = np.flatnonzero(kind == 2)
    people = np.flatnonzero(kind != 1)  # fraud accounts have an ordinary life, too
    sellers = random.permutation(private)[: round(SELLERS * len(private))]
    weeks = days / 7
    parts = [
        _regular(random, people, shops, _Habit(3, 0.22 * weeks, 3.2), days),  # favourite shops
        _regular(random, people, strangers, _Habit(2, 0.12 * weeks, 3.6), days),  # friends
        _regular(random, people, strangers, _Habit(2, 0.3, 5.0), days),  # a car, a flat: rare and large
        _reversed(_regular(random, people, shops, _Habit(1, days / 30, 7.3), days)),  # salary
        _reversed(_regular(random, sellers, strangers, _Habit(8, 0.6, 4.5), days)),  # what people sell to strangers
        _regular(random, np.flatnonzero(kind == 1), shops, _Habit(2, 0.2 * weeks, 6.0), days),
    ]
    parts += [_scheme(random, account, private, fraud, shops, days) for account in fraud.tolist()]
    payments = np.concatenate(parts)
    payments = payments[payments[:, 0] != payments[:, 1]]
    first_new = size + num_others - max(1, round(NEW * num_others))
    is_too_early = (payments[:, :2] >= first_new).any(axis=1) & (payments[:, 3] < days - 7)
    return np.asarray(payments[~is_too_early])


def _day_time(random: np.random.Generator, number: int, days: int, at_night: Floats) -> Floats:
    """Returns days with a time of day: most by day, some by night."""
    by_night = random.random(number) < at_night
    hour = np.where(by_night, random.uniform(0, 6, number), np.clip(random.normal(14, 4, number), 6, 23.9))
    return np.asarray(random.integers(0, days, number) + hour / 24)


@dataclass(frozen=True)
class _Habit:
    """How accounts pay.

    Attributes:
        partners: Partners of each account.
        each: Mean number of payments to each partner.
        size: Logarithm of the median amount.
    """

    partners: int
    each: float
    size: float


def _regular(random: np.random.Generator, payers: Whole, payees: Whole, habit: _Habit, days: int) -> Floats:
    """Returns payments to a few partners of each account, again and again.

    Args:
        random: What is drawn from.
        payers: The accounts.
        payees: Whom they may pay.
        habit: How many partners they have, how often they pay them, and how much.
        days: Number of days.
    """
    payer = np.repeat(payers, habit.partners)
    payee = random.choice(payees, len(payer))
    times = random.poisson(habit.each, len(payer))
    level = np.repeat(random.normal(habit.size, 0.6, len(payer)), times)
    payer = np.repeat(payer, times)
    payee = np.repeat(payee, times)
    amount = np.exp(level + random.normal(0, 0.4, len(payer)))
    day = _day_time(random, len(payer), days, np.full(len(payer), 0.06))
    return np.stack([payer, payee, amount, day], axis=1).astype(np.float64)


def _reversed(payments: Floats) -> Floats:
    return payments[:, [1, 0, 2, 3]]


def _scheme(random: np.random.Generator, account: int, private: Whole, fraud: Whole, shops: Whole, days: int) -> Floats:
    """Returns what one fraud account gets from victims, and where it goes."""
    careful = random.random() < CAREFUL
    number = int(random.integers(2, 6))
    victims = random.choice(private, number)
    amount = np.exp(random.normal(4.4 if careful else 5.0, 0.8, number))
    night = np.full(number, 0.06 if careful else 0.3)
    begin = random.uniform(0, max(1.0, days - 14))
    day = begin + _day_time(random, number, 10, night)
    coming = np.stack([victims, np.full(number, account), amount, day], axis=1)
    passed_on = random.random(number) < 0.6
    to_fraud = random.random(number) < 0.5
    receivers = np.where(to_fraud, random.choice(fraud, number), random.choice(shops, number))
    delay = random.exponential(2.0 if careful else 0.4, number)
    going = np.stack([np.full(number, account), receivers, 0.95 * amount, day + delay], axis=1)[passed_on]
    payments: Floats = np.concatenate([coming, going])
    return payments[payments[:, 3] < days]
