"""Plays the messages of one call on SimGrid, and prints what hopbine predicts and what SimGrid finds.

  play.py FILE     as from hopbine simulate ... --show messages --format json; - for standard input

Prints: messages, predicted us, SimGrid's us.

Links and interfaces are SimGrid's links; the messages go over them at the rates that it gives them. When which
message is sent is decided here, by what the file says: a rank posts a step of a lane when what the step awaits
has arrived, and a port sends one message after the other. A message arrives its latency after it has left: that
is added here, since SimGrid would otherwise give messages on long ways less of a shared link than others (its
links' latencies are round-trip times of TCP). A second of SimGrid's is a ns here.
"""

import heapq
import json
import sys
from collections import defaultdict, deque

from simgrid import Comm, Engine, LinkInRoute, NetZone, this_actor

# SimGrid's sizes are whole numbers.
PER_BYTE = 1000


class Call:
    def __init__(self, found):
        self.latency_ns = found["latency_ns"]
        self.resources = found["resources"]
        self.messages = found["rows"]
        # By rank and lane: its steps in order, each with what it awaits and its messages.
        steps = defaultdict(dict)
        # By rank, lane and step: messages that are still to come.
        self.missing = defaultdict(int)
        for message in self.messages:
            lane, step = message["lane"], message["step"]
            steps[message["from"], lane].setdefault(step, []).append(message)
            self.missing[message["to"], lane, step] += 1
        self.steps = {key: deque(sorted(of.items())) for key, of in steps.items()}
        self.queues = defaultdict(deque)
        self.under_way = []
        self.arrivals = []
        self.end = 0.0

    def latency(self, message):
        crossed = [self.resources[number] for number in message["crosses"]]
        links = [link for link in crossed if link["kind"] != "interface"]
        # The first link, a cable if there is one, is part of the latency.
        links.sort(key=lambda link: link["kind"] != "cable")
        return self.latency_ns + sum(link["ns"] for link in links[1:])

    def build(self, engine):
        zone = NetZone.create_full_zone("network")
        # What costs nothing has no rate: a memory, if copies are free.
        links = [
            zone.create_link(str(number), [(resource["gb_per_s"] or 1e6) * PER_BYTE]).seal()
            for number, resource in enumerate(self.resources)
        ]
        self.hosts = {}
        # Ports are hosts: routes between them end in interfaces of their own.
        for message in self.messages:
            for end in ("from", "to"):
                key = message[end], message["port"]
                if key not in self.hosts:
                    self.hosts[key] = zone.create_host("%d.%d" % key, 1).seal()
        known = {}
        for message in self.messages:
            ends = tuple((message[end], message["port"]) for end in ("from", "to"))
            if known.setdefault(ends, message["crosses"]) != message["crosses"]:
                raise SystemExit(f"two routes between {ends}")
        for (a, b), crossed in known.items():
            route = [LinkInRoute(links[number]) for number in crossed]
            zone.add_route(self.hosts[a].netpoint, self.hosts[b].netpoint, None, None, route, False)
        zone.seal()

    def post(self, rank, lane):
        """Posts the steps of a rank's lane whose data are there."""
        steps = self.steps.get((rank, lane), ())
        while steps:
            step, messages = steps[0]
            awaited = range(messages[0]["awaits"])
            if any(self.missing.get((rank, lane, before)) for before in awaited):
                return
            steps.popleft()
            for message in messages:
                queue = self.queues[rank, message["port"]]
                queue.append(message)
                if len(queue) == 1:
                    self.send(message)

    def send(self, message):
        ends = [self.hosts[message[end], message["port"]] for end in ("from", "to")]
        comm = Comm.sendto_async(*ends, max(1, round(message["bytes"] * PER_BYTE)))
        self.under_way.append((comm, message))

    def has_left(self, message):
        at = Engine.clock + self.latency(message)
        heapq.heappush(self.arrivals, (at, len(self.arrivals), id(message), message))
        queue = self.queues[message["from"], message["port"]]
        queue.popleft()
        if queue:
            self.send(queue[0])

    def run(self):
        for rank, lane in list(self.steps):
            self.post(rank, lane)
        while self.under_way or self.arrivals:
            while self.arrivals and self.arrivals[0][0] <= Engine.clock + 1e-6:
                at, _, _, message = heapq.heappop(self.arrivals)
                self.end = max(self.end, at)
                self.missing[message["to"], message["lane"], message["step"]] -= 1
                self.post(message["to"], message["lane"])
            until = self.arrivals[0][0] if self.arrivals else None
            if not self.under_way:
                if until is not None:
                    this_actor.sleep_until(until)
                continue
            timeout = -1 if until is None else until - Engine.clock
            number = Comm.wait_any_for([comm for comm, _ in self.under_way], timeout)
            if number >= 0:
                _, message = self.under_way.pop(number)
                self.has_left(message)
        left = sum(len(steps) for steps in self.steps.values())
        if left or any(self.missing.values()):
            raise SystemExit(f"{left} steps wait for what nobody sends")


def main():
    [path] = sys.argv[1:]
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        found = json.load(file)
    # The linear max-min model, without what is fitted to TCP: factors of bandwidth and latency, windows, and
    # the acknowledgements' way back.
    options = [
        "network/model:CM02",
        "network/bandwidth-factor:1",
        "network/latency-factor:1",
        "network/weight-S:0",
        "network/TCP-gamma:0",
        "network/crosstraffic:0",
    ]
    engine = Engine(["play.py", "--log=root.thresh:warning"] + ["--cfg=" + option for option in options])
    call = Call(found)
    call.build(engine)
    from simgrid import Actor, Host

    Actor.create("driver", Host.by_name("%d.%d" % next(iter(call.hosts))), call.run)
    engine.run()
    print(len(call.messages), found["predicted_us"], call.end / 1e3)


if __name__ == "__main__":
    main()
