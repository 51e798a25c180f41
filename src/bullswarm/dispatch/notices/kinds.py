"""What each kind of notice makes of an attempt, and the codes and statuses that stand for kinds."""

from __future__ import annotations

import re

from bullswarm.dispatch.types import FailureKind, Notice, NoticeKind

_FAILURES: dict[str, FailureKind] = {
    "quota": "quota",
    "throttle": "throttle",
    "auth": "auth",
    "auth-race": "auth",
    "login-damaged": "auth",
    "overloaded": "provider",
}

_CODES: dict[str, NoticeKind] = {
    **dict.fromkeys(
        (
            "usage_limit_exceeded",
            "usage_limit_reached",
            "usage_credits_required",
            "credits_required",
            "usage_not_included",
            "insufficient_quota",
            "insufficient_credits",
            "insufficient_balance",
            "out_of_credits",
            "quota_exceeded",
            "quota_exhausted",
            "resource_exhausted",
            "billing_error",
            "billing_hard_limit_reached",
            "payment_required",
        ),
        "quota",
    ),
    **dict.fromkeys(
        (
            "rate_limit",
            "rate_limit_error",
            "too_many_requests",
            "slow_down",
            "throttling_exception",
        ),
        "throttle",
    ),
    **dict.fromkeys(
        (
            "unauthorized",
            "unauthenticated",
            "authentication_failed",
            "authentication_error",
            "auth_unavailable",
            "invalid_api_key",
            "invalid_grant",
            "token_expired",
            "token_revoked",
            "token_invalidated",
            "refresh_token_expired",
            "refresh_token_invalidated",
            "oauth_org_not_allowed",
        ),
        "auth",
    ),
    "refresh_token_reused": "auth-race",
    **dict.fromkeys(
        (
            "overloaded",
            "overloaded_error",
            "server_overloaded",
            "server_is_overloaded",
            "service_unavailable",
            "server_error",
            "internal_server_error",
            "model_capacity_exhausted",
        ),
        "overloaded",
    ),
}

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def failure_of(notice: Notice) -> FailureKind:
    """The failure kind of an attempt that this notice ended."""
    return _FAILURES[notice.kind]


def kind_of_code(code: str | None) -> NoticeKind | None:
    """The kind a provider's error code stands for, in any spelling; None where it decides nothing
    ("rate_limit_exceeded" is said of windows and of seconds: the words decide)."""
    if not code:
        return None
    return _CODES.get(re.sub(r"[\s.-]+", "_", _CAMEL.sub("_", code.strip())).lower())


def kind_of_status(status: int | None) -> NoticeKind | None:
    """The kind an HTTP status stands for; None for a success and for the caller's own mistakes."""
    if status is None:
        return None
    if status in (401, 403):
        return "auth"
    if status == 402:
        return "quota"
    if status == 429:
        return "throttle"
    return "overloaded" if 500 <= status < 600 else None
