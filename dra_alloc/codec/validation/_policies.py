"""Request policies of capacities (KEP-5075): which amounts a request may consume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_alloc.api import CapacityRequestPolicy, CapacityRequestPolicyRange, Quantity
from dra_alloc.codec.validation._problems import Problem, at, duplicate, forbidden, invalid, required, too_many
from dra_alloc.gates import Features

__all__ = ["request_policy"]

VALID_VALUES_MAX = 10
_ONE = 10**9
_MILLI = 10**6
_INT64_MAX = 2**63 - 1


def request_policy(value: Quantity, policy: CapacityRequestPolicy, features: Features) -> Iterator[Problem]:
    """Problems of the policy of a capacity of this value."""
    if policy.valid_values and policy.valid_range is not None:
        yield forbidden("has both validValues and validRange", "one of them")
        return
    if not policy.valid_values and policy.valid_range is None:
        return
    if policy.default is None:
        field = "validValues" if policy.valid_values else "validRange"
        yield from at("default", [required(f"with {field}")])
    elif policy.valid_values:
        yield from at("validValues", _values(value, policy.default, policy.valid_values, features))
    elif policy.valid_range is not None:
        yield from at("validRange", _range(value, policy.default, policy.valid_range, features))


def _values(value: Quantity, default: Quantity, options: Sequence[Quantity], features: Features) -> Iterator[Problem]:
    if len(options) > VALID_VALUES_MAX:
        yield too_many(len(options), VALID_VALUES_MAX)
        return
    seen: set[int] = set()
    for index, option in enumerate(options):
        if index and option < options[index - 1]:
            yield from at(f"[{index}]", [invalid(option, "is less than the one before", "in ascending order")])
        if option > value:
            yield from at(f"[{index}]", [invalid(option, f"is more than the capacity, {value}")])
        # Without the gate the server compares amounts that it has rounded up.
        key = option.nano if features.DRAFractionalCapacityRange else -(-option.nano // _ONE)
        if key in seen:
            yield from at(f"[{index}]", [duplicate(str(option))])
        seen.add(key)
    if default not in options:
        yield invalid(default, "is the default and not among the values", "one of validValues as default")


def _range(
    value: Quantity, default: Quantity, limits: CapacityRequestPolicyRange, features: Features
) -> Iterator[Problem]:
    yield from _bounds(value, default, limits)
    amounts = {"default": default, "min": limits.min, "max": limits.max, "step": limits.step}
    fractional = features.DRAFractionalCapacityRange and any(
        amount is not None and amount.nano % _ONE for amount in amounts.values()
    )
    unsafe = False
    for field, amount in amounts.items():
        if amount is None:
            continue
        if fractional:
            problems = list(_as_milli(amount))
        else:
            problems = list(_as_int64(amount)) if limits.step is not None and limits.step.nano > 0 else []
        yield from at(field, problems)
        unsafe = unsafe or bool(problems)
    if limits.step is not None and not (fractional and unsafe):
        yield from at("step", _step(value, default, limits, _MILLI if fractional else _ONE, unsafe))


def _bounds(value: Quantity, default: Quantity, limits: CapacityRequestPolicyRange) -> Iterator[Problem]:
    if limits.min > value:
        yield from at("min", [invalid(limits.min, f"is more than the capacity, {value}")])
    if default < limits.min:
        yield from at("default", [invalid(default, f"is less than min, {limits.min}")])
    if limits.max is not None:
        if limits.min > limits.max:
            yield from at("max", [invalid(limits.max, f"is less than min, {limits.min}")])
        if limits.max > value:
            yield from at("max", [invalid(limits.max, f"is more than the capacity, {value}")])
        if default > limits.max:
            yield from at("default", [invalid(default, f"is more than max, {limits.max}")])


def _as_milli(amount: Quantity) -> Iterator[Problem]:
    # As the server has it, the whole range is counted in milli, in 64 bits, once one amount is no whole number.
    if amount.nano % _MILLI:
        yield invalid(amount, "is finer than a milli", "a multiple of 1m")
    elif not -_INT64_MAX - 1 <= amount.nano // _MILLI <= _INT64_MAX:
        yield invalid(amount, "has no place in a range with fractions", f"at most {_INT64_MAX}m")


def _as_int64(amount: Quantity) -> Iterator[Problem]:
    if amount.nano < 0:
        yield invalid(amount, "is negative")
    elif amount.nano > _INT64_MAX * _ONE:
        yield invalid(amount, "is too large", f"at most {_INT64_MAX}")


def _step(
    value: Quantity, default: Quantity, limits: CapacityRequestPolicyRange, unit: int, unsafe: bool
) -> Iterator[Problem]:
    step = limits.step
    if step is None:
        return
    if step.nano <= 0:
        yield invalid(step, "is not greater than zero")
        return
    if limits.min.nano + step.nano > value.nano:
        yield invalid(step, f"leads from min, {limits.min}, beyond the capacity, {value}")
    if unsafe:
        return
    # Without the gate the server reads amounts rounded up to whole numbers.
    size, start = -(-step.nano // unit), -(-limits.min.nano // unit)
    for field, amount in {"default": default, "max": limits.max}.items():
        if amount is not None and (-(-amount.nano // unit) - start) % size:
            yield invalid(amount, f"is {field} and no whole number of steps of {step} above min, {limits.min}")
