"""PostgreSQL: restarts, terminated sessions, a pooler that shares sessions, and no lock to wait for."""

import threading

import psycopg
import pytest

from live.pgbouncer import PgBouncer, program
from live.places import Place, play

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
)


@pytest.fixture
def there(server):
    place = Place(server.url())
    yield place
    place.close()


def test_a_pool_goes_on_after_its_sessions_were_terminated(there, server):
    pool = there.make(update_every=5)
    play(pool, 5)
    for _ in range(3):
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(TERMINATE)
        play(pool, 3)
    assert len(list(pool.rows())) == 14
    assert pool.replay().ok


def test_who_makes_a_version_holds_up_nobody_who_decides_or_reports(there, server):
    pool = there.make()
    play(pool, 3)
    with psycopg.connect(server.url()) as blocker:
        lock = "SELECT 1 FROM statepool.pools WHERE id = %s FOR NO KEY UPDATE"
        blocker.execute(lock, [pool.definition.id])
        done = threading.Thread(target=play, args=(pool, 5))
        done.start()
        done.join(10)
        assert not done.is_alive()
        pool.work()  # learning is left to who has the lock
    pool.learn()  # unless the background thread was faster
    assert pool.status().counts["unlearned"] == 0
    assert pool.replay().ok


@pytest.mark.skipif(program() is None, reason="PgBouncer is not installed (apt-get install pgbouncer)")
def test_through_a_pooler_that_hands_out_sessions_by_the_transaction(server):
    bouncer = PgBouncer(server, "transaction")
    try:
        place = Place(bouncer.url())
        pools = [place.make(update_every=5) for _ in range(4)]
        threads = [threading.Thread(target=play, args=(pool, 10)) for pool in pools]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pools[0].add_action("d", [0, 0, 1])
        assert len(list(pools[0].rows())) == 40
        assert pools[0].replay().ok
        place.close()
    finally:
        bouncer.stop()
