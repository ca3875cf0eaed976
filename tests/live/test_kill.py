"""kill -9, a few times; two hundred times in soak/test_kills.py."""

from live.killed import Record, kill_embedded, moments


def test_a_killed_client_finds_all_it_was_told(tmp_path):
    url, record = f"sqlite:///{tmp_path}/pool.db", Record()
    for n, seconds in enumerate(moments(5, longest=0.15, seed=1)):
        kill_embedded(url, "home", record, f"run{n}", seconds)
        record.check(url, "home")
    assert len(record.told) >= 15
