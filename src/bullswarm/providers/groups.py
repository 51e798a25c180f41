"""Credential groups: pools that are several names for one login (routing rules)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bullswarm.providers.types import Account


def with_groups(accounts: Sequence[Account], upstream: Mapping[str, str]) -> tuple[Account, ...]:
    """The accounts with ``credential_group`` set where a pool shares its login with another: by
    identity, by the file the login is kept in, or by the upstream group its connector declares
    (``upstream``: pool to group). An upstream group is a group even of one pool. Sharing a vendor
    is not sharing a login."""
    parent = list(range(len(accounts)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[tuple[str, str], int] = {}
    for i, account in enumerate(accounts):
        for kind, value in (
            ("identity", account.identity),
            ("file", account.login_file),
            ("upstream", upstream.get(account.pool)),
            ("group", account.credential_group),
        ):
            if value:
                j = first.setdefault((kind, value), i)
                parent[root(i)] = root(j)
    members: dict[int, list[int]] = {}
    for i in range(len(accounts)):
        members.setdefault(root(i), []).append(i)
    named = list(accounts)
    for indexes in members.values():
        declared = [
            name
            for i in indexes
            if (name := upstream.get(accounts[i].pool) or accounts[i].credential_group)
        ]
        if len(indexes) < 2 and not declared:
            continue
        name = declared[0] if declared else f"login of {accounts[indexes[0]].pool}"
        for i in indexes:
            named[i] = msgspec.structs.replace(accounts[i], credential_group=name)
    return tuple(named)
