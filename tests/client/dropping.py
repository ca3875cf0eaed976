"""A way to the service that loses answers: the request arrives, the connection is cut before the answer comes back."""

import select
import socket
import threading


class Dropping:
    """Loses the answers of the first `lost` connections; afterwards it is a plain way."""

    def __init__(self, address, lost):
        host, port = address.split(":")
        self._target, self._lost = (host, int(port)), lost
        self.dropped = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        """Pass bytes on, both ways, until one side ends; or until the service answers, where answers get lost."""
        with caller, socket.create_connection(self._target) as service:
            while True:
                for ready in select.select([caller, service], [], [], 30)[0]:
                    piece = ready.recv(1 << 16)
                    if not piece:
                        return
                    if ready is service and self.dropped < self._lost:
                        self.dropped += 1
                        return
                    (service if ready is caller else caller).sendall(piece)

    def close(self):
        self._server.close()
