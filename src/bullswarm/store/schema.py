"""The tables, as the steps that lead from an empty file to the newest format. A step that was
released is never changed; a new one is added."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    create table agents (
        id text primary key, run_id text not null, state text not null, body blob not null
    ) without rowid;
    create index agents_run on agents (run_id);
    create table cancels (run_id text primary key, level integer not null, at integer not null)
        without rowid;
    create table ended (
        n integer primary key autoincrement, id text not null unique, run_id text not null,
        pool text not null, lane text not null, model text, started_at integer not null,
        ended_at integer not null, ok integer, failure_kind text, wall_s real not null
    );
    create index ended_at on ended (ended_at);
    create table incumbents (key text primary key, pool text not null, at integer not null)
        without rowid;
    create table benches (
        pool text not null, family text not null, kind text not null, until integer not null,
        since integer not null, reason text not null, source text not null,
        guess integer not null, cut integer not null, strikes integer not null,
        primary key (pool, family, kind)
    ) without rowid;
    create table bench_log (
        n integer primary key autoincrement, at integer not null, event text not null,
        pool text not null, family text not null, kind text not null, until integer not null,
        reason text not null, source text not null, strikes integer not null
    );
    create index bench_log_pool on bench_log (pool);
    create table decisions (
        n integer primary key autoincrement, id text not null unique, run_id text not null,
        body blob not null
    );
    create index decisions_run on decisions (run_id);
    create table runs (
        run_id text primary key, short_id text not null, state text not null,
        started_at integer not null, body blob not null
    ) without rowid;
    create index runs_started on runs (started_at);
    create index runs_short on runs (short_id);
    create table readings (
        pool text not null, account text not null, body blob not null, primary key (pool, account)
    ) without rowid;
    create table backoffs (
        key text primary key, next_at integer not null, failures integer not null
    ) without rowid;
    create table kept (key text primary key, body blob not null) without rowid;
    """,
)
