# SPDX-License-Identifier: MIT
"""Which replica gets a request: a request router of Ray Serve."""

from collections import OrderedDict

from ray.serve._private.request_router import PowerOfTwoChoicesRequestRouter
from ray.serve.request_router import LocalityMixin, MultiplexMixin, RequestRouter

#: Pieces of prompts that are remembered: 64 MiB of text, in about as many bytes of memory.
MOST_KNOWN = 128 * 1024


class Beginnings:
    """Which replica has read which beginnings of prompts: chains of hashes (``_requests.pieces``).

    The least recently used are forgotten first.
    """

    def __init__(self, most=MOST_KNOWN):
        self._readers = OrderedDict()  # hash of a piece and all before it: replicas
        self._most = most

    def find(self, chain, replicas):
        """(replica, pieces) of the one of ``replicas`` that has read most of the chain; (None, 0)."""
        for n in range(len(chain), 0, -1):
            known = self._readers.get(chain[n - 1])
            found = [r for r in reversed(known or ()) if r in replicas]
            if found:
                for piece in chain[:n]:
                    if piece in self._readers:
                        self._readers.move_to_end(piece)
                return found[0], n
        return None, 0

    def add(self, chain, replica):
        """Notes that a replica reads a prompt."""
        for piece in chain:
            readers = self._readers.setdefault(piece, [])
            if replica in readers:
                readers.remove(replica)
            readers.append(replica)  # the last one has read it last
            self._readers.move_to_end(piece)
        while len(self._readers) > self._most:
            self._readers.popitem(last=False)

    def remove(self, replica):
        """Forgets a replica that has gone."""
        for piece in [p for p, readers in self._readers.items() if replica in readers]:
            self._readers[piece].remove(replica)
            if not self._readers[piece]:
                del self._readers[piece]


class LongestBeginning(LocalityMixin, MultiplexMixin, RequestRouter):
    """Chooses the replica that has read the longest beginning of a request's prompt, as long as it
    has at most ``most_ahead`` more requests than the least busy one; else the less busy of two that
    are drawn by chance, as Serve's own router does."""

    def initialize_state(self, most_ahead=4):
        """The argument is RequestRouterConfig's request_router_kwargs."""
        self._most_ahead = most_ahead
        self._beginnings = Beginnings()

    async def _queue_lengths(self, replicas):
        known = {r.replica_id: self._replica_queue_len_cache.get(r.replica_id)
                 if self._use_replica_queue_len_cache else None for r in replicas}
        unknown = [r for r in replicas if known[r.replica_id] is None]
        if unknown:
            for replica, length in await self._probe_queue_lens(unknown, 0):
                known[replica.replica_id] = length
        return known

    async def choose_replicas(self, candidate_replicas, pending_request=None):
        """Lists of replicas, of which Serve takes the first list that has a free one."""
        others = await PowerOfTwoChoicesRequestRouter.choose_replicas(
            self, candidate_replicas=candidate_replicas, pending_request=pending_request)
        chain = _chain(pending_request)
        by_id = {r.replica_id: r for r in candidate_replicas}
        best, _ = self._beginnings.find(chain, by_id)
        if best is None:
            return others
        lengths = await self._queue_lengths(candidate_replicas)
        least = min((n for n in lengths.values() if n is not None), default=0)
        if lengths[best] is None or lengths[best] > least + self._most_ahead:
            return others
        return [[by_id[best]], *others]

    def on_request_routed(self, pending_request, replica_id, result):
        """Serve's call when a replica has taken a request."""
        self._beginnings.add(_chain(pending_request), replica_id)

    def on_replica_actor_died(self, replica_id):
        """Serve's call when a replica has gone."""
        super().on_replica_actor_died(replica_id)
        self._beginnings.remove(replica_id)

    def update_replicas(self, replicas):
        """Serve's call when there are others."""
        before = set(self._replica_id_set)
        super().update_replicas(replicas)
        for replica_id in before - set(self._replica_id_set):
            self._beginnings.remove(replica_id)


def _chain(pending_request):
    for argument in pending_request.args if pending_request is not None else ():
        if isinstance(argument, dict) and "pieces" in argument:
            return argument["pieces"]
    return []
