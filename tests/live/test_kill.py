"""Nothing that was acknowledged is lost when clients are killed; `make soak` kills many more."""

from live.clients import Clients


def test_clients_are_killed_at_work(place, tmp_path):
    clients = Clients(tmp_path, place.url, place.name, count=2, twice=True, changes=True)
    clients.until(60)
    for n in range(3):
        clients.kill(n % 2)
        clients.start(n % 2)
        clients.until(40)
    assert clients.check() >= 180
